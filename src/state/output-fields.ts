import { z } from 'zod'
import type { Json, OutputType } from './runtime-state.ts'

/** The content of one output piece against its type: what a model wrote goes in, what the state keeps comes out. */

/** `error` completes "the content of piece 'x' …" and says what to write instead. */
export type FieldCheck = { ok: true; value: Json } | { ok: false; error: string }

const valid = (value: Json): FieldCheck => ({ ok: true, value })
const invalid = (error: string): FieldCheck => ({ ok: false, error })

/** A value as it appears in an error: short, and of any kind. */
const toShortText = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value)
  return text.length <= 60 ? text : `${text.slice(0, 59).toWellFormed()}…`
}

const numeric = /^[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/

/** A finite number, or its text ("1,234.50"). Refuses whole numbers that a double would change. */
const checkNumber = (value: unknown): FieldCheck => {
  const text = typeof value === 'string' ? value.trim() : value
  const isText = typeof text === 'string' && numeric.test(text)
  const number = isText ? Number(text.replaceAll(',', '')) : text
  if (typeof number !== 'number' || !Number.isFinite(number))
    return invalid(`must be a number such as 1234.5, without units, not ${toShortText(value)}`)
  if (isText && /^[+-]?[\d,]+$/.test(text) && !Number.isSafeInteger(number))
    return invalid(`has more digits than a number can hold: ${toShortText(value)}`)
  return valid(number)
}

const truths: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  [true, true],
  ['true', true],
  ['yes', true],
  ['是', true],
  [false, false],
  ['false', false],
  ['no', false],
  ['否', false],
])

const checkBoolean = (value: unknown): FieldCheck => {
  const truth = truths.get(typeof value === 'string' ? value.trim().toLowerCase() : value)
  return truth === undefined ? invalid(`must be true or false, not ${toShortText(value)}`) : valid(truth)
}

const checkDate = (value: unknown): FieldCheck => {
  const date = typeof value === 'string' ? normalizeDate(value) : null
  if (date !== null) return valid(date)
  return invalid(
    `must be a date that exists, as 2025-01-31 or 2025-01-31T18:30:00Z, not ${toShortText(value)}`,
  )
}

const checkJson = (value: unknown): FieldCheck => {
  const parsed = z.json().safeParse(value)
  return parsed.success ? valid(parsed.data) : invalid(`must be JSON, not ${toShortText(value)}`)
}

/** The content in its one form (numbers as numbers, dates as ISO, tables as columns and rows), or what is wrong. */
export const checkFieldValue = (type: OutputType, value: unknown): FieldCheck => {
  switch (type) {
    case 'text':
      return typeof value === 'string' ? valid(value) : invalid(`must be text, not ${toShortText(value)}`)
    case 'number':
      return checkNumber(value)
    case 'boolean':
      return checkBoolean(value)
    case 'date':
      return checkDate(value)
    case 'list':
      return Array.isArray(value) ? checkJson(value) : invalid(`must be a list, not ${toShortText(value)}`)
    case 'table':
      return normalizeTable(value)
    case 'json':
      return checkJson(value)
    default:
      throw type satisfies never
  }
}

const cell = { type: ['string', 'number', 'boolean', 'null'] }

/** JSON Schema of a piece's content, to ask a model for it; `checkPiece` takes all that it describes. */
export const fieldJsonSchema = (type: OutputType): Record<string, unknown> => {
  switch (type) {
    case 'text':
      return { type: 'string' }
    case 'number':
      return { type: 'number' }
    case 'boolean':
      return { type: 'boolean' }
    case 'date':
      return { type: 'string', description: 'ISO 8601 date or date-time: 2025-01-31 or 2025-01-31T18:30:00Z' }
    case 'list':
      return { type: 'array', items: {} }
    case 'table':
      return {
        type: 'object',
        description: 'Every row has one cell for each column.',
        properties: {
          columns: { type: 'array', items: { type: 'string' } },
          rows: { type: 'array', items: { type: 'array', items: cell } },
        },
        required: ['columns', 'rows'],
        additionalProperties: false,
      }
    case 'json':
      return {}
    default:
      throw type satisfies never
  }
}

