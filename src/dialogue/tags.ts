/** The tags of the language: no server and no tool has such a name. */
export const languageTags = ['think', 'answer', 'result', 'execute_tools', 'parallel', 'sequential'] as const

/** A tag: of the language, or the opening one of what may be a server or a tool. */
export type DialogueTag = {
  name: string
  /** As it is written, as far as it was read. */
  text: string
  isOfLanguage: boolean
  isClosing: boolean
  /** Whether it has the form that the language asks for. */
  isWhole: boolean
  end: number
}

const ofLanguage: ReadonlySet<string> = new Set(languageTags)

/** Characters of a tag. A longer one is text. */
const maxTagLength = 128

/** White space between tags: a space, a tab or the end of a line. */
export const isWhite = (code: number): boolean => code === 32 || code === 10 || code === 13 || code === 9

/** A letter or `_`. */
const isNameStart = (code: number): boolean =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95

/** The same, a digit, `-` or `.`. */
const isNameCharacter = (code: number): boolean =>
  isNameStart(code) || (code >= 48 && code <= 57) || code === 45 || code === 46

const afterRow = /[^<]/g

/** Where a row of `<` ends: the place of its last one. One look at all of them, where a search for each would take longer. */
const findRowEnd = (text: string, from: number): number => {
  afterRow.lastIndex = from
  return (afterRow.exec(text)?.index ?? text.length) - 1
}

/** Where the next `<` is that may begin a tag; -1: nowhere. */
export const findTagStart = (text: string, from: number): number => {
  let at = text.indexOf('<', from)
  while (at >= 0) {
    if (text.charCodeAt(at + 1) === 60) at = findRowEnd(text, at)
    const next = at + 1
    const code = text.charCodeAt(next)
    if (next === text.length || code === 47 || isNameStart(code)) return at
    at = text.indexOf('<', next)
  }
  return at
}

/**
 * The tag that begins at the `<`, `null` where it is text, and `undefined` where more has to come before that can be decided. A tag that is
 * not of the language counts where it opens and has nothing but a name.
 */
export const readTag = (text: string, at: number, isLast: boolean): DialogueTag | null | undefined => {
  const isClosing = text.charCodeAt(at + 1) === 47
  let end = isClosing ? 2 : 1
  if (at + end < text.length && !isNameStart(text.charCodeAt(at + end))) return null
  const head = text.slice(at, at + maxTagLength)
  const isCut = !isLast && head.length < maxTagLength
  while (isNameCharacter(head.charCodeAt(end))) end++
  if (end >= head.length && isCut) return undefined
  const name = head.slice(isClosing ? 2 : 1, end)
  const isOfLanguage = ofLanguage.has(name)
  if (name === 'execute_tools' && !isClosing) {
    while (isWhite(head.charCodeAt(end))) end++
    if (isCut && end + 1 >= head.length && '/>'.startsWith(head.slice(end))) return undefined
    if (!head.startsWith('/>', end))
      return { name, text: head.slice(0, end), isOfLanguage, isClosing, isWhole: false, end: at + end }
    end++
  }
  const isWhole = head.charCodeAt(end) === 62
  if (!isOfLanguage && (isClosing || !isWhole)) return null
  if (isWhole) end++
  return { name, text: head.slice(0, end), isOfLanguage, isClosing, isWhole, end: at + end }
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

/** A text without half a character at its end. */
export const withoutHalf = (text: string): string =>
  isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.slice(0, -1) : text

/** How much of a text can be passed on: not the beginning of one of these tags, and no half of a character. */
export const keepUpTo = (text: string, tags: readonly string[], isLast: boolean): number => {
  if (isLast) return text.length
  const at = text.lastIndexOf('<')
  const length = text.length - at
  if (at >= 0 && tags.some((tag) => tag.length > length && tag.startsWith(text.slice(at)))) return at
  return isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.length - 1 : text.length
}
