import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { MasonError } from '../state/errors.ts'
import { type Fault, HttpError } from './problems.ts'
import { scanJson } from './scan-json.ts'

const bodyLimit = 32 * 1024 * 1024
/** How much of a body that is too large is still read, so that its sender gets to see the answer. */
const patience = 4 * bodyLimit

/** Reads a whole body. One over the limit is read on without being kept: a reset would hide the 413 from its sender. */
export const readBody = async (stream: Readable, length: number): Promise<Buffer> => {
  if (length > patience) throw tooLarge()
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of wholeOf(stream)) {
    bytes += chunk.length
    if (bytes <= bodyLimit) chunks.push(chunk)
    else chunks.length = 0
    if (bytes > patience) throw tooLarge()
  }
  if (bytes > bodyLimit) throw tooLarge()
  return Buffer.concat(chunks)
}

/** The chunks of a stream; leaving it early does not destroy it, since an answer is still to go out. */
async function* wholeOf(stream: Readable): AsyncGenerator<Buffer> {
  try {
    yield* stream.iterator({ destroyOnReturn: false })
  } catch {
    throw new HttpError('malformed_request', 'the body did not arrive whole')
  }
}

const tooLarge = (): MasonError =>
  new MasonError('payload_too_large', 'the body is larger than 32 MiB', {
    remedy: 'send large files by a mapping in place of content_base64',
  })

/** The JSON of a request's body; `{}` for none where that is allowed. Throws 400, 415, or 422 for what no run can need. */
export const parseJsonBody = (request: FastifyRequest, optional: boolean): unknown => {
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  if (bytes.length === 0 && optional) return {}
  if (bytes.length === 0) throw malformed('the body is empty')
  checkType(request.headers)
  const fault = scanJson(bytes)
  if (fault) throw invalid([{ pointer: '', detail: fault }])
  const value = parse(bytes)
  const poisoned = bytes.includes('__proto__') || bytes.includes('\\u') ? prototypeKeys(value) : []
  if (poisoned.length > 0) throw invalid(poisoned)
  return value
}

const malformed = (message: string): MasonError =>
  new MasonError('malformed_json', message, { remedy: 'send one JSON object in UTF-8' })

const invalid = (errors: Fault[]): MasonError =>
  new MasonError('invalid_request', 'the body is not valid', { detail: { errors } })

const checkType = (headers: IncomingMessage['headers']): void => {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';')
  const charset = parameters.map((part) => part.trim()).find((part) => part.startsWith('charset='))
  const encoding = (headers['content-encoding'] ?? 'identity').toLowerCase()
  const remedy = 'send "content-type: application/json", UTF-8, not compressed'
  if (!/^application\/([\w.+-]+\+)?json$/.test(type.trim()))
    throw new HttpError('unsupported_media_type', `the content-type is "${type.trim()}"`, { remedy })
  if (charset && !/^charset="?utf-?8"?$/.test(charset))
    throw new HttpError('unsupported_media_type', 'the charset is not UTF-8', { remedy })
  if (encoding !== 'identity')
    throw new HttpError('unsupported_media_type', 'the body is compressed', { remedy })
}

const parse = (bytes: Buffer): unknown => {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw malformed('the body is not UTF-8')
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw malformed(positionOf(error))
  }
}

/** Where parsing stopped, without quoting the body. */
const positionOf = (error: unknown): string => {
  const position = / position (\d+)/.exec(String(error))?.[1]
  return position ? `the body is not JSON from position ${position} on` : 'the body is not JSON'
}

/** zod drops a `__proto__` of a record without a word; such a key is refused rather than lost. */
const prototypeKeys = (value: unknown, pointer = '', found: Fault[] = []): Fault[] => {
  if (value === null || typeof value !== 'object' || found.length >= 100) return found
  for (const [key, item] of Object.entries(value)) {
    const here = `${pointer}/${key.slice(0, 200).replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (key === '__proto__') found.push({ pointer: here, detail: 'a field cannot have this name' })
    prototypeKeys(item, here, found)
  }
  return found
}
