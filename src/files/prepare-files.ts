import { mkdir, rm } from 'node:fs/promises'
import { extname } from 'node:path'
import { openDeadline } from '../state/deadline.ts'
import { toFileOrigin } from '../state/files/prepared-files.ts'
import { toTableName } from '../state/files/table-names.ts'
import { parseUrlPath } from '../state/files/url-path.ts'
import type { PreparedBefore, PreparedFiles } from '../state/ports/files.ts'
import type { OriginFile } from '../state/runtime-state.ts'
import type { FileProcess, ProcessFailure } from './file-process.ts'
import type { SavedFile } from './origins/download.ts'
import { FileError, toDiskErrors } from './origins/file-error.ts'
import { locateBytes } from './origins/file-origin.ts'
import type { PreparedCache, PreparedContents } from './prepared-cache.ts'
import { type FileReply, fileBounds } from './protocol/child-protocol.ts'

/** Milliseconds from the start of a step: for fetching files, for opening them, and for both of files that failed before. */
type PrepareBudget = { fetch: number; open: number; retry: number }
/** Far below what a run may take, so that the step ends with an action and its attempts count. */
const defaultBudget: PrepareBudget = { fetch: 120_000, open: 300_000, retry: 15_000 }

/** Files out of all archives of one step, archives inside archives included. */
const maxParts = 200
/** What one step may add to the state, in characters of JSON: 8 MB. */
const maxDescribedChars = 8_000_000

/** What a step needs to prepare files. */
export type PrepareServices = {
  cache: PreparedCache
  process: FileProcess
  /** A path that nothing else uses. */
  newPath(): string
  /** Disposal removes the bytes that this call brought to the disk. */
  openFile(file: Readonly<OriginFile>, signal: AbortSignal): Promise<SavedFile & AsyncDisposable>
  storeFile(path: string): Promise<{ blob: string; bytes: number }>
  /** A reader failed at a file that need not be damaged: an error of ours, for the log. */
  reportFailure(format: string, error: string): void
  budget?: PrepareBudget
}

/** Opens files one after the other. Why a file cannot be read is in the notes under its name. */
export const prepareFiles = async (
  services: PrepareServices,
  files: readonly Readonly<OriginFile>[],
  before: PreparedBefore,
  signal: AbortSignal,
): Promise<PreparedFiles> => {
  const prepared: PreparedFiles = { origin_files: [], documents: {}, tables: {}, other_files: {} }
  const tableNames = new Set(before.tables)
  using budget = openPrepareBudget(signal, services.budget)
  // files that failed before come first, since their time is the shortest; of these, slow servers come last
  const rank = (file: Readonly<OriginFile>): number =>
    before.triedFiles.has(file.name) ? (locateBytes(file) === 'network' ? 1 : 0) : 2
  const queue = files
    .map((file) => ({ file, depth: 0, isRetry: before.triedFiles.has(file.name) }))
    .toSorted((a, b) => rank(a.file) - rank(b.file))
  let partsLeft = maxParts
  let charsLeft = maxDescribedChars
  for (let next = queue.shift(); next; next = queue.shift()) {
    signal.throwIfAborted()
    const { file, depth, isRetry } = next
    try {
      const { origin, contents: found } = await prepareOne(services, file, isRetry, budget)
      const chars = JSON.stringify(found).length
      const contents = chars > charsLeft ? unreadable(found.format, tooLongNote) : found
      if (chars <= charsLeft) charsLeft -= chars
      if (origin !== file) prepared.origin_files.push(origin)
      addEntries(prepared, origin, contents, tableNames)
      const parts = toOriginFiles(origin, contents).slice(0, partsLeft)
      partsLeft -= parts.length
      const { [origin.name]: entry } = prepared.other_files
      if (entry && parts.length < (contents.unpacked?.length ?? 0))
        entry.notes = [...entry.notes, tooManyNote(parts.length)]
      if (parts.length === 0) continue
      prepared.origin_files.push(...parts)
      if (contents.format !== 'zip' || depth + 1 < fileBounds.zipDepth)
        queue.unshift(...parts.map((part) => ({ file: part, depth: depth + 1, isRetry })))
      else for (const part of parts) addEntries(prepared, part, tooDeepEntry, tableNames)
    } catch (error) {
      if (!(error instanceof FileError)) throw error
      addEntries(prepared, file, unreadable('unknown', error.message, error.isTransient), tableNames)
    }
  }
  return prepared
}

const openPrepareBudget = (signal: AbortSignal, ms: PrepareBudget = defaultBudget) => {
  const deadlines = {
    fetch: openDeadline(ms.fetch, signal),
    open: openDeadline(ms.open, signal),
    retry: openDeadline(ms.retry, signal),
  }
  return {
    /** Rejects with a transient `FileError` when that time is over. */
    async spend<Result>(
      part: keyof PrepareBudget,
      work: (until: AbortSignal) => Promise<Result>,
    ): Promise<Result> {
      const until = deadlines[part].signal
      try {
        until.throwIfAborted()
        return await work(until)
      } catch (error) {
        signal.throwIfAborted()
        if (!until.aborted || error instanceof FileError) throw error
        throw new FileError('there was no time for it in this turn', { isTransient: true })
      }
    },
    [Symbol.dispose]() {
      for (const deadline of Object.values(deadlines)) deadline[Symbol.dispose]()
    },
  }
}

