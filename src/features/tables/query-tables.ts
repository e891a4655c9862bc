import { mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import type { FileProcess, ProcessFailure } from '../../files/file-process.ts'
import type { SavedFile } from '../../files/origins/download.ts'
import { FileError } from '../../files/origins/file-error.ts'
import type { FileService } from '../../files/run-files.ts'
import type { RunKey } from '../../infra/database/database.ts'
import { omitUndefined } from '../../routes/parameters.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { contentHash } from '../../state/text/content-hash.ts'
import type { QueryJob, TableRows } from './child/query-job.ts'
import type { TableQuery, TableQueryResult } from './tables.ref.ts'

/** From this size on, loading takes long enough to store the loaded tables. */
const minCachedBytes = 2 * 1024 * 1024
const hourMs = 3_600_000

type QueryServices = { files: FileService; cache: TableCache; sql: Sql; run: RunKey }

/** Runs one statement over the tables it names. Large tables stay loaded for the next statement. */
export const queryTables = async (
  { files, cache, sql, run }: QueryServices,
  query: TableQuery,
  signal: AbortSignal,
): Promise<TableQueryResult> => {
  const origins = [...new Map(query.tables.map(({ file }) => [file.name, file])).values()]
  const ask = async (saved: SavedFile[], process: FileProcess): Promise<TableQueryResult> => {
    const savedFiles = new Map(origins.map(({ name }, at) => [name, saved[at]]))
    const tables = query.tables.map(({ table, file }) => ({
      table: table.table,
      path: savedFiles.get(file.name)?.path ?? '',
      name: file.name,
      type: file.type,
      part: table.part,
      rows: table.rows,
      columns: table.columns.map(({ name, type, reading, null_words }) =>
        omitUndefined({ name, type, reading, null_words }),
      ),
    }))
    const bytes = saved.reduce((sum, one) => sum + one.bytes, 0)
    const key = contentHash([
      run.tenant,
      tables.map(({ path: _path, ...table }) => [table, savedFiles.get(table.name)?.sha256]),
    ])
    const cached = bytes < minCachedBytes ? null : await cache.reserve(key)
    const input: QueryJob = { sql: query.sql, tables, cached }
    const reply = await process
      .run({ kind: 'reader', name: 'query', input }, signal)
      .finally(() => cached && cache.release(cached))
    if (!reply.ok)
      return { ok: false, reason: 'message' in reply ? reply.message : failureReasons[reply.kind] }
    if (!('output' in reply)) throw new Error('the file process sent a reply of another kind')
    return { ok: true, ...(reply.output as TableRows) }
  }
  try {
    return await files.withFiles(sql, run, origins, ask, signal)
  } catch (error) {
    if (error instanceof FileError)
      return { ok: false, reason: `the file of a table cannot be read: ${error.message}` }
    throw error
  }
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
