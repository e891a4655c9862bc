import { z } from 'zod'
import type { Json } from './runtime-state.ts'

const cellSchema = z.union([z.string(), z.number(), z.boolean(), z.null()])
const tableSchema = z.strictObject({ columns: z.array(z.string()), rows: z.array(z.array(z.json())) })
const recordsSchema = z.array(z.record(z.string(), cellSchema))

type Table = { ok: true; value: Json } | { ok: false; fault: string }

const wanted =
  'must be a table {"columns": ["a", "b"], "rows": [[1, 2]]} or a list of flat objects with the same keys'

const fromRecords = (records: readonly Record<string, Json>[]): Table => {
  const columns = Object.keys(records[0] ?? {})
  const odd = records.findIndex(
    (record) =>
      Object.keys(record).length !== columns.length || columns.some((key) => !Object.hasOwn(record, key)),
  )
  if (odd >= 0) return { ok: false, fault: `${wanted}; object ${odd + 1} has other keys than the first` }
  const rows = records.map((record) => columns.map((key) => record[key] ?? null))
  return { ok: true, value: { columns, rows } }
}

const fromRows = (table: z.infer<typeof tableSchema>): Table => {
  const odd = table.rows.findIndex((row) => row.length !== table.columns.length)
  if (odd < 0) return { ok: true, value: table }
  const cells = table.rows[odd]?.length ?? 0
  return {
    ok: false,
    fault: `${wanted}; row ${odd + 1} has ${cells} cells for ${table.columns.length} columns`,
  }
}

/** A table as `{columns, rows}` with every row as long as the columns, from that or from a list of flat objects. */
export const normaliseTable = (value: unknown): Table => {
  if (Array.isArray(value)) {
    const records = recordsSchema.safeParse(value)
    return records.success ? fromRecords(records.data) : { ok: false, fault: wanted }
  }
  const table = tableSchema.safeParse(value)
  return table.success ? fromRows(table.data) : { ok: false, fault: wanted }
}
