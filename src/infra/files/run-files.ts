import { readFile, rm } from 'node:fs/promises'
import { MasonError } from '../../state/errors.ts'
import type { Files, Log, Sql } from '../../state/ports.ts'
import type { OriginFile } from '../../state/runtime-state.ts'
import { keepBlob } from '../sessions/blobs.ts'
import { silentLog } from '../silent-log.ts'
import { createFileProcesses } from './file-processes.ts'
import { createImageDescriptions } from './image-descriptions.ts'
import { DiskFault } from './origins/disk.ts'
import { FileFault } from './origins/fault.ts'
import { type Origins, openOrigin, whence } from './origins/open.ts'
import type { Saved } from './origins/save.ts'
import { type Preparing, prepareFiles } from './prepare-files.ts'
import { createPreparedCache } from './prepared-cache.ts'
import { queryTables } from './query-tables.ts'
import { createRoom } from './room.ts'
import { openScratch } from './scratch.ts'
import { createTableCache } from './table-cache.ts'
import { openWorkFolder } from './work-folder.ts'

/** What one file, or one statement, may take. */
const limits = {
  prepare: { maxBytes: 450 * 1024 * 1024, maxMs: 30_000 },
  query: { maxBytes: 450 * 1024 * 1024, maxMs: 30_000 },
}
/** Processes that open files at once, of all runs of this process. */
const mostProcesses = 2
/** Of loaded tables on disk. */
const mostTableBytes = 1024 * 1024 * 1024
/** What a tool may read into this process's memory. */
const mostReadBytes = 64 * 1024 * 1024

export type FilesOptions = Origins & { limits?: typeof limits; log?: Log }

/** The files of the runs of this process. Disposed of, it leaves nothing on the disk. */
export const createFileService = (options: FilesOptions) => {
  const processes = createFileProcesses(mostProcesses)
  const room = createRoom()
  const scratch = openScratch()
  const tableCache = createTableCache(scratch.folder, mostTableBytes)
  const { prepare, query } = options.limits ?? limits
  const { log = silentLog } = options
  return {
    /** The files of one business's run: uploads by their hash, mappings inside their places, addresses through egress. */
    for(sql: Sql, run: { tenant: string; run_id: string }): Files {
      const { tenant } = run
      const open = async (file: Readonly<OriginFile>, place: string, signal: AbortSignal): Promise<Saved> => {
        await using _heap = whence(file) === 'database' ? await room.heap.take(signal) : null
        try {
          return await openOrigin({ sql, run, origins: options }, file, place, signal)
        } catch (error) {
          if (error instanceof DiskFault)
            log.warn({ code: error.code, run_id: run.run_id, remedy }, 'a file could not be put on the disk')
          throw error
        }
      }
      return {
        descriptions: createImageDescriptions(sql, run),
        async read(file, signal) {
          // what is in the database is read at once: it waits for no process, nor for those that do
          const isFetched = whence(file) === 'elsewhere'
          await using _room = isFetched ? await room.enter(tenant, [file], () => {}, signal) : null
          await using folder = await openWorkFolder(await scratch.folder())
          const saved = await open(file, folder.place(), signal).catch((error: unknown) => {
            throw error instanceof FileFault ? notThere(file.name, error) : error
          })
          if (saved.bytes > mostReadBytes)
            throw new MasonError('payload_too_large', `"${file.name}" is too large to be read line by line`, {
              remedy: 'ask query_table for what is needed of its rows',
            })
          return await readFile(saved.path, { signal })
        },
        async prepare(files, before, signal) {
          await using folder = await openWorkFolder(await scratch.folder())
          await using process = processes.of(tenant, prepare)
          const cache = createPreparedCache(sql, run)
          const preparing: Preparing = {
            ...{ cache, process, place: folder.place },
            async open(file, until) {
              const held = await room.enter(tenant, [file], process.rest, until)
              const place = folder.place()
              const leave = async (): Promise<void> => {
                await using _held = held
                // of the place alone: a local file stays where it is
                await rm(place, { force: true })
              }
              try {
                return { ...(await open(file, place, until)), [Symbol.asyncDispose]: leave }
              } catch (error) {
                await leave()
                throw error
              }
            },
            async keepFile(path) {
              await using _heap = await room.heap.take(signal)
              const bytes = await readFile(path)
              return { blob: await keepBlob(sql, run, bytes), bytes: bytes.length }
            },
          }
          return await prepareFiles(preparing, files, before, signal)
        },
        async query(asked, signal) {
          const files = asked.tables.map(({ file }) => file)
          await using _room = await room.enter(tenant, files, () => {}, signal)
          await using folder = await openWorkFolder(await scratch.folder())
          await using process = processes.of(tenant, query)
          try {
            const { place } = folder
            return await queryTables({ tenant, process, cache: tableCache, place, open }, asked, signal)
          } catch (error) {
            if (error instanceof FileFault)
              return { ok: false, reason: `the file of a table is not to be had: ${error.message}` }
            throw error
          }
        },
      }
    },
    /** At start: removes what workers that died have left on the disk. */
    sweep: () => scratch.sweep(),
    [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose](),
  }
}

export type FileService = ReturnType<typeof createFileService>

const remedy =
  'give the folder of temporary files (TMPDIR) more room; what is there is removed as soon as it was opened'

const notThere = (name: string, { message, passing }: FileFault): MasonError => {
  const at = message.lastIndexOf('; ')
  return new MasonError('not_found', `"${name}": ${at === -1 ? message : message.slice(0, at)}`, {
    ...(at !== -1 && { remedy: message.slice(at + 2) }),
    ...(passing && { detail: { passing } }),
  })
}
