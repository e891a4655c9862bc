import { cutText } from '../../../state/cut-text.ts'

/** Words of a text with their places, so that what a question mentions can be found and crossed out. */

export type Language = 'en' | 'zh'
type Word = { raw: string; stem: string; at: number; end: number }
export type Text = { raw: string; lower: string; words: readonly Word[] }
export type Span = { at: number; end: number }

export const hasHan = (text: string): boolean => /\p{Script=Han}/u.test(text)

/** Chinese when the sentence itself is Chinese; Chinese column names in an English sentence stay English. */
export const languageOf = (text: string): Language => {
  if (!hasHan(text)) return 'en'
  if (/[的是哪几请吗呢最谁各每按]|多少|列出|平均|总和|合计|一共|比较|什么/.test(text)) return 'zh'
  return /\b(?:what|how|which|who|the|of|is|are|sum|list|show|total|average|where)\b/i.test(text)
    ? 'en'
    : 'zh'
}

const irregular: ReadonlyMap<string, string> = new Map([
  ['people', 'person'],
  ['men', 'man'],
  ['women', 'woman'],
  ['children', 'child'],
  ['sold', 'sell'],
  ['spent', 'spend'],
  ['news', 'news'],
])

const undouble = (word: string): string => word.replace(/([bdfglmnprt])\1$/, '$1')

/** A light English stem: plural, -ed, -ing and a last e go. Other scripts stay as they are. */
export const stem = (word: string): string => {
  const w = word.toLowerCase()
  const known = irregular.get(w)
  if (known) return known
  if (!/^[a-z]{4,}$/.test(w)) return w
  let base = w
  if (/ies$/.test(base)) base = `${base.slice(0, -3)}y`
  else if (/(?:x|ch|sh|ss)es$/.test(base)) base = base.slice(0, -2)
  else if (/[^sui]s$/.test(base)) base = base.slice(0, -1)
  if (base.length > 5 && base.endsWith('ing')) base = undouble(base.slice(0, -3))
  else if (base.length > 4 && /[^e]ed$/.test(base)) base = undouble(base.slice(0, -2))
  return base.length > 3 ? base.replace(/e$/, '') : base
}

/** Camel case and underscores count as spaces; used for names of columns and files. */
export const nameWords = (name: string): string[] =>
  name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')

export const readText = (raw: string): Text => {
  const words: Word[] = []
  for (const match of raw.matchAll(/\p{Script=Han}+|[^\P{L}\p{Script=Han}]+\d*|\d+(?:\.\d+)?/gu))
    words.push({ raw: match[0], stem: stem(match[0]), at: match.index, end: match.index + match[0].length })
  return { raw, lower: raw.toLowerCase(), words }
}

/** Where a name stands in a text, word by word by stem, or null. Han names are found as they are. */
export const findName = (text: Text, name: string, exact = false): Span | null => {
  if (hasHan(name)) {
    const at = text.lower.indexOf(name.trim().toLowerCase())
    return at < 0 ? null : { at, end: at + name.trim().length }
  }
  const parts = readText(nameWords(name).join(' ')).words
  const first = parts[0]
  if (!first) return null
  const same = (a: Word | undefined, b: Word): boolean =>
    a !== undefined && (exact ? a.raw.toLowerCase() === b.raw.toLowerCase() : a.stem === b.stem)
  for (let i = 0; i + parts.length <= text.words.length; i++)
    if (parts.every((part, k) => same(text.words[i + k], part)))
      return { at: text.words[i]?.at ?? 0, end: text.words[i + parts.length - 1]?.end ?? 0 }
  return null
}

/** The same text with a span blanked; all other places keep their numbers. */
export const blank = (raw: string, span: Span): string =>
  raw.slice(0, span.at) + ' '.repeat(Math.max(0, span.end - span.at)) + raw.slice(span.end)

export const escapePattern = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

const stopWords = new Set(
  `a an the of in on at to for from by with and or is are was were be been do does did has have had what which who whom
   when where why how many much please tell me show list give find all any each every there this that these those it its
   their them they i you we our my your can could would should will say says said file files document text about line
   lines row rows column mention mentions mentioned contain contains containing data table content contents not no as
   than then also just quote between most least into per if so us but word words`.split(/\s+/),
)

export const isStopWord = (word: string): boolean => stopWords.has(word.toLowerCase())

const hanFiller =
  /请|帮我|告诉我|列出|显示|找出|引用|查找|搜索|文件|文档|文本|表格|日志|里面|中的|里的|关于|有关|提到|包含|含有|内容|是什么|什么|多少|哪些|哪个|几|行|的|了|吗|呢|有|在|是|说|中|里|和|与|都|所有|全部|怎么|如何/g

/** The words that carry the meaning of a question, Han text cut at its filler. */
export const contentWords = (raw: string): string[] => {
  const words = readText(raw).words.flatMap((word) =>
    hasHan(word.raw) ? word.raw.replace(hanFiller, ' ').split(/\s+/) : [word.raw],
  )
  return [...new Set(words.filter((word) => word.length > 1 || hasHan(word)).filter((w) => !isStopWord(w)))]
}

/** `2, 3, 4, 7` as `2-4, 7`; at most `max` pieces, the rest told as a count. */
export const showRanges = (numbers: readonly number[], max = 8): string => {
  const ranges: [number, number][] = []
  for (const n of numbers) {
    const last = ranges.at(-1)
    if (last && n === last[1] + 1) last[1] = n
    else ranges.push([n, n])
  }
  const shown = ranges.slice(0, max).map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`))
  return ranges.length > max ? `${shown.join(', ')}, …` : shown.join(', ')
}

/** Cut to a length a person reads, with a sign that it was cut. */
export const shorten = (text: string, max: number): string => cutText(text, max)
