import { readDate } from './dates.ts'
import { readNumber } from './numbers.ts'
import { makeTable, type Row, type Table } from './tables.ts'

/** CSV, TSV and their like, and Markdown tables, from numbered lines of a file. */

export type Line = { n: number; text: string }

const delimiters = [',', '\t', ';', '|'] as const

/** The cells of one record, quotes read as RFC 4180 says; `open` when a quoted field goes on in the next line. */
export const splitRecord = (text: string, delimiter: string): { cells: string[]; open: boolean } => {
  if (!text.includes('"')) return { cells: text.split(delimiter), open: false }
  const cells: string[] = []
  let cell = ''
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const c = text[i] ?? ''
    if (quoted && c === '"' && text[i + 1] === '"') {
      cell += '"'
      i++
    } else if (c === '"' && (quoted || cell.trim() === '')) {
      if (!quoted) cell = ''
      quoted = !quoted
    } else if (!quoted && c === delimiter) {
      cells.push(cell)
      cell = ''
    } else cell += c
  }
  cells.push(cell)
  return { cells, open: quoted }
}

const recordsOf = (file: string, lines: readonly Line[], delimiter: string): Row[] => {
  const rows: Row[] = []
  for (let i = 0; i < lines.length; i++) {
    const start = lines[i] as Line
    if (start.text.trim() === '' || /^\s*#/.test(start.text)) continue
    let text = start.text
    let record = splitRecord(text, delimiter)
    for (let more = 0; record.open && more < 50 && i + 1 < lines.length; more++) {
      i++
      text += `\n${lines[i]?.text ?? ''}`
      record = splitRecord(text, delimiter)
    }
    rows.push({ file, place: start.n, cells: record.cells })
  }
  return rows
}

const usualWidth = (rows: readonly Row[]): { width: number; share: number } => {
  const counts = new Map<number, number>()
  for (const { cells } of rows) counts.set(cells.length, (counts.get(cells.length) ?? 0) + 1)
  const [width, count] = [...counts].sort((a, b) => b[1] - a[1] || b[0] - a[0])[0] ?? [0, 0]
  return { width, share: rows.length === 0 ? 0 : count / rows.length }
}

const detectDelimiter = (lines: readonly Line[], strict: boolean): string | null => {
  const sample = lines.slice(0, 60)
  const fits = delimiters
    .map((delimiter) => ({ delimiter, ...usualWidth(recordsOf('', sample, delimiter)) }))
    .filter(({ width, share }) => width > 1 && share >= (strict ? 0.9 : 0.5))
    .sort((a, b) => Math.round(b.share * 4) - Math.round(a.share * 4) || b.width - a.width)
  return fits[0]?.delimiter ?? null
}

const isData = (cell: string): boolean => readNumber(cell) !== null || readDate(cell) !== null

/** A first row is a header when no cell of it is a number or date, and the rows below differ from it. */
const looksLikeHeader = (first: readonly string[], others: readonly (readonly string[])[]): boolean => {
  const names = first.map((cell) => cell.trim())
  if (names.every((name) => name === '') || names.some((name) => name.length > 60)) return false
  if (names.some((name) => isData(name) && !/^(?:19|20)\d{2}$/.test(name))) return false
  const filled = names.filter((name) => name !== '')
  return new Set(filled).size === filled.length && !others.some((row) => row.join('\n') === first.join('\n'))
}

/** A delimited table, or null when the lines are prose. `strict` for files whose name does not say CSV. */
export const readDelimited = (file: string, lines: readonly Line[], strict: boolean): Table | null => {
  const delimiter = detectDelimiter(lines, strict)
  if (delimiter === null) return null
  const all = recordsOf(file, lines, delimiter)
  const { width } = usualWidth(all)
  const rows = all.filter(({ cells }) => cells.length > 1 && cells.length >= width * 0.6)
  const [first, ...rest] = rows
  if (!first || rest.length === 0) return null
  if (strict && (rest.length < 2 || first.cells.some((cell) => cell.trim().split(/\s+/).length > 5)))
    return null
  const header = looksLikeHeader(
    first.cells,
    rest.slice(0, 20).map((row) => row.cells),
  )
  const names = header ? first.cells.map(unquote) : first.cells.map((_, i) => `column ${i + 1}`)
  return makeTable(file, 'line', names, header ? rest : rows)
}

const unquote = (text: string): string => text.replace(/^\uFEFF/, '').trim()

const isRule = (text: string): boolean =>
  /^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$/.test(text) && text.includes('|')

const pipeCells = (text: string): string[] =>
  text
    .trim()
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) =>
      cell
        .trim()
        .replace(/\\\|/g, '|')
        .replace(/^\*\*(.*)\*\*$/, '$1'),
    )

/** Every Markdown table of a text, named by the heading above it. */
export const readMarkdown = (file: string, lines: readonly Line[]): Table[] => {
  const tables: Table[] = []
  let heading = ''
  for (let i = 0; i < lines.length; i++) {
    const text = lines[i]?.text ?? ''
    const title = /^#{1,6}\s+(.+)/.exec(text)
    if (title) heading = title[1] ?? ''
    if (!text.includes('|') || !isRule(lines[i + 1]?.text ?? '')) continue
    const rows: Row[] = []
    let next = i + 2
    for (; next < lines.length && (lines[next]?.text ?? '').includes('|'); next++)
      rows.push({ file, place: lines[next]?.n ?? 0, cells: pipeCells(lines[next]?.text ?? '') })
    const table = makeTable(heading ? `${file} (${heading})` : file, 'line', pipeCells(text), rows)
    if (table) tables.push(table)
    i = next - 1
  }
  return tables
}
