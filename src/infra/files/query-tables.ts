import type { TableAnswer, TableQuery } from '../../state/files/ports.ts'
import type { OriginFile } from '../../state/runtime-state.ts'
import { contentHash } from '../ids.ts'
import type { FileProcess } from './file-process.ts'
import type { Saved } from './origins/save.ts'
import type { TableCache } from './table-cache.ts'

/** From this size loading takes long enough to keep what was loaded. */
const keptFromBytes = 2 * 1024 * 1024

export type Querying = {
  tenant: string
  process: FileProcess
  cache: TableCache
  place(): string
  open(file: Readonly<OriginFile>, place: string, signal: AbortSignal): Promise<Saved>
}

/** Runs one statement over the tables it names. Large ones that were loaded are kept for the next. */
export const queryTables = async (
  querying: Querying,
  query: TableQuery,
  signal: AbortSignal,
): Promise<TableAnswer> => {
  const saved = new Map<string, Saved>()
  for (const { file } of query.tables)
    if (!saved.has(file.name)) saved.set(file.name, await querying.open(file, querying.place(), signal))
  const tables = query.tables.map(({ table, file }) => ({
    table: table.table,
    path: saved.get(file.name)?.path ?? '',
    name: file.name,
    type: file.type,
    part: table.part,
    columns: table.columns.map(({ name, type }) => ({ name, type })),
  }))
  const bytes = [...saved.values()].reduce((sum, one) => sum + one.bytes, 0)
  const key = contentHash([
    querying.tenant,
    tables.map(({ path: _path, ...table }) => [table, saved.get(table.name)?.sha256]),
  ])
  const kept = bytes < keptFromBytes ? null : await querying.cache.place(key)
  const reply = await querying.process
    .ask({ kind: 'query', sql: query.sql, tables, kept }, signal)
    .finally(() => kept && querying.cache.used(kept))
  if (!reply.ok) return { ok: false, reason: reasonOf(reply) }
  if (!('rows' in reply)) throw new Error('the process that opens files answered another question')
  return { ok: true, ...reply.rows }
}

const reasonOf = (reply: { kind: string; message?: string }): string => {
  if (reply.kind === 'memory')
    return 'it takes more memory than a statement may; select fewer rows or columns'
  if (reply.kind === 'time')
    return 'it takes longer than a statement may; select less, or avoid joins of large tables'
  if (reply.kind === 'starved')
    return 'this machine has no time or memory for it just now; try again later, or select less'
  return reply.message ?? 'the program that runs statements ended; try a simpler statement'
}