const day = /^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})/
const chineseDay = /^(\d{4})年(\d{1,2})月(\d{1,2})日/
const time = /^(?:[Tt]|\s+)(\d{1,2}):(\d{2})(?::(\d{2})(\.\d{1,9})?)?\s*([Zz]|[+-]\d{2}:?\d{2})?$/

const two = (text: string): string => text.padStart(2, '0')

const daysIn = (year: number, month: number): number => {
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  return [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0
}

const exists = (year: string, month: string, date: string): boolean =>
  Number(date) >= 1 && Number(date) <= daysIn(Number(year), Number(month))

const normalizeZone = (zone: string): string | null => {
  if (/^z?$/i.test(zone)) return zone.toUpperCase()
  const [hours, minutes] = [zone.slice(1, 3), zone.slice(-2)]
  return Number(hours) <= 14 && Number(minutes) <= 59 ? `${zone.charAt(0)}${hours}:${minutes}` : null
}

const normalizeTime = (text: string): string | null => {
  const [, hours = '', minutes = '', seconds = '00', fraction = '', zone = ''] = time.exec(text) ?? []
  if (hours === '' || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return null
  const zoned = normalizeZone(zone)
  return zoned === null ? null : `T${two(hours)}:${minutes}:${seconds}${fraction}${zoned}`
}

/**
 * The ISO 8601 form of a date (`2025/1/3` -> `2025-01-03`) or date-time, which keeps its offset, or its lack of one;
 * null for anything else and for days that do not exist. Year first only: 3/1/2025 could be two days.
 */
const normalizeDate = (text: string): string | null => {
  const trimmed = text.trim()
  const plain = day.exec(trimmed)
  const parts = plain ? [plain[1], plain[3], plain[4]] : chineseDay.exec(trimmed)?.slice(1)
  const [year = '', month = '', date = ''] = parts ?? []
  if (!exists(year, month, date)) return null
  const iso = `${year}-${two(month)}-${two(date)}`
  const rest = trimmed.slice((plain ?? chineseDay.exec(trimmed))?.[0].length)
  if (rest === '') return iso
  const clock = normalizeTime(rest)
  return clock && iso + clock
}

const cellSchema = z.union([z.string(), z.number(), z.boolean(), z.null()])
const tableSchema = z.strictObject({ columns: z.array(z.string()), rows: z.array(z.array(z.json())) })
const recordsSchema = z.array(z.record(z.string(), cellSchema))

type NormalizedTable = { ok: true; value: Json } | { ok: false; error: string }

const tableHint =
  'must be a table {"columns": ["a", "b"], "rows": [[1, 2]]} or a list of flat objects with the same keys'

const fromRecords = (records: readonly Record<string, Json>[]): NormalizedTable => {
  const columns = Object.keys(records[0] ?? {})
  const odd = records.findIndex(
    (record) =>
      Object.keys(record).length !== columns.length || columns.some((key) => !Object.hasOwn(record, key)),
  )
  if (odd >= 0) return { ok: false, error: `${tableHint}; object ${odd + 1} has other keys than the first` }
  const rows = records.map((record) => columns.map((key) => record[key] ?? null))
  return { ok: true, value: { columns, rows } }
}

const fromRows = (table: z.infer<typeof tableSchema>): NormalizedTable => {
  const odd = table.rows.findIndex((row) => row.length !== table.columns.length)
  if (odd < 0) return { ok: true, value: table }
  const cells = table.rows[odd]?.length ?? 0
  return {
    ok: false,
    error: `${tableHint}; row ${odd + 1} has ${cells} cells for ${table.columns.length} columns`,
  }
}

/** A table as `{columns, rows}` with every row as long as the columns, from that or from a list of flat objects. */
const normalizeTable = (value: unknown): NormalizedTable => {
  if (Array.isArray(value)) {
    const records = recordsSchema.safeParse(value)
    return records.success ? fromRecords(records.data) : { ok: false, error: tableHint }
  }
  const table = tableSchema.safeParse(value)
  return table.success ? fromRows(table.data) : { ok: false, error: tableHint }
}
