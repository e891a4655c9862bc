/** What a literal of Python is: its text, bytes, text without escapes, or an f-string. */
export type PythonLiteralKind = 'plain' | 'raw' | 'bytes' | 'formatted'

/** A literal of a program: what is between its quotes. `nested`: it is inside an f-string. */
export type PythonLiteral = { kind: PythonLiteralKind; start: number; end: number; nested: boolean }

/** The literals of a program and its comments, in order of their ends. `isComplete` is false where a literal has no end: no Python runs that. */
export type PythonScan = {
  literals: readonly PythonLiteral[]
  comments: readonly { start: number; end: number }[]
  isComplete: boolean
}

/** Where the scanner is: in code, in a field of an f-string, in its text, or in the format that ends a field. */
type Frame = { in: 'code' | 'field'; brackets: number } | TextFrame
type TextFrame = { in: 'text' | 'format'; quote: string; isRaw: boolean; start: number }

const prefixKinds: Readonly<Record<string, PythonLiteralKind>> = {
  '': 'plain',
  u: 'plain',
  r: 'raw',
  b: 'bytes',
  br: 'bytes',
  rb: 'bytes',
  f: 'formatted',
  fr: 'formatted',
  rf: 'formatted',
  t: 'formatted',
  tr: 'formatted',
  rt: 'formatted',
}

/** A word with what it may be the prefix of, a comment, or one character. Words begin with digits too: `0xfor"x"`. */
const codeToken = /([\w\u0080-\uffff]*)("""|'''|["'])|[\w\u0080-\uffff]+|#[^\r\n]*|[\s\S]/y
/** A piece of the text of an f-string: an escape, which hides no brace but those of a name, a brace, or the characters between. */
const formattedToken = /\\(?:N\{[^{}]{0,100}\}|\r\n|[^{}])|\{\{|\}\}|[^\\{}"'\r\n]+|[\s\S]/y
const rawToken = /\\(?:\r\n|[^{}])|\{\{|\}\}|[^\\{}"'\r\n]+|[\s\S]/y

/** Where a literal ends whose body begins here, or -1: quotes of one character hold one line. */
const findLiteralEnd = (code: string, from: number, quote: string): number => {
  const stop = /[\\"'\r\n]/g
  stop.lastIndex = from
  for (let found = stop.exec(code); found; found = stop.exec(code)) {
    const { index } = found
    if (code.startsWith(quote, index)) return index
    if (code[index] === '\\') stop.lastIndex = index + (code.startsWith('\r\n', index + 1) ? 3 : 2)
    else if (quote.length === 1 && /[\r\n]/.test(code[index] as string)) return -1
  }
  return -1
}

/** The literals of a Python program, by the grammar of 3.12, where f-strings nest; what earlier versions accept reads the same. */
export const scanPython = (code: string): PythonScan => {
  const literals: PythonLiteral[] = []
  const comments: { start: number; end: number }[] = []
  const frames: Frame[] = [{ in: 'code', brackets: 0 }]
  let at = 0
  const read = (pattern: RegExp): RegExpExecArray => {
    pattern.lastIndex = at
    const match = pattern.exec(code) as RegExpExecArray
    at = pattern.lastIndex
    return match
  }

  while (at < code.length) {
    const frame = frames.at(-1) as Frame
    const start = at
    if ('brackets' in frame) {
      const [token, prefix = '', quote] = read(codeToken)
      if (quote !== undefined) {
        const known = prefix.toLowerCase()
        const kind = (Object.hasOwn(prefixKinds, known) && prefixKinds[known]) || 'plain'
        if (kind === 'formatted') {
          frames.push({ in: 'text', quote, isRaw: /r/i.test(prefix), start: at })
          continue
        }
        const end = findLiteralEnd(code, at, quote)
        if (end < 0) return { literals, comments, isComplete: false }
        literals.push({ kind, start: at, end, nested: frames.length > 1 })
        at = end + quote.length
      } else if (token.startsWith('#')) comments.push({ start, end: at })
      else if ('([{'.includes(token)) frame.brackets++
      else if (frame.in === 'field' && frame.brackets === 0 && token === '}') frames.pop()
      else if (frame.in === 'field' && frame.brackets === 0 && token === ':') {
        // the text or format that the field is in
        frames.push({ ...(frames.at(-2) as TextFrame), in: 'format' })
      } else if (')]}'.includes(token)) frame.brackets--
      continue
    }
    const [token] = read(frame.isRaw ? rawToken : formattedToken)
    if (code.startsWith(frame.quote, start)) {
      // a field that its f-string ends before is no Python
      if (frame.in === 'format') return { literals, comments, isComplete: false }
      literals.push({ kind: 'formatted', start: frame.start, end: start, nested: frames.length > 2 })
      frames.pop()
      at = start + frame.quote.length
    } else if (token === '{' || (token === '{{' && frame.in === 'format')) {
      frames.push({ in: 'field', brackets: 0 })
      at = start + 1
    } else if (token.startsWith('}') && frame.in === 'format') {
      frames.splice(-2)
      at = start + 1
    } else if (frame.quote.length === 1 && /^[\r\n]/.test(token))
      return { literals, comments, isComplete: false }
  }
  return { literals, comments, isComplete: frames.length === 1 }
}
