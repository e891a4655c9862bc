import { answerCount, answerLines, type Found, looser, type Search, searchFor } from './answer-text.ts'
import { type Desk, done, type Step, waiting } from './desk.ts'
import { aboutMe } from './frames.ts'
import { searchFile } from './gather.ts'
import type { Asked } from './intent.ts'
import type { Call } from './read-request.ts'

/** Questions about lines: by the search tool, and by reading where that fails. */

const smallText = (file: string, desk: Desk): boolean => {
  const info = desk.request.files.find(({ name }) => name === file)
  return /\.(?:md|txt|markdown)$/i.test(file) && (info?.lines ?? 9999) <= 400
}

/** Matching lines of each file by the search tool; short texts are read too, for the paragraph under a heading. */
const searchAll = (
  files: readonly string[],
  search: Search,
  desk: Desk,
  context: boolean,
): { calls: Call[]; found: Found[]; failures: string[] } => {
  const calls: Call[] = []
  const found: Found[] = []
  const failures: string[] = []
  for (const file of files.slice(0, 12)) {
    const searched = searchFile(desk.request, file, search.pattern, desk.language)
    const read = context && smallText(file, desk) && searched.state !== 'failed' ? desk.open(file) : null
    if (searched.state === 'wanted') calls.push(searched.call)
    if (read?.state === 'wanted') calls.push(...read.calls)
    const lines = read?.state === 'ready' ? read.document.lines : []
    if (searched.state === 'ready')
      found.push({ file, lines: searched.lines, context: lines, more: searched.more })
    if (searched.state !== 'failed') continue
    const whole = desk.open(file)
    if (whole.state === 'wanted') calls.push(...whole.calls)
    else if (whole.state === 'ready')
      found.push({
        file,
        lines: whole.document.lines.filter(({ text }) => search.words.some((word) => word.test(text))),
        context: whole.document.lines,
      })
    else failures.push(searched.note)
  }
  return { calls, found, failures }
}

export const answerSearch = (asked: Asked, files: readonly string[], desk: Desk): Step => {
  const first = searchFor(asked.term?.words ?? '', asked.term?.exact ?? false)
  for (const search of asked.term?.exact ? [first, looser(first)] : [first]) {
    const { calls, found, failures } = searchAll(files, search, desk, asked.manner === 'lines')
    if (calls.length > 0) return waiting('search', calls)
    const nothing = found.every(({ lines }) => lines.length === 0)
    if (nothing && found.length > 0 && search === first && asked.term?.exact) continue
    if (found.length === 0) return done({ text: failures.join('\n') || aboutMe[desk.language], empty: true })
    const finding =
      asked.manner === 'count_lines'
        ? answerCount(found, search, desk.ledger, desk.language)
        : answerLines(found, search, desk.language)
    return done({ ...finding, text: [finding.text, ...failures].join('\n') })
  }
  return done({ text: aboutMe[desk.language], empty: true })
}
