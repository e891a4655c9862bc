import { readFile, rm, writeFile } from 'node:fs/promises'
import type { RunKey } from '../infra/database/database.ts'
import { createFairPermits, createPermits } from '../infra/lib/permits.ts'
import { silentLog } from '../infra/lib/silent-log.ts'
import { MasonError } from '../state/errors.ts'
import type { Files, LineQueryResult } from '../state/ports/files.ts'
import type { Log } from '../state/ports/log.ts'
import type { Sql } from '../state/ports/sql.ts'
import type { OriginFile } from '../state/runtime-state.ts'
import { storeRunBlob } from './blobs/blobs.ts'
import { readLinePage } from './child/line-page.ts'
import type { FileProcess, ProcessFailure } from './file-process.ts'
import { createFileProcessPool } from './file-process-pool.ts'
import type { SavedFile } from './origins/download.ts'
import { DiskError, FileError } from './origins/file-error.ts'
import { type FileOrigins, locateBytes, openOrigin } from './origins/file-origin.ts'
import { type PrepareServices, prepareFiles } from './prepare-files.ts'
import { createImageDescriptionCache, createPreparedCache } from './prepared-cache.ts'
import type { FileReply } from './protocol/child-protocol.ts'
import { openTemporaryRoot, openWorkFolder } from './temporary-folders.ts'

/** Files from the network, and files from the database: each counts from its first byte until it is off the disk. */
const maxConcurrentFiles = 16
/** Files that are whole in the heap on their way into the database: texts, and entries of archives. */
const maxFilesInHeap = 2

/**
 * Limits the disk space and the memory that the files of all runs of this process take at once. Not counted: what a tool
 * reads whole out of the database (at most 64 MB each), and what it holds in the heap afterwards.
 */
const createFileCapacity = () => {
  // separate permits, so that a slow server delays no file whose bytes are in the database
  const network = createFairPermits(maxConcurrentFiles)
  const database = createFairPermits(maxConcurrentFiles)

  return {
    heap: createPermits(maxFilesInHeap),
    /**
     * One permit for all these files together; null: they need none. Calls `onWait` before it may wait long, so that the
     * caller can lend its process to a step whose files are ready.
     */
    async acquire(
      business: string,
      files: readonly Readonly<OriginFile>[],
      onWait: () => void,
      signal: AbortSignal,
    ): Promise<AsyncDisposable | null> {
      const origins = new Set(files.map(locateBytes))
      if (!origins.has('network') && !origins.has('database')) return null
      const permits = origins.has('network') ? network : database
      if (permits === network || !permits.isFree(business)) onWait()
      return permits.acquire(business, signal)
    },
  }
}

/** Limits of one file, of one job of a feature and of the lines of one text: bytes of memory, milliseconds of processor time. */
const defaultLimits = {
  prepare: { maxBytes: 450 * 1024 * 1024, maxMs: 30_000 },
  job: { maxBytes: 450 * 1024 * 1024, maxMs: 30_000 },
  lines: { maxBytes: 450 * 1024 * 1024, maxMs: 1500 },
}
/** File processes of all runs of this process. */
const maxProcesses = 2
/** The largest file that a tool may read into this process's memory. */
const maxReadBytes = 64 * 1024 * 1024
/** Smaller texts are read in this process where no pattern is asked for: that takes milliseconds. */
const maxBytesHere = 1024 * 1024

/** The origins of files, the limits of opening them, and the files of the features that read more formats. */
export type FilesOptions = FileOrigins & {
  limits?: Partial<typeof defaultLimits>
  log?: Log
  readers: readonly string[]
}

