import { z } from 'zod'
import { describeLimit, type Outcome } from './outcome.ts'
import type { Json, OutputType, RuntimeState } from './runtime-state.ts'
import { cutText } from './text/cut-text.ts'
import type { ReadonlyAction } from './turn.ts'

/** The content of one output piece against its type: what a model wrote goes in, what the state keeps comes out. */

/** A field whose content is not valid, and why. */
export type OutputError = { id: string; error: string }

const errorsSchema = z.array(z.object({ id: z.string(), error: z.string() }))

/** The fields of a completed run that never had a valid content: as its last answer says, or all where it wrote none. */
export const listOutputErrors = (
  actions: readonly ReadonlyAction[],
  structure: RuntimeState['output_structure'],
  outcome: Outcome,
): OutputError[] => {
  if (structure.length === 0 || outcome.status !== 'completed') return []
  const written = actions.findLast(({ context }) => context?.usage_type === 'output')
  if (!written)
    return structure.map(({ id }) => ({ id, error: `was not written: ${describeLimit(outcome.reason)}` }))
  return errorsSchema.safeParse(written.result.errors).data ?? []
}

/** `error` completes "the content of piece 'x' …" and says what to write instead. */
export type FieldCheck = { ok: true; value: Json } | { ok: false; error: string }

const valid = (value: Json): FieldCheck => ({ ok: true, value })
const invalid = (error: string): FieldCheck => ({ ok: false, error })

/** A value as it appears in an error: short, and of any kind. */
const toShortText = (value: unknown): string => cutText(JSON.stringify(value) ?? String(value), 60)

const mustBe = (expected: string, value: unknown): FieldCheck =>
  invalid(`must be ${expected}, not ${toShortText(value)}`)

