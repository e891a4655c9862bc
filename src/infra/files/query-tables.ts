import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import type { TableAnswer, TableQuery } from '../../state/files/ports.ts'
import type { OriginFile } from '../../state/runtime-state.ts'
import { contentHash } from '../ids.ts'
import type { FileProcess } from './file-process.ts'
import type { Saved } from './origins/save.ts'

/** From this size loading takes long enough to keep what was loaded. */
const keptFromBytes = 2 * 1024 * 1024
const mostKept = 8

export type Querying = {
  tenant: string
  process: FileProcess
  place(): string
  open(file: Readonly<OriginFile>, place: string, signal: AbortSignal): Promise<Saved>
}

/** Runs one statement over the tables it names. Loaded tables are kept in a folder of this machine: only a cache. */
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
  const kept = bytes < keptFromBytes ? null : join(await keptFolder(), `${key}.sqlite`)
  const reply = await querying.process.ask({ kind: 'query', sql: query.sql, tables, kept }, signal)
  if (!reply.ok) return { ok: false, reason: reasonOf(reply) }
  if (!('rows' in reply)) throw new Error('the process that opens files answered another question')
  return { ok: true, ...reply.rows }
}

const reasonOf = (reply: { kind: string; message?: string }): string => {
  if (reply.kind === 'memory')
    return 'it takes more memory than a statement may; select fewer rows or columns'
  if (reply.kind === 'time')
    return 'it takes longer than a statement may; select less, or avoid joins of large tables'
  return reply.message ?? 'the program that runs statements ended; try a simpler statement'
}

/** Only ours to read. The oldest are removed when there are many. */
const keptFolder = async (): Promise<string> => {
  const folder = join(tmpdir(), `mason-tables-${userInfo().username}`)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const found = await Promise.all(
    (await readdir(folder)).map(async (name) => {
      const path = join(folder, name)
      return { path, at: (await stat(path).catch(() => null))?.mtimeMs ?? 0 }
    }),
  )
  const old = found.sort((a, b) => b.at - a.at).slice(mostKept)
  await Promise.all(old.map(({ path }) => rm(path, { force: true })))
  return folder
}