/** The contents of a file, and its entry in the state from now on: a file from a URL has become a blob. */
const prepareOne = async (
  services: PrepareServices,
  file: Readonly<OriginFile>,
  isRetry: boolean,
  budget: ReturnType<typeof openPrepareBudget>,
): Promise<{ origin: OriginFile; contents: PreparedContents }> => {
  const part = isRetry ? 'retry' : locateBytes(file) === 'network' ? 'fetch' : 'open'
  await using saved = await budget.spend(part, (until) => services.openFile(file, until))
  const origin: OriginFile =
    parseUrlPath(file.local_path) === null
      ? (file as OriginFile)
      : { ...file, mapping: null, local_path: `blob:${(await services.storeFile(saved.path)).blob}` }
  const openedAs = `${extname(file.name).toLowerCase()} ${file.type.toLowerCase()}`
  const cached = await services.cache.find(saved.sha256, openedAs)
  if (cached) return { origin, contents: cached }
  const folder = services.newPath()
  await toDiskErrors(mkdir(folder))
  try {
    const job = { kind: 'prepare' as const, path: saved.path, name: file.name, type: file.type, folder }
    const reply = await budget.spend(isRetry ? 'retry' : 'open', (until) => services.process.run(job, until))
    const contents = await storeContents(services, reply)
    if (!('kind' in reply) || reply.kind === 'unreadable')
      await services.cache.save(saved.sha256, openedAs, contents)
    return { origin, contents }
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    // the blob of a fetched file stays: the next attempt need not fetch it
    return { origin, contents: unreadable('unknown', error.message, error.isTransient) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Stores the text and the entries that the file process wrote to disk. */
const storeContents = async (
  services: PrepareServices,
  reply: FileReply | ProcessFailure,
): Promise<PreparedContents> => {
  if (!reply.ok) return toUnreadable(services, reply)
  if (!('contents' in reply)) throw new Error('the file process sent a reply of another kind')
  const { document, unpacked, ...rest } = reply.contents
  const contents: PreparedContents = { ...rest, readable: true }
  if (document)
    contents.document = { ...document, text: document.text && (await services.storeFile(document.text.path)) }
  if (unpacked) {
    contents.unpacked = []
    for (const { name, path } of unpacked)
      contents.unpacked.push({ name, blob: (await services.storeFile(path)).blob })
  }
  return contents
}

const toUnreadable = (
  services: PrepareServices,
  reply: Extract<FileReply | ProcessFailure, { ok: false }>,
): PreparedContents => {
  const { format, message } = 'message' in reply ? reply : { format: 'unknown', message: reply.kind }
  if (reply.kind === 'failed' || reply.kind === 'crashed') services.reportFailure(format, message)
  const note = reply.kind in failureNotes ? failureNotes[reply.kind as keyof typeof failureNotes] : message
  return unreadable(format, note, reply.kind === 'starved')
}

const notReadNote =
  'Mason could not read this format; save it in another one (PDF, DOCX, XLSX, CSV or text) and upload that'
const failureNotes: Record<ProcessFailure['kind'] | 'failed', string> = {
  memory: 'opening it takes more memory than one file may; split it, or save it in a simpler format',
  time: 'opening it takes longer than one file may; split it, or save it in a simpler format',
  failed: notReadNote,
  crashed: notReadNote,
  starved: 'this machine had no time or memory to open it; try again later',
}

const unreadable = (format: string, note: string, isTransient = false): PreparedContents => ({
  format,
  readable: false,
  facts: {},
  notes: [note],
  ...(isTransient && { isTransient }),
})
const tooLongNote =
  'the files of this turn take more than 8 MB to describe; send fewer files with many columns, tables or pages at once'
const tooManyNote = (opened: number): string =>
  `only ${opened} of its files are opened, since ${maxParts} come out of archives already; upload the others by themselves`
const tooDeepEntry = unreadable('zip', `it is inside an archive inside an archive; upload it by itself`)

const toOriginFiles = (origin: OriginFile, { unpacked = [] }: PreparedContents): OriginFile[] =>
  unpacked.map(({ name, blob }) => ({
    name: `${origin.name}/${name}`,
    type: 'application/octet-stream',
    local_path: `blob:${blob}`,
    mapping: null,
  }))

const addEntries = (
  prepared: PreparedFiles,
  file: Readonly<OriginFile>,
  contents: PreparedContents,
  tableNames: Set<string>,
): void => {
  const { format, notes, document, tables = [], readable } = contents
  const from = toFileOrigin(file)
  if (document) prepared.documents[file.name] = { from, format, ...document, notes }
  for (const content of tables) {
    const name = content.part === null ? file.name : `${file.name}/${content.part}`
    const table = toTableName(name, tableNames)
    tableNames.add(table)
    prepared.tables[name] = {
      from,
      format,
      table,
      file: file.name,
      ...content,
      notes: [...notes, ...content.notes],
    }
  }
  // the tables of a workbook are under the names of its sheets, so its own name has an entry too
  if (!Object.hasOwn(prepared.documents, file.name) && !Object.hasOwn(prepared.tables, file.name))
    prepared.other_files[file.name] = {
      from,
      format,
      readable,
      facts: contents.facts ?? {},
      notes,
      ...(contents.isTransient && { tries: 1 }),
    }
}
