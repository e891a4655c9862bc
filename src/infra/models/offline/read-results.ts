import type { Line } from './delimited.ts'
import type { Made } from './read-request.ts'

/** What came back from the tools, read from their plain text. */

/** Results over 32 KB are shown by their start only. */
export const wholeBytes = 24_000

/** The numbered lines a read_file result shows, and the number of lines of the whole file. */
const readPage = (result: string): { lines: Line[]; total: number | null; fitting: number | null } => {
  const all = result.split('\n')
  if (/^File '.*' is empty\.?\s*$/.test(result)) return { lines: [], total: 0, fitting: null }
  const head = /^File '.*', lines (\d+)-(\d+) of (\d+):/.exec(all[0] ?? '')
  const cut = /^\[cut: .*; (\d+) bytes in all; /.exec(all.at(-1) ?? '')
  const count = head ? Number(head[2]) - Number(head[1]) + 1 : 0
  const lines = all.flatMap((line) => {
    const m = /^(\d+): ?(.*)$/s.exec(line.replace(/\r$/, ''))
    return m ? [{ n: Number(m[1]), text: m[2] ?? '' }] : []
  })
  // what would have been shown whole, where this was cut
  const fitting = cut && count > 0 ? Math.floor(wholeBytes / (Number(cut[1]) / count)) : null
  return { lines, total: head ? Number(head[3]) : null, fitting }
}

export type Matches = { lines: Line[]; more: number }

/** The matches of a search_file_content result, and how many more there are than it shows; null for any other text. */
export const readMatches = (result: string): Matches | null => {
  if (/^No matches found in /.test(result)) return { lines: [], more: 0 }
  const m = /^Matches in '.*?': \[Line /s.exec(result)
  if (!m) return null
  const more = Number(/\] \(and (\d+) more matching lines\)/.exec(result)?.[1] ?? 0)
  const body = result
    .slice(result.indexOf('[Line ', m.index) + 1)
    .replace(/(?: \((?:and \d+ more matching lines|only the first [^)]*)\))+\s*$/, '')
    .replace(/\]\s*$/, '')
  const lines = body.split(/\], \[(?=Line \d+: )/).flatMap((part) => {
    const match = /^Line (\d+): ?(.*)$/s.exec(part)
    return match ? [{ n: Number(match[1]), text: match[2] ?? '' }] : []
  })
  return { lines, more }
}

/** The value of a calculate result, null when it holds none. */
export const readValue = (result: string): number | null => {
  const text = result
    .slice(result.lastIndexOf('=') + 1)
    .trim()
    .replaceAll(',', '')
  const value = Number(text)
  return text !== '' && Number.isFinite(value) ? value : null
}

export type FileRead = {
  lines: readonly Line[]
  total: number | null
  /** Lines got by one call at most, so that a cut result is not asked for again in the same size. */
  longest: number
  reads: number
  error: string | null
}

/** All that was read of one file so far, by read_file or, where that failed, by a search for every line. */
export const readSoFar = (made: readonly Made[], file: string): FileRead => {
  const byNumber = new Map<number, Line>()
  let total: number | null = null
  let longest = 0
  let error: string | null = null
  const reads = made.filter(
    (call) => call.name === 'read_file' && call.args.file_path === file && call.result !== null,
  )
  for (const call of reads) {
    const page = readPage(call.result ?? '')
    if (call.failed || (page.lines.length === 0 && page.total === null)) error = call.result
    total = page.total ?? total
    longest = page.fitting ?? Math.max(longest, 100, page.lines.length)
    for (const line of page.lines) byNumber.set(line.n, line)
  }
  if (byNumber.size === 0)
    for (const call of made) {
      if (call.name !== 'search_file_content' || call.args.file_path !== file || call.args.pattern !== '.')
        continue
      const matches = readMatches(call.result ?? '')
      for (const line of matches?.lines ?? []) byNumber.set(line.n, line)
      if (matches && matches.more > 0) total = (matches.lines.at(-1)?.n ?? 0) + matches.more
      if (byNumber.size > 0) error = null
    }
  return {
    lines: [...byNumber.values()].sort((a, b) => a.n - b.n),
    total,
    longest,
    reads: reads.length,
    error,
  }
}
