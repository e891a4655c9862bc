/** An answer as it stood on the wire. */
export type RawReply = { status: number; headers: Map<string, string>; body: Buffer }

const headEnd = Buffer.from('\r\n\r\n')

/**
 * Puts an answer together. `take` says whether it is whole; `reply` is what there is of it, null without headers.
 * Of a stream of events the headers are the whole.
 */
export const collectReply = (isHead: boolean) => {
  const chunks: Buffer[] = []
  const parse = (): { reply: RawReply; whole: boolean } | null => parseReply(Buffer.concat(chunks), isHead)
  return {
    take(chunk: Buffer): boolean {
      chunks.push(chunk)
      return parse()?.whole ?? false
    },
    reply: (): RawReply | null => parse()?.reply ?? null,
  }
}

const parseReply = (bytes: Buffer, isHead: boolean): { reply: RawReply; whole: boolean } | null => {
  const end = bytes.indexOf(headEnd)
  if (end < 0) return null
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1])
  const rest = bytes.subarray(end + headEnd.length)
  if (status === 100) return parseReply(rest, isHead)
  const headers = new Map(lines.map(splitHeader))
  const { body, whole } = bodyOf(rest, headers)
  const bodyless = isHead || status === 204 || status === 304
  return bodyless
    ? { reply: { status, headers, body: Buffer.alloc(0) }, whole: true }
    : { reply: { status, headers, body }, whole }
}

const splitHeader = (line: string): [string, string] => {
  const colon = line.indexOf(':')
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
}

const bodyOf = (bytes: Buffer, headers: Map<string, string>): { body: Buffer; whole: boolean } => {
  if (headers.get('content-type')?.startsWith('text/event-stream')) return { body: bytes, whole: true }
  if (headers.get('transfer-encoding') === 'chunked') return unchunk(bytes)
  const length = Number(headers.get('content-length') ?? Number.POSITIVE_INFINITY)
  return { body: bytes.subarray(0, length), whole: bytes.length >= length }
}

const unchunk = (bytes: Buffer): { body: Buffer; whole: boolean } => {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const line = bytes.indexOf('\r\n', at)
    if (line < 0) return { body: Buffer.concat(parts), whole: false }
    const size = Number.parseInt(bytes.toString('latin1', at, line), 16)
    if (!(size > 0)) return { body: Buffer.concat(parts), whole: true }
    parts.push(bytes.subarray(line + 2, line + 2 + size))
    at = line + 2 + size + 2
  }
}
