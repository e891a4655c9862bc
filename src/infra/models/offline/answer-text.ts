import type { Line } from './delimited.ts'
import type { Finding } from './figures.ts'
import { say } from './frames.ts'
import type { Asked } from './intent.ts'
import { applied, combined, type Ledger, term } from './ledger.ts'
import { contentWords, escapePattern, hasHan, type Language, shorten, showRanges, stem } from './text.ts'

/** Answers from plain text: lines that mention something, and the lines that best fit a question, always quoted. */

export type Search = { pattern: string; words: readonly RegExp[]; what: string }

/** The part of a word that all its forms begin with: refund for refunds, polic for policies. */
const root = (word: string): string => {
  const s = stem(word)
  return s.length > 4 ? s.replace(/[yi]$/, '') : s
}

const wordPattern = (word: string): string => {
  if (hasHan(word)) return escapePattern(word)
  const part = escapePattern(root(word))
  return /^[a-z0-9]/i.test(word) ? `\\b${part}${word.length <= 3 ? '\\b' : ''}` : part
}

/** What to search for: an exact text as it stands, else any form of any of the words, capitals or not. */
export const searchFor = (termWords: string, exact: boolean): Search => {
  if (exact) {
    const pattern = escapePattern(termWords)
    return { pattern, words: [new RegExp(pattern)], what: termWords }
  }
  const content = contentWords(termWords)
  const words = (content.length > 0 ? content : [termWords]).slice(0, 8).map(wordPattern)
  return {
    pattern: `(?i)${words.join('|')}`,
    words: words.map((word) => new RegExp(word, 'i')),
    what: termWords,
  }
}

/** The same search without regard to capitals, for when the exact one finds nothing. */
export const looser = (search: Search): Search => ({
  ...search,
  pattern: search.pattern.startsWith('(?i)') ? search.pattern : `(?i)${search.pattern}`,
  words: search.words.map((word) => new RegExp(word.source, 'i')),
})

/** Of the lines found those that hold most of the words; for several words all of them if any line has all. */
const best = (lines: readonly Line[], search: Search): Line[] => {
  const scored = lines.map((line) => ({
    line,
    hits: search.words.filter((word) => word.test(line.text)).length,
  }))
  const most = scored.reduce((max, { hits }) => Math.max(max, hits), 0)
  return most === 0 ? [] : scored.filter(({ hits }) => hits === most).map(({ line }) => line)
}

const quote = (line: Line, language: Language): string =>
  `- ${say.line(language, line.n)}: ${shorten(line.text.trim(), 400)}`

