import { detectEncoding, readTextChunks, readTextFile } from '../../../files/child/formats/plain-text.ts'
import type { Cell } from '../../../files/child/reader-definition.ts'
import { fileBounds, UnreadableFileError } from '../../../files/protocol/child-protocol.ts'
import { isJsonObject } from '../../../infra/lib/json-text.ts'
import { parseExactJson } from '../../../state/text/exact-json.ts'
import { maxRecordChars, openRowSource, type RowSource, toColumnNames } from './row-source.ts'

/** An object of a list is a row; its nested fields are columns named by their path. */
type JsonRecord = Record<string, unknown>

const maxDepth = 4
const batchRows = 1000

/** The fields of a record, by their paths. */
const flattenFields = (
  record: JsonRecord,
  prefix = '',
  depth = 0,
  fields = new Map<string, Cell>(),
): Map<string, Cell> => {
  for (const [key, value] of Object.entries(record)) {
    let path = prefix === '' ? key : `${prefix}.${key}`
    if (isJsonObject(value) && depth < maxDepth) flattenFields(value, path, depth + 1, fields)
    else {
      while (fields.has(path)) path += '_2'
      fields.set(path, toCell(value))
    }
  }
  return fields
}

const toCell = (value: unknown): Cell => {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string' || typeof value === 'number') return value
  return typeof value === 'object' ? JSON.stringify(value).slice(0, 10_000) : String(value)
}

/** The tables of a JSON file: lists of objects or of lists, at the top or one level below. Reads JSON lines too. */
export const openJson = async (path: string, bytes: number): Promise<RowSource[]> => {
  const text = await readTextFile(path, bytes)
  let value: unknown
  try {
    value = turnColumns(parseExactJson(text))
  } catch (error) {
    const lines = await openJsonLines(path)
    if (lines.sources.length > 0 && lines.good > lines.bad) return lines.sources
    throw new UnreadableFileError(
      `its JSON does not parse (${(error as Error).message.slice(0, 120)}); correct it and upload it again`,
    )
  }
  const parts: [string | null, unknown][] = isJsonObject(value) ? Object.entries(value) : [[null, value]]
  const lists = parts.filter((part): part is [string | null, unknown[]] => Array.isArray(part[1]))
  const names = lists.filter(([part]) => /^(?:col|head|field|name)/i.test(part ?? ''))
  const sources = lists.map(([part, list]) => {
    if (list.length === 0) return null
    if (list.every(Array.isArray)) {
      const header = names.find(([, { length }]) => list.every((row) => row.length === length))?.[1]
      const rows = [...(header ? [header] : []), ...list].map((row) => row.map(toCell))
      return openRowSource(part, async function* () {
        yield rows
      })
    }
    if (!list.every(isJsonObject)) return null
    const keys = new Set<string>()
    for (const record of list) for (const key of flattenFields(record).keys()) keys.add(key)
    return createRecordSource(part, [...keys], () => list, [])
  })
  return (await Promise.all(sources)).filter((source) => source !== null)
}

/** Columns as pandas writes them, each its cells by the numbers of their rows, as records; any other value as it is. */
const turnColumns = (value: unknown): unknown => {
  const columns = Object.entries((isJsonObject(value) ? value : {}) as Record<string, JsonRecord>)
  const cells = columns.flatMap(([, column]) => Object.entries(isJsonObject(column) ? column : { '': 0 }))
  if (!cells[0] || cells.some(([row, cell]) => !/^\d+$/.test(row) || isJsonObject(cell))) return value
  const toRecord = (row: string) => Object.fromEntries(columns.map(([name, column]) => [name, column[row]]))
  return [...new Set(cells.map(([row]) => row))].map(toRecord)
}

const createRecordSource = (
  part: string | null,
  names: readonly string[],
  readAll: () => Iterable<JsonRecord | null> | AsyncIterable<JsonRecord | unknown[] | null>,
  notes: string[],
): RowSource => ({
  part,
  header: toColumnNames(names),
  async *batches() {
    // each row has every column, and records may have a million different fields
    const read = names.slice(0, fileBounds.columns)
    let batch: Cell[][] = []
    for await (const record of readAll()) {
      if (!isJsonObject(record)) continue
      const fields = flattenFields(record)
      batch.push(read.map((name) => fields.get(name) ?? ''))
      if (batch.length < batchRows) continue
      yield batch
      batch = []
    }
    if (batch.length > 0) yield batch
  },
  notes: () => notes,
})

/** The table of a file with one object or list a line. Reads it twice: for the names of all fields, then for the rows. */
export const openJsonLines = async (
  path: string,
): Promise<{ sources: RowSource[]; good: number; bad: number }> => {
  const encoding = await detectEncoding(path)
  const keys = new Set<string>()
  const counts = { objects: 0, lists: 0, others: 0 }
  for await (const record of readRecords(path, encoding)) {
    counts[isJsonObject(record) ? 'objects' : record ? 'lists' : 'others'] += 1
    const fields = isJsonObject(record) ? flattenFields(record).keys() : []
    for (const key of fields) if (keys.size < 2 * fileBounds.columns) keys.add(key)
  }
  const kind = counts.lists > counts.objects ? 'lists' : 'objects'
  const good = counts[kind]
  const bad = counts.objects + counts.lists + counts.others - good
  const notes = bad > 0 ? [`${bad} of its lines are no JSON ${kind} and are skipped`] : []
  const read = () => readRecords(path, encoding)
  const readRows = async function* () {
    for await (const row of read()) if (Array.isArray(row)) yield [row.map(toCell)]
  }
  const ofLists = kind === 'lists' && (await openRowSource(null, readRows, () => notes))
  const source = ofLists || createRecordSource(null, [...keys], read, notes)
  return { sources: good > 0 ? [source] : [], good, bad }
}

async function* readRecords(path: string, encoding: string): AsyncGenerator<JsonRecord | unknown[] | null> {
  for await (const line of readLines(path, encoding)) {
    const text = line.trim().replace(/,$/, '')
    if (text !== '') yield parseRecord(text)
  }
}

const parseRecord = (text: string): JsonRecord | unknown[] | null => {
  try {
    const value = parseExactJson(text)
    return isJsonObject(value) || Array.isArray(value) ? value : null
  } catch {
    return null
  }
}

async function* readLines(path: string, encoding: string): AsyncGenerator<string> {
  let rest = ''
  for await (const text of readTextChunks(path, encoding)) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > maxRecordChars * 4)
      throw new UnreadableFileError('one of its lines is longer than 4 million characters; split it')
    yield* lines
  }
  if (rest !== '') yield rest
}
