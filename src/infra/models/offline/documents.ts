import { type Line, readDelimited, readMarkdown } from './delimited.ts'
import { readNumber } from './numbers.ts'
import { makeTable, type Row, type Table } from './tables.ts'

/** A file as it was read: its lines, the tables found in them, and whether all of it is there. */
export type Document = { file: string; lines: readonly Line[]; tables: readonly Table[]; complete: boolean }

type Fields = ReadonlyMap<string, string>

const flatten = (value: unknown, prefix: string, into: Map<string, string>): void => {
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    for (const [key, inner] of Object.entries(value)) flatten(inner, prefix ? `${prefix}.${key}` : key, into)
  } else into.set(prefix, Array.isArray(value) ? value.map(String).join(', ') : String(value ?? ''))
}

const tableOfFields = (
  file: string,
  name: string,
  unit: Table['unit'],
  items: readonly { place: number; fields: Fields }[],
) => {
  const names = [...new Set(items.flatMap(({ fields }) => [...fields.keys()]))]
  const rows: Row[] = items.map(({ place, fields }) => ({
    file,
    place,
    cells: names.map((key) => fields.get(key) ?? ''),
  }))
  return makeTable(name, unit, names, rows)
}

const fieldsOf = (value: unknown): Fields => {
  const fields = new Map<string, string>()
  flatten(value, '', fields)
  return fields
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** Lists of objects anywhere in a JSON value, each as a table named by its path. */
const jsonTables = (file: string, value: unknown, path: string, depth: number): Table[] => {
  if (depth > 4) return []
  if (Array.isArray(value)) {
    const items = value.flatMap((item, i) =>
      isObject(item) ? [{ place: i + 1, fields: fieldsOf(item) }] : [],
    )
    const table =
      items.length > 0 ? tableOfFields(file, path ? `${file} (${path})` : file, 'item', items) : null
    return table ? [table] : []
  }
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    jsonTables(file, inner, path ? `${path}.${key}` : key, depth + 1),
  )
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const readJson = (file: string, lines: readonly Line[]): Table[] | null => {
  const filled = lines.filter(({ text }) => text.trim() !== '')
  if (!/^\s*[[{]/.test(filled[0]?.text.replace(/^\uFEFF/, '') ?? '')) return null
  const whole = parse(
    lines
      .map(({ text }) => text)
      .join('\n')
      .replace(/^\uFEFF/, ''),
  )
  if (whole !== undefined) {
    const tables = jsonTables(file, whole, '', 0)
    if (tables.length > 0 || !isObject(whole)) return tables
    const single = tableOfFields(file, file, 'item', [{ place: 1, fields: fieldsOf(whole) }])
    return single ? [single] : []
  }
  const items = filled.flatMap(({ n, text }) => {
    const value = parse(text.trim().replace(/,$/, ''))
    return isObject(value) ? [{ place: n, fields: fieldsOf(value) }] : []
  })
  if (items.length === 0) return null
  const table = tableOfFields(file, file, 'line', items)
  return table ? [table] : []
}

const pair = /^\s*(?:[-*+]\s+|\d+[.)]\s+)?\**([\p{L}][^:：=|]{0,40}?)\**\s*[:：=]\s*\**\s*(\S.*?)\**\s*$/u

/** `key: value` blocks that repeat their keys are records; `label: number` lines are a table of two columns. */
const readPairs = (file: string, lines: readonly Line[]): Table[] => {
  const found = lines.map((line) => ({
    n: line.n,
    m: line.text.length < 300 ? pair.exec(line.text) : null,
    blank: line.text.trim() === '',
  }))
  const records: { place: number; fields: Map<string, string> }[] = []
  for (const { n, m, blank } of found) {
    const open = records.at(-1)
    if (blank && open && open.fields.size > 0) records.push({ place: n + 1, fields: new Map() })
    if (!m) continue
    const [, key = '', value = ''] = m
    const current = records.at(-1)
    if (!current || current.fields.has(key)) records.push({ place: n, fields: new Map([[key, value]]) })
    else {
      if (current.fields.size === 0) current.place = n
      current.fields.set(key, value)
    }
  }
  const full = records.filter(({ fields }) => fields.size > 1)
  const keys = full.map(({ fields }) => [...fields.keys()].sort().join('\n'))
  if (full.length > 1 && new Set(keys).size <= Math.max(1, full.length / 2)) {
    const table = tableOfFields(file, file, 'line', full)
    return table ? [table] : []
  }
  const rows = found.flatMap(({ n, m }) =>
    m && readNumber(m[2] ?? '') !== null ? [{ file, place: n, cells: [m[1] ?? '', m[2] ?? ''] }] : [],
  )
  const filled = found.filter(({ blank }) => !blank).length
  const table =
    rows.length > 1 && rows.length >= filled * 0.4 ? makeTable(file, 'line', ['item', 'value'], rows) : null
  return table ? [table] : []
}

/** All tables of a file, by what its name and its lines say it is. */
export const tablesOf = (file: string, lines: readonly Line[]): Table[] => {
  if (lines.length === 0) return []
  const json = /\.(?:csv|tsv|md|log)$/i.test(file) ? null : readJson(file, lines)
  if (json) return json
  const markdown = readMarkdown(file, lines)
  if (markdown.length > 0) return markdown
  const named = /\.(?:csv|tsv|tab|psv)$/i.test(file)
  if (!/\.(?:log|md)$/i.test(file)) {
    const table = readDelimited(file, lines, !named)
    if (table) return [table]
  }
  return named ? [] : readPairs(file, lines)
}
