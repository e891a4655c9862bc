import type { Line } from './delimited.ts'
import { type Document, tablesOf } from './documents.ts'
import { say } from './frames.ts'
import type { Call, FileInfo, Made, Request } from './read-request.ts'
import { wholeBytes as pageBytes, readMatches, readSoFar } from './read-results.ts'
import type { Language } from './text.ts'

/** What to read or search next, and what is there already. */

export type Gathered =
  | { state: 'wanted'; calls: readonly Call[] }
  | { state: 'ready'; document: Document; note: string }
  | { state: 'failed'; note: string }

const mostLines = 2000
const mostReads = 60
const readsAtOnce = 8

const sameCall = (a: Call, b: Call): boolean =>
  a.name === b.name &&
  JSON.stringify(Object.entries(a.args).sort()) === JSON.stringify(Object.entries(b.args).sort())

/** True when a call was answered already, refused, or asked twice in vain. */
export const isSpent = (made: readonly Made[], call: Call): boolean => {
  const before = made.filter((m) => sameCall(m, call))
  return before.some((m) => m.result !== null) || before.length > 2
}

const pageLines = (file: FileInfo | undefined, longest: number): number => {
  if (longest > 0) return Math.max(10, Math.min(mostLines, longest))
  if (!file?.bytes || !file.lines || file.bytes <= pageBytes) return mostLines
  return Math.max(20, Math.min(mostLines, Math.floor(pageBytes / (file.bytes / file.lines + 8))))
}

const firstGap = (lines: readonly Line[]): number => {
  let next = 1
  for (const { n } of lines) {
    if (n > next) break
    if (n === next) next++
  }
  return next
}

/** Pages from `start` on; the first read of a small file names no range. */
const pages = (file: string, start: number, size: number, total: number | null): Call[] => {
  if (start === 1 && (total === null || total <= size))
    return [{ name: 'read_file', args: { file_path: file } }]
  const calls: Call[] = []
  const last = total ?? start + size - 1
  for (let from = start; from <= last && calls.length < readsAtOnce; from += size)
    calls.push({
      name: 'read_file',
      args: { file_path: file, start_line: from, end_line: Math.min(last, from + size - 1) },
    })
  return calls
}

const documentOf = (file: string, lines: readonly Line[], complete: boolean): Document => ({
  file,
  lines,
  complete,
  tables: tablesOf(file, lines),
})

/** The whole of one file, read page by page; by a search for every line where read_file is not there or fails. */
export const gather = (request: Request, name: string, language: Language): Gathered => {
  const info = request.files.find((file) => file.name === name)
  const soFar = readSoFar(request.made, name)
  const total = soFar.total ?? info?.lines ?? null
  const next = firstGap(soFar.lines)
  const bySearch: Call = { name: 'search_file_content', args: { file_path: name, pattern: '.' } }
  const empty = total === 0 && soFar.reads > 0
  if (
    !empty &&
    (soFar.lines.length === 0 || (total !== null && next <= total)) &&
    soFar.reads < mostReads &&
    request.tools.has('read_file') &&
    soFar.error === null
  ) {
    const size =
      soFar.reads > 0 && soFar.lines.length > 0 ? pageLines(info, soFar.longest) : pageLines(info, 0)
    const calls = pages(name, next, size, total).filter((call) => !isSpent(request.made, call))
    if (calls.length > 0) return { state: 'wanted', calls }
  }
  if (soFar.lines.length === 0 && !empty) {
    if (request.tools.has('search_file_content') && !isSpent(request.made, bySearch))
      return { state: 'wanted', calls: [bySearch] }
    return { state: 'failed', note: say.unreadable(language, name, soFar.error ?? 'no tool for it') }
  }
  const last = soFar.lines.at(-1)?.n ?? 0
  const complete =
    total === null ||
    soFar.lines.length >= total ||
    (soFar.error !== null || soFar.reads === 0 ? last >= total : false)
  const note = complete ? '' : say.partial(language, name, soFar.lines.length, total)
  return { state: 'ready', document: documentOf(name, soFar.lines, complete), note }
}

export type Searched =
  | { state: 'wanted'; call: Call }
  | { state: 'ready'; lines: Line[]; more: number }
  | { state: 'failed'; note: string }

/** The lines of a file that match, by the search tool. */
export const searchFile = (request: Request, file: string, pattern: string, language: Language): Searched => {
  const call: Call = { name: 'search_file_content', args: { file_path: file, pattern } }
  const done = request.made.filter((made) => sameCall(made, call))
  const matches = done
    .map((made) => (made.failed || made.result === null ? null : readMatches(made.result)))
    .find((found) => found !== null)
  if (matches) return { state: 'ready', ...matches }
  if (request.tools.has('search_file_content') && !isSpent(request.made, call))
    return { state: 'wanted', call }
  return { state: 'failed', note: say.unreadable(language, file, done.at(-1)?.result ?? 'no tool for it') }
}