/** A heading says nothing by itself: the paragraph under it belongs to it. */
const withParagraph = (line: Line, lines: readonly Line[]): Line[] => {
  if (!/^#{1,6}\s|[:：]\s*$/.test(line.text)) return [line]
  const at = lines.findIndex(({ n }) => n === line.n)
  if (at < 0) return [line]
  const found: Line[] = [line]
  for (const next of lines.slice(at + 1, at + 12)) {
    if (/^#{1,6}\s/.test(next.text)) break
    if (next.text.trim() === '') {
      if (found.length > 1) break
    } else found.push(next)
  }
  return found
}

/** `more`: matching lines the search did not show. */
export type Found = { file: string; lines: readonly Line[]; context: readonly Line[]; more?: number }

const mostQuotes = 30

const unique = (lines: readonly Line[]): Line[] => [...new Map(lines.map((line) => [line.n, line])).values()]

/** Lines that mention a thing, quoted, file by file. */
export const answerLines = (found: readonly Found[], search: Search, language: Language): Finding => {
  const hits = found
    .map((f) => ({ ...f, lines: best(f.lines, search) }))
    .filter(({ lines }) => lines.length > 0)
  if (hits.length === 0)
    return {
      text: found.map(({ file }) => say.foundNothing(language, search.what, file)).join(' '),
      number: 0,
      names: [],
      empty: true,
    }
  const text = hits.map(({ file, lines, context, more: unseen = 0 }) => {
    const shown = unique(lines.flatMap((line) => withParagraph(line, context)))
    const left = Math.max(0, shown.length - mostQuotes) + unseen
    const more = left > 0 ? [say.more(language, left)] : []
    const head = `${say.foundLines(language, lines.length + unseen, search.what, file)} (${showRanges(
      lines.map(({ n }) => n),
      12,
    )}):`
    return [head, ...shown.slice(0, mostQuotes).map((line) => quote(line, language)), ...more].join('\n')
  })
  const lines = hits.flatMap((hit) => hit.lines)
  return {
    text: text.join('\n\n'),
    number: lines.length,
    names: lines.map((line) => line.text.trim()),
    name: lines[0]?.text.trim() ?? '',
    rows: lines.map((line) => ({ line: line.n, text: line.text })),
  }
}

/** How many lines mention a thing: the count, and which lines. */
export const answerCount = (
  found: readonly Found[],
  search: Search,
  ledger: Ledger,
  language: Language,
): Finding => {
  const hits = found.map((f) => ({ ...f, lines: best(f.lines, search) }))
  let total = 0
  const text = hits.map(({ file, lines, more = 0 }) => {
    if (lines.length === 0) return say.foundNothing(language, search.what, file)
    const counted = applied(
      'count',
      lines.map((line) => term(line.n)),
    )
    const full = more > 0 ? combined(`${counted.text} + ${more}`, counted.local + more) : counted
    const value = ledger.value(full)
    total += value
    const places = showRanges(
      lines.map(({ n }) => n),
      20,
    )
    const quotes = lines.length <= 5 ? lines.map((line) => `\n${quote(line, language)}`).join('') : ''
    return `**${value}**${language === 'zh' ? '：' : ': '}${say.foundLines(language, value, search.what, file)} (${places}).${quotes}`
  })
  return {
    text: text.join('\n'),
    number: total,
    names: hits.flatMap(({ lines }) => lines.map((line) => line.text.trim())),
  }
}

const kindBoost = (asked: Asked, text: string): number => {
  const raw = asked.text.raw
  if (/\bwhen\b|\bdate\b|\bdeadline\b|什么时候|何时|日期/i.test(raw))
    return /\d{4}|\b\d{1,2}[:./-]\d{1,2}|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)/i.test(text)
      ? 0.5
      : 0
  if (/\bhow (?:much|many|long|often)\b|多少|几|多久/i.test(raw)) return /\d/.test(text) ? 0.5 : 0
  if (/\bwho\b|谁/i.test(raw)) return /[a-z,.:] ?[A-Z][a-z]+|[:：]/.test(text) ? 0.3 : 0
  return 0
}

const pair = /^\s*(?:[-*+]\s+)?\**([^:：]{1,60}?)\**\s*[:：]\s*\**\s*(.+?)\**\s*$/

/** The words to look for when a question is about the text itself. */
export const questionSearch = (asked: Asked): Search =>
  searchFor(contentWords(asked.text.raw).join(' ') || asked.text.raw, false)

/** The lines that fit a question best, when they hold at least half of its words; null when none does. */
export const answerFromText = (
  asked: Asked,
  found: readonly Found[],
  search: Search,
  language: Language,
): Finding | null => {
  const all = found.flatMap(({ file, lines, context }) => lines.map((line) => ({ file, line, context })))
  if (all.length === 0 || search.words.length === 0) return null
  const weights = search.words.map(
    (word) => 1 + Math.log(all.length / (1 + all.filter(({ line }) => word.test(line.text)).length) + 1) / 4,
  )
  const scored = all.map((item) => {
    const hits = search.words.map((word) => word.test(item.line.text))
    const key = pair.exec(item.line.text)
    const keyed = key && search.words.some((word) => word.test(key[1] ?? '')) ? 0.4 : 0
    const count = hits.filter(Boolean).length
    return {
      ...item,
      count,
      score:
        hits.reduce((sum, hit, i) => sum + (hit ? (weights[i] ?? 1) : 0), 0) +
        (count > 0 ? keyed + kindBoost(asked, item.line.text) : 0),
    }
  })
  const good = scored
    .filter(({ count }) => count >= Math.max(1, Math.ceil(search.words.length / 2)))
    .sort((a, b) => b.score - a.score || a.line.n - b.line.n)
  const [first] = good
  if (!first) return null
  const shown = good.filter(({ score }) => score >= first.score - 0.3).slice(0, 4)
  const key = pair.exec(first.line.text)
  const value = key && !/^https?$/i.test(key[1] ?? '') ? (key[2] ?? '') : first.line.text.trim()
  const files = [...new Set(shown.map(({ file }) => file))]
  const text = files.map((file) => {
    const lines = unique(
      shown.filter((item) => item.file === file).flatMap((item) => withParagraph(item.line, item.context)),
    )
    return [say.says(language, file, search.what), ...lines.map((line) => quote(line, language))].join('\n')
  })
  const number = /^[^\d-]{0,4}(-?[\d,]+(?:\.\d+)?)/.exec(value)?.[1]
  return {
    text: text.join('\n\n'),
    name: value,
    names: shown.map(({ line }) => line.text.trim()),
    ...(number ? { number: Number(number.replaceAll(',', '')) } : {}),
  }
}
