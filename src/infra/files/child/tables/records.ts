import { readText } from '../formats/text.ts'
import { bounds, Unreadable } from '../protocol.ts'
import { encodingOf, textOf } from './decode.ts'
import { columnNames, type RowSource } from './source.ts'

/** JSON and JSON lines: lists of objects are tables, nested fields columns named by their path. */

type Record_ = Record<string, unknown>
const isRecord = (value: unknown): value is Record_ =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

const mostDepth = 4
const batchRows = 1000

const flatten = (value: Record_, prefix: string, depth: number, into: Map<string, string>): void => {
  for (const [key, inner] of Object.entries(value)) {
    const path = prefix === '' ? key : `${prefix}.${key}`
    if (isRecord(inner) && depth < mostDepth) flatten(inner, path, depth + 1, into)
    else into.set(path, cellOf(inner))
  }
}

const cellOf = (value: unknown): string => {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return value
  return typeof value === 'object' ? JSON.stringify(value).slice(0, 10_000) : String(value)
}

const fieldsOf = (value: unknown): Map<string, string> => {
  const fields = new Map<string, string>()
  if (isRecord(value)) flatten(value, '', 0, fields)
  return fields
}

/** What a JSON file holds: its tables (lists of objects, at the top or one level below), or none. */
export const openJson = async (
  path: string,
  bytes: number,
): Promise<{ sources: RowSource[]; faults: string[] }> => {
  const text = await readText(path, bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const lines = await openJsonLines(path)
    if (lines.sources.length > 0 && lines.good > lines.bad) return lines
    throw new Unreadable(
      `its JSON does not parse (${(error as Error).message.slice(0, 120)}); mend it and upload it again`,
    )
  }
  const lists: [string | null, unknown][] = Array.isArray(value)
    ? [[null, value]]
    : isRecord(value)
      ? Object.entries(value)
      : []
  const sources = lists.flatMap(([part, list]) => {
    if (!Array.isArray(list) || list.length === 0 || !list.every(isRecord)) return []
    return [sourceOf(part, list)]
  })
  return { sources, faults: [] }
}

const sourceOf = (part: string | null, records: readonly Record_[]): RowSource => {
  const keys = new Set<string>()
  for (const record of records) for (const key of fieldsOf(record).keys()) keys.add(key)
  const names = [...keys]
  return {
    part,
    header: columnNames(names),
    async *batches() {
      for (let at = 0; at < records.length; at += batchRows)
        yield records.slice(at, at + batchRows).map((record) => {
          const fields = fieldsOf(record)
          return names.map((name) => fields.get(name) ?? '')
        })
    },
    notes: () => [],
  }
}

/** One object a line, read twice: once for the names of all fields, once for the rows. */
export const openJsonLines = async (
  path: string,
): Promise<{ sources: RowSource[]; faults: string[]; good: number; bad: number }> => {
  const encoding = await encodingOf(path)
  const keys = new Set<string>()
  let good = 0
  let bad = 0
  for await (const record of recordsOf(path, encoding)) {
    if (record === null) bad += 1
    else {
      good += 1
      for (const key of fieldsOf(record).keys()) if (keys.size < 2 * bounds.columns) keys.add(key)
    }
  }
  const names = [...keys]
  const faults = bad > 0 ? [`${bad} of its lines are no JSON objects and are left out`] : []
  const source: RowSource = {
    part: null,
    header: columnNames(names),
    async *batches() {
      let batch: string[][] = []
      for await (const record of recordsOf(path, encoding)) {
        if (record === null) continue
        const fields = fieldsOf(record)
        batch.push(names.map((name) => fields.get(name) ?? ''))
        if (batch.length < batchRows) continue
        yield batch
        batch = []
      }
      if (batch.length > 0) yield batch
    },
    notes: () => faults,
  }
  return { sources: good > 0 ? [source] : [], faults, good, bad }
}

async function* recordsOf(path: string, encoding: string): AsyncGenerator<Record_ | null> {
  for await (const line of linesOf(path, encoding)) {
    const text = line.trim().replace(/,$/, '')
    if (text !== '') yield parseRecord(text)
  }
}

const parseRecord = (text: string): Record_ | null => {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : null
  } catch {
    return null
  }
}

async function* linesOf(path: string, encoding: string): AsyncGenerator<string> {
  let rest = ''
  for await (const text of textOf(path, encoding)) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > bounds.recordChars * 4)
      throw new Unreadable('one of its lines is longer than 4 million characters; split it')
    yield* lines
  }
  if (rest !== '') yield rest
}
