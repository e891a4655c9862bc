import type { TextLanguage } from '../../state/text/text-language.ts'
import type { Finding } from './answers.ts'
import { isFailure, type ToolUse, useTool } from './request.ts'
import { contentWords, escapePattern, hasHan, stem, stemsOf } from './words.ts'

/** Questions on texts: the lines that hold their words, found by search_file_content. */

const counting = /\bhow (?:many|often)\b|\b(?:count|number of)\b|多少|几[行次处]/i
const mostShown = 8
type Terms = { words: readonly string[]; pattern: string }

/** What is in quotation marks or in capitals stands as it is; of other words the stem, in any case. */
const readTerms = (question: string, files: readonly string[]): Terms | null => {
  const quoted = /["“「]([^"“「”」]+)["”」]/.exec(question)?.[1]
  if (quoted) return { words: [quoted], pattern: escapePattern(quoted) }
  const named = new Set(files.flatMap(contentWords))
  const words = contentWords(question).filter((word) => !named.has(word))
  const capitals = words.filter((word) => /^[A-Z]{2,}$/.test(word))
  if (capitals.length > 0) return { words: capitals, pattern: capitals.join('|') }
  const stems = words.map((word) => escapePattern(hasHan(word) ? word : stem(word)))
  return words.length === 0 ? null : { words, pattern: `(?i)${stems.join('|')}` }
}

type Line = { line: string | undefined; text: string }
const lineEnd = /(?<=\]), (?=\[Line )|\n/
const linePattern = /^\[Line (\d+)(?!\d)[^:\]]*: (.*)\](?= \(|$)/

/** How many lines a result speaks of, also where it shows fewer. */
const countIn = (result: string, shown: number): number =>
  Number(/Found (\d+) lines?/.exec(result)?.[1] ?? shown + Number(/\(and (\d+) more/.exec(result)?.[1] ?? 0))

type Search = Generator<ToolUse[], Finding | null, string[]>

/** Searches each file for the words of a question; null where it has no words to search for. */
export function* searchTexts(question: string, language: TextLanguage, files: readonly string[]): Search {
  const terms = readTerms(question, files)
  if (terms === null) return null
  const { words, pattern } = terms
  const what = words.join(' ')
  const isCount = counting.test(question)
  const say = (en: string, zh: string): string => (language === 'zh' ? zh : en)
  const score = (text: string): number => words.filter((word) => stemsOf(text).includes(stem(word))).length
  const describe = (file: string, lines: readonly Line[], total: number): string => {
    if (total === 0)
      return say(`Nothing in ${file} mentions "${what}".`, `${file} 中没有提到“${what}”的内容。`)
    if (isCount)
      return say(`Lines of ${file} with "${what}": **${total}**`, `${file} 中有 **${total}** 行提到“${what}”`)
    const best = lines.toSorted((a, b) => score(b.text) - score(a.text)).slice(0, mostShown)
    const quotes = best.map(({ line, text }) => say(`- line ${line}: ${text}`, `- 第 ${line} 行：${text}`))
    return [say(`What ${file} says about "${what}":`, `${file} 中关于“${what}”的内容：`), ...quotes].join(
      '\n',
    )
  }
  const results = yield files.map((file_path) => useTool('search_file_content', { file_path, pattern }))
  const found = results.map((result, at) => {
    const file = files[at] ?? ''
    if (isFailure(result)) return { text: `${file}: ${result}`, total: 0 }
    const lines = result.split(lineEnd).flatMap((part) => {
      const [whole, line, text = ''] = linePattern.exec(part.slice(part.indexOf('[Line '))) ?? []
      return whole === undefined ? [] : [{ line, text }]
    })
    const total = countIn(result, lines.length)
    return { text: describe(file, lines, total), total }
  })
  const total = found.reduce((sum, one) => sum + one.total, 0)
  const shown = found.filter((one) => one.total > 0 || total === 0)
  return { text: shown.map(({ text }) => text).join('\n\n'), value: isCount ? total : null }
}