/** The files of the runs of this process. Disposal leaves nothing on the disk. */
export const createFileService = (options: FilesOptions) => {
  const processes = createFileProcessPool(maxProcesses)
  // their own, since a file or a statement may take much longer
  const lineProcesses = createFileProcessPool(maxProcesses)
  const capacity = createFileCapacity()
  const temporary = openTemporaryRoot()
  const { log = silentLog, readers } = options
  const limits = { ...defaultLimits, ...options.limits }
  const createOpenFile =
    (sql: Sql, run: RunKey) =>
    async (file: Readonly<OriginFile>, targetPath: string, signal: AbortSignal): Promise<SavedFile> => {
      try {
        return await openOrigin({ sql, run, origins: options }, file, targetPath, signal)
      } catch (error) {
        if (error instanceof DiskError)
          log.warn(
            { code: error.code, run_id: run.run_id, remedy: diskFullRemedy },
            'a file could not be written to the disk',
          )
        throw error
      }
    }
  return {
    /** The files of one run: uploads by their hash, mappings inside their folder or bucket, URLs through egress. */
    openRunFiles(sql: Sql, run: RunKey): Files {
      const { tenant: business } = run
      const openFile = createOpenFile(sql, run)
      /** Uses the bytes of a file, at most `maxReadBytes`, where they are on the disk. */
      const withSavedFile = async <Result>(
        file: Readonly<OriginFile>,
        signal: AbortSignal,
        use: (saved: SavedFile) => Promise<Result>,
      ): Promise<Result> => {
        // a file in the database is read at once: it does not queue behind files of the network
        const isRemote = locateBytes(file) === 'network'
        await using _permit = isRemote ? await capacity.acquire(business, [file], () => {}, signal) : null
        await using folder = await openWorkFolder(await temporary.folder())
        const saved = await openFile(file, folder.newPath(), signal).catch((error: unknown) => {
          throw error instanceof FileError ? notFoundError(file.name, error) : error
        })
        if (saved.bytes > maxReadBytes)
          throw new MasonError('payload_too_large', `"${file.name}" is too large to be read line by line`, {
            remedy: 'split it, or give the part that is needed',
          })
        return await use(saved)
      }
      return {
        descriptions: createImageDescriptionCache(sql, run),
        read: (file, signal) => withSavedFile(file, signal, ({ path }) => readFile(path, { signal })),
        async readLines(source, query, signal) {
          const readSaved = async ({ path, bytes }: Pick<SavedFile, 'path' | 'bytes'>) => {
            if (query.pattern === null && bytes <= maxBytesHere)
              return { ok: true as const, page: readLinePage(await readFile(path, { signal }), query) }
            await using process = lineProcesses.openStep(business, { ...limits.lines, readers: [] })
            return toLinesResult(
              await process.run({ kind: 'lines', path, query }, signal),
              limits.lines.maxMs,
            )
          }
          if (typeof source !== 'string') return withSavedFile(source, signal, readSaved)
          await using folder = await openWorkFolder(await temporary.folder())
          const path = folder.newPath()
          await writeFile(path, source, { mode: 0o600 })
          return await readSaved({ path, bytes: Buffer.byteLength(source) })
        },
        async prepare(files, before, signal) {
          await using folder = await openWorkFolder(await temporary.folder())
          await using process = processes.openStep(business, { ...limits.prepare, readers })
          const cache = createPreparedCache(sql, run)
          const services: PrepareServices = {
            cache,
            process,
            newPath: folder.newPath,
            async openFile(file, until) {
              const permit = await capacity.acquire(business, [file], process.yieldProcess, until)
              const targetPath = folder.newPath()
              const release = async (): Promise<void> => {
                await using _permit = permit
                // not the saved path: a local file stays where it is
                await rm(targetPath, { force: true })
              }
              try {
                return { ...(await openFile(file, targetPath, until)), [Symbol.asyncDispose]: release }
              } catch (error) {
                await release()
                throw error
              }
            },
            async storeFile(path) {
              await using _heap = await capacity.heap.take(signal)
              const bytes = await readFile(path)
              return { blob: await storeRunBlob(sql, run, bytes), bytes: bytes.length }
            },
            reportFailure: (format, error) =>
              log.warn({ format, error, run_id: run.run_id }, 'a reader failed at a file'),
          }
          return await prepareFiles(services, files, before, signal)
        },
      }
    },
    /** Uses files of a run where they are on the disk, with the process that does jobs of features. Throws `FileError`. */
    async withFiles<Result>(
      sql: Sql,
      run: RunKey,
      files: readonly Readonly<OriginFile>[],
      use: (saved: SavedFile[], process: FileProcess) => Promise<Result>,
      signal: AbortSignal,
    ): Promise<Result> {
      await using _permit = await capacity.acquire(run.tenant, files, () => {}, signal)
      await using folder = await openWorkFolder(await temporary.folder())
      await using process = processes.openStep(run.tenant, { ...limits.job, readers })
      const openFile = createOpenFile(sql, run)
      const saved: SavedFile[] = []
      for (const file of files) saved.push(await openFile(file, folder.newPath(), signal))
      return await use(saved, process)
    },
    /** Of this process alone; it is removed with it. */
    temporaryFolder: temporary.folder,
    /** At start: removes what dead workers left on the disk. */
    sweep: () => temporary.sweep(),
    [Symbol.asyncDispose]: () => temporary[Symbol.asyncDispose](),
  }
}

const toLinesResult = (reply: FileReply | ProcessFailure, maxMs: number): LineQueryResult => {
  if ('page' in reply) return reply
  if (reply.ok) throw new Error('the file process sent a reply of another kind')
  switch (reply.kind) {
    case 'refused':
      return { ok: false, reason: reply.message }
    case 'time':
      return {
        ok: false,
        reason: `The pattern takes longer than ${maxMs / 1000} s on this text; make it simpler: fewer alternatives and no repeats of repeats, such as ([a-z]{1,100}){1,10}`,
      }
    case 'memory':
      return { ok: false, reason: 'It takes more memory than a search may; use a simpler pattern' }
    case 'starved':
      return { ok: false, reason: 'This machine has no time or memory for it at present; try again later' }
    default:
      throw new Error('message' in reply ? reply.message : 'the file process ended while it read lines')
  }
}

/** See `createFileService`. */
export type FileService = ReturnType<typeof createFileService>

const diskFullRemedy =
  'free disk space in the folder of temporary files (TMPDIR); each file there is removed once it is opened'

const notFoundError = (name: string, { message, isTransient }: FileError): MasonError => {
  const at = message.lastIndexOf('; ')
  return new MasonError('not_found', `"${name}": ${at === -1 ? message : message.slice(0, at)}`, {
    ...(at !== -1 && { remedy: message.slice(at + 2) }),
    ...(isTransient && { detail: { passing: isTransient } }),
  })
}
