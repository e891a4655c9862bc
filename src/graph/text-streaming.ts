/** Takes text while it is written; `attempt` counts from 1, and a new one voids what came before. */
export type OnText = (text: string, attempt: number) => void

/** Streams each attempt through a writer of its own, which `open` begins. */
export const streamAnew = (
  open: (onText: (text: string) => void) => (chunk: string) => void,
  onText: OnText,
): OnText => {
  let current = 0
  let write = (_chunk: string): void => {}
  return (chunk, attempt) => {
    if (attempt !== current) write = open((text) => onText(text, attempt))
    current = attempt
    write(chunk)
  }
}

/**
 * Streams the text of one field of JSON while it is written: `{"answer": "Hel` gives `Hel`. Other text gives nothing; a new
 * attempt starts again. Own code because partial-json reads the whole text for each chunk: docs/decisions/0037.
 */
export const streamField = (field: string, onText: OnText): OnText => {
  const opening = new RegExp(`"${field}"\\s*:\\s*"`)
  const open = (pass: (text: string) => void): ((chunk: string) => void) => {
    let raw = ''
    let isOpen = false
    let isClosed = false
    return (chunk) => {
      if (isClosed) return
      raw += chunk
      if (!isOpen) {
        const found = opening.exec(raw)
        if (!found) return
        isOpen = true
        raw = raw.slice(found.index + found[0].length)
      }
      const { text, used, closed } = readText(raw)
      raw = raw.slice(used)
      isClosed = closed
      if (text !== '') pass(text)
    }
  }
  return streamAnew(open, onText)
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' }

/** The text up to the closing quote, or to where an escape or a pair of surrogates is not whole yet. */
const readText = (raw: string): { text: string; used: number; closed: boolean } => {
  let text = ''
  let used = 0
  for (let at = 0; at < raw.length; ) {
    const char = raw[at] as string
    if (char === '"') return { text, used: at + 1, closed: true }
    let unit = char
    let length = 1
    if (char === '\\') {
      const kind = raw[at + 1]
      length = kind === 'u' ? 6 : 2
      if (at + length > raw.length) break
      unit =
        kind === 'u'
          ? String.fromCharCode(Number.parseInt(raw.slice(at + 2, at + 6), 16) || 0xfffd)
          : (escapes[kind ?? ''] ?? kind ?? '')
    }
    text += unit
    at += length
    // half a character waits for its other half
    if (!/[\uD800-\uDBFF]$/.test(unit)) used = at
    else if (at >= raw.length || (raw[at] === '\\' && at + 6 > raw.length))
      return { text: text.slice(0, -1), used, closed: false }
  }
  return { text, used, closed: false }
}

/** Attempts go on counting from call to call of one action, so that each voids what was streamed of the one before. */
export const numberAttempts = (onText: OnText): (() => OnText) => {
  let highest = 0
  return () => {
    const base = highest
    return (text, attempt) => {
      highest = Math.max(highest, base + attempt)
      onText(text, base + attempt)
    }
  }
}
