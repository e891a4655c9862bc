import { mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import type { TableQuery, TableQueryResult } from '../state/ports/files.ts'
import type { OriginFile } from '../state/runtime-state.ts'
import { contentHash } from '../state/text/content-hash.ts'
import type { FileProcess, ProcessFailure } from './file-process.ts'
import type { SavedFile } from './origins/download.ts'

/** From this size on, loading takes long enough to store the loaded tables. */
const minCachedBytes = 2 * 1024 * 1024
const hourMs = 3_600_000

/** What a statement over files needs. `newPath`: a path that nothing else uses. */
export type QueryServices = {
  business: string
  process: FileProcess
  cache: TableCache
  newPath(): string
  openFile(file: Readonly<OriginFile>, targetPath: string, signal: AbortSignal): Promise<SavedFile>
}

/** Runs one statement over the tables it names. Large tables stay loaded for the next statement. */
export const queryTables = async (
  { business, process, cache, newPath, openFile }: QueryServices,
  query: TableQuery,
  signal: AbortSignal,
): Promise<TableQueryResult> => {
  const saved = new Map<string, SavedFile>()
  for (const { file } of query.tables)
    if (!saved.has(file.name)) saved.set(file.name, await openFile(file, newPath(), signal))
  const tables = query.tables.map(({ table, file }) => ({
    table: table.table,
    path: saved.get(file.name)?.path ?? '',
    name: file.name,
    type: file.type,
    part: table.part,
    rows: table.rows,
    columns: table.columns.map(({ name, type, reading, null_words }) => ({
      name,
      type,
      ...(reading && { reading }),
      ...(null_words && { null_words }),
    })),
  }))
  const bytes = [...saved.values()].reduce((sum, one) => sum + one.bytes, 0)
  const key = contentHash([
    business,
    tables.map(({ path: _path, ...table }) => [table, saved.get(table.name)?.sha256]),
  ])
  const cached = bytes < minCachedBytes ? null : await cache.reserve(key)
  const reply = await process
    .run({ kind: 'query', sql: query.sql, tables, cached }, signal)
    .finally(() => cached && cache.release(cached))
  if (!reply.ok) return { ok: false, reason: 'message' in reply ? reply.message : failureReasons[reply.kind] }
  if (!('rows' in reply)) throw new Error('the file process sent a reply of another kind')
  return { ok: true, ...reply.rows }
}

const failureReasons: Record<ProcessFailure['kind'], string> = {
  memory: 'it takes more memory than a statement may; select fewer rows or columns',
  time: 'it takes more than 30 s of processor time; select less, or avoid joins of large tables',
  crashed: 'the program that runs statements ended; try a simpler statement',
  starved: 'this machine has no time or memory for it at present; try again later, or select less',
}

/** The file of loaded tables, and `draft`, which is written first and then renamed. */
type CachedTables = { path: string; draft: string }

/**
 * Loaded tables as files in a folder of this process, at most `maxBytes` in all. Evicts the least recently used first,
 * and each `ttlMs` after its last use, since its session may be deleted by then. A miss means loading again.
 */
export const createTableCache = (openFolder: () => Promise<string>, maxBytes: number, ttlMs = hourMs) => {
  const removals = new Set<Promise<void>>()
  const removeFile = (path: string): void => {
    // a file that cannot be removed goes with the folder
    const removal = rm(path, { force: true })
      .catch(() => {})
      .finally(() => removals.delete(removal))
    removals.add(removal)
  }
  const sizes = new LRUCache<string, number>({
    maxSize: maxBytes,
    sizeCalculation: (bytes) => bytes,
    ttl: ttlMs,
    ttlAutopurge: true,
    dispose: (_bytes, path, reason) => {
      if (reason !== 'set') removeFile(path)
    },
  })
  let count = 0

  return {
    async reserve(key: string): Promise<CachedTables> {
      const folder = join(await openFolder(), 'tables')
      await mkdir(folder, { recursive: true, mode: 0o700 })
      count += 1
      const path = join(folder, `${key}.sqlite`)
      return { path, draft: `${path}.${count}` }
    },
    /** After a statement over the tables, also a failed one. */
    async release({ path, draft }: CachedTables): Promise<void> {
      await rm(draft, { force: true })
      const bytes = (await stat(path).catch(() => null))?.size
      if (bytes === undefined) sizes.delete(path)
      else if (bytes <= maxBytes) sizes.set(path, bytes)
      else {
        sizes.clear()
        removeFile(path)
      }
      await Promise.all(removals)
    },
  }
}

/** See `createTableCache`. */
export type TableCache = ReturnType<typeof createTableCache>
