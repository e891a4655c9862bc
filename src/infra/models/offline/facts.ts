import { readDate } from './dates.ts'
import { readNumber } from './numbers.ts'
import { contentWords, readText, stem } from './text.ts'

/** Facts picked out of a draft that anyone may have written: lines, numbers, names, dates. */

const scoreLine = (line: string, wanted: ReadonlySet<string>): number =>
  new Set(
    readText(line)
      .words.map(({ stem }) => stem)
      .filter((word) => wanted.has(word)),
  ).size

/** Lines of the draft by how many words of the expectation they hold. */
export const bestLines = (draft: string, words: readonly string[]): string[] => {
  const wanted = new Set(words.map(stem))
  return draft
    .split(/\n|(?<=[.。;])\s+/)
    .map((line) => ({
      line,
      score:
        scoreLine(line, wanted) +
        words.filter((word) => /\p{Script=Han}/u.test(word) && line.includes(word)).length,
    }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ line }) => line)
}

const figures = /(?<![\w.])[-−]?[$€£¥]?\d[\d,]*(?:\.\d+)?%?/g

/** The number said in bold, else the first after the words asked for that is no line number, date or count of rows. */
export const numberIn = (line: string): number | null => {
  const bold = /\*\*([^*]+)\*\*/.exec(line)
  const inBold = bold ? readNumber(bold[1] ?? '') : null
  if (inBold !== null) return inBold
  const plain = line
    .replace(/\d{4}-\d{2}(?:-\d{2})?/g, '')
    .replace(/\b(?:lines?|rows?|items?|action|第)\s*[\d, –-]+/gi, '')
    .replace(/\d+ rows?\b/gi, '')
  for (const m of plain.replace(/^\s*\d+[.)]\s/, '').matchAll(figures)) {
    const value = readNumber(m[0])
    if (value !== null) return value
  }
  return null
}

export const boldIn = (line: string): string | null => /\*\*([^*]+)\*\*/.exec(line)?.[1]?.trim() ?? null

export const listIn = (draft: string, lines: readonly string[]): string[] => {
  const bullets = draft
    .split('\n')
    .flatMap((line) => /^\s*(?:[-*]|\d+\.)\s+(.*)$/.exec(line)?.[1]?.replaceAll('**', '') ?? [])
  if (bullets.length > 0) return bullets.map((line) => line.split(/:\s|\s\(/)[0] ?? line)
  const bold = boldIn(lines[0] ?? '')
  return bold ? bold.split(/,\s*|、/) : []
}

const writtenDate =
  /\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d{4}年\d{1,2}月\d{1,2}日|\b[A-Z][a-z]{2,8} \d{1,2},? \d{4}|\b\d{1,2} [A-Z][a-z]{2,8} \d{4}/

/** The first date written in any of the texts, as YYYY-MM-DD. */
export const dateIn = (texts: readonly string[]): string | undefined => {
  for (const text of texts) {
    const date = readDate(writtenDate.exec(text)?.[0] ?? '')
    if (date) return date.slice(0, 10)
  }
  return undefined
}

/** The one number of a text that has just one, else null. */
export const onlyNumberIn = (text: string): number | null => {
  const found = new Set(text.split('\n').flatMap((line) => numberIn(line) ?? []))
  return found.size === 1 && (text.match(figures)?.length ?? 0) === 1 ? ([...found][0] ?? null) : null
}

const operation =
  /^(?:total|sum|average|mean|number|count|list|name|value|amount|date|highest|lowest|whether|any|all|one|text|table)$/i

/** The words of an expectation that say which fact is meant; words of operations count only where there are no others. */
export const tellingWords = (expected: string): string[] => {
  const words = contentWords(expected)
  const telling = words.filter((word) => !operation.test(word))
  return telling.length > 0 ? telling : words
}