const numeric = /^[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/

/** A finite number, or its text ("1,234.50"). Refuses whole numbers that a double would change. */
const checkNumber = (value: unknown): FieldCheck => {
  const text = typeof value === 'string' ? value.trim() : value
  const isText = typeof text === 'string' && numeric.test(text)
  const number = isText ? Number(text.replaceAll(',', '')) : text
  if (typeof number !== 'number' || !Number.isFinite(number))
    return mustBe('a number such as 1234.5, without units', value)
  if (isText && /^[+-]?[\d,]+$/.test(text) && !Number.isSafeInteger(number))
    return invalid(`has more digits than a number can hold, so ask for a text: ${toShortText(value)}`)
  return valid(number)
}

const checkBoolean = (value: unknown): FieldCheck => {
  const truth = typeof value === 'string' ? value.trim().toLowerCase() : value
  if ([true, 'true', 'yes', '是'].includes(truth as string | boolean)) return valid(true)
  if ([false, 'false', 'no', '否'].includes(truth as string | boolean)) return valid(false)
  return mustBe('true or false', value)
}

const checkJson = (value: unknown): FieldCheck => {
  const parsed = z.json().safeParse(value)
  return parsed.success ? valid(parsed.data) : mustBe('JSON', value)
}

const day = /^(\d{4})(?:([-/.])(\d{1,2})\2(\d{1,2})|年(\d{1,2})月(\d{1,2})日)/
const time =
  /^(?:[Tt]|\s+)([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(\.\d{1,9})?)?\s*(?:([Zz])|([+-](?:0\d|1[0-4])):?([0-5]\d))?$/

const normalizeTime = (text: string): string | null => {
  const match = time.exec(text)
  if (!match) return null
  const [, hours = '', minutes, seconds = '00', fraction = '', utc = '', offset, offsetMinutes] = match
  const zone = offset ? `${offset}:${offsetMinutes}` : utc.toUpperCase()
  return `T${hours.padStart(2, '0')}:${minutes}:${seconds}${fraction}${zone}`
}

/**
 * The ISO 8601 form of a date (`2025/1/3` -> `2025-01-03`) or date-time, which keeps its offset, or its lack of one;
 * null for anything else and for days that do not exist. Year first only: 3/1/2025 could be two days.
 */
const normalizeDate = (text: string): string | null => {
  const trimmed = text.trim()
  const [start = '', year = '', , month, date, monthHan = '', dateHan = ''] = day.exec(trimmed) ?? []
  const iso = `${year}-${(month ?? monthHan).padStart(2, '0')}-${(date ?? dateHan).padStart(2, '0')}`
  if (!z.iso.date().safeParse(iso).success) return null
  const rest = trimmed.slice(start.length)
  const clock = rest && normalizeTime(rest)
  return clock === null ? null : iso + clock
}

const checkDate = (value: unknown): FieldCheck => {
  const date = typeof value === 'string' ? normalizeDate(value) : null
  if (date !== null) return valid(date)
  return mustBe('a date that exists, as 2025-01-31 or 2025-01-31T18:30:00Z', value)
}

const cellSchema = z.union([z.string(), z.number(), z.boolean(), z.null()])
const tableSchema = z.strictObject({ columns: z.array(z.string()), rows: z.array(z.array(z.json())) })
const recordsSchema = z.array(z.record(z.string(), cellSchema))

const invalidTable = (detail = ''): FieldCheck =>
  invalid(
    `must be a table {"columns": ["a", "b"], "rows": [[1, 2]]} or a list of flat objects with the same keys${detail}`,
  )

const fromRecords = (records: z.infer<typeof recordsSchema>): FieldCheck => {
  const columns = Object.keys(records[0] ?? {})
  const odd = records.findIndex(
    (record) =>
      Object.keys(record).length !== columns.length || columns.some((key) => !Object.hasOwn(record, key)),
  )
  if (odd >= 0) return invalidTable(`; object ${odd + 1} has other keys than the first`)
  return valid({ columns, rows: records.map((record) => columns.map((key) => record[key] ?? null)) })
}

const fromRows = (table: z.infer<typeof tableSchema>): FieldCheck => {
  const { columns, rows } = table
  const odd = rows.findIndex((row) => row.length !== columns.length)
  if (odd < 0) return valid(table)
  return invalidTable(`; row ${odd + 1} has ${rows[odd]?.length} cells for ${columns.length} columns`)
}

/** A table as `{columns, rows}` with every row as long as the columns, from that or from a list of flat objects. */
const checkTable = (value: unknown): FieldCheck => {
  const records = recordsSchema.safeParse(value)
  if (records.success) return fromRecords(records.data)
  const table = tableSchema.safeParse(value)
  return table.success ? fromRows(table.data) : invalidTable()
}

type FieldType = { schema: Record<string, unknown>; check(value: unknown): FieldCheck }

const fieldTypes: Record<OutputType, FieldType> = {
  text: {
    schema: { type: 'string' },
    check: (value) => (typeof value === 'string' ? valid(value) : mustBe('text', value)),
  },
  number: { schema: { type: 'number' }, check: checkNumber },
  boolean: { schema: { type: 'boolean' }, check: checkBoolean },
  date: {
    schema: {
      type: 'string',
      description: 'ISO 8601 date or date-time: 2025-01-31 or 2025-01-31T18:30:00Z',
    },
    check: checkDate,
  },
  list: {
    schema: { type: 'array', items: {} },
    check: (value) => (Array.isArray(value) ? checkJson(value) : mustBe('a list', value)),
  },
  table: {
    schema: {
      type: 'object',
      description: 'Every row has one cell for each column.',
      properties: {
        columns: { type: 'array', items: { type: 'string' } },
        rows: {
          type: 'array',
          items: { type: 'array', items: { type: ['string', 'number', 'boolean', 'null'] } },
        },
      },
      required: ['columns', 'rows'],
      additionalProperties: false,
    },
    check: checkTable,
  },
  json: { schema: {}, check: checkJson },
}

/** The content in its one form (numbers as numbers, dates as ISO, tables as columns and rows), or what is wrong. */
export const checkFieldValue = (type: OutputType, value: unknown): FieldCheck => fieldTypes[type].check(value)

/** JSON Schema of a piece's content, to ask a model for it; `checkFieldValue` takes all that it describes. */
export const fieldJsonSchema = (type: OutputType): Record<string, unknown> => fieldTypes[type].schema
