import { mkdir, rm } from 'node:fs/promises'
import { extname } from 'node:path'
import type { PreparedBefore, PreparedFiles } from '../../state/files/ports.ts'
import { fromOf } from '../../state/files/prepared.ts'
import { tableNameOf } from '../../state/files/table-names.ts'
import type { OriginFile } from '../../state/runtime-state.ts'
import type { Reply } from './child/protocol.ts'
import { bounds } from './child/protocol.ts'
import type { Ended, FileProcess } from './file-process.ts'
import { onDisk } from './origins/disk.ts'
import { FileFault } from './origins/fault.ts'
import { whence } from './origins/open.ts'
import type { Saved } from './origins/save.ts'
import { urlOf } from './origins/url.ts'
import { type Budget, type OpenBudget, openBudget } from './prepare-budget.ts'
import type { Kept, PreparedCache } from './prepared-cache.ts'

export type Preparing = {
  cache: PreparedCache
  process: FileProcess
  /** A path that nothing else has. */
  place(): string
  /** Disposed of, its bytes are off the disk, where they were brought there for this. */
  open(file: Readonly<OriginFile>, signal: AbortSignal): Promise<Saved & AsyncDisposable>
  keepFile(path: string): Promise<{ blob: string; bytes: number }>
  budget?: Budget
}

/** Opens files one after the other; what cannot be read of one is written down under its name. */
export const prepareFiles = async (
  preparing: Preparing,
  files: readonly Readonly<OriginFile>[],
  before: PreparedBefore,
  signal: AbortSignal,
): Promise<PreparedFiles> => {
  const prepared: PreparedFiles = { origin_files: [], documents: {}, tables: {}, other_files: {} }
  const taken = new Set(before.tables)
  using budget = openBudget(signal, preparing.budget)
  // first those with the least time: what is not there yet cannot use it up
  const rank = (file: Readonly<OriginFile>): number =>
    before.tried.has(file.name) ? (whence(file) === 'elsewhere' ? 1 : 0) : 2
  const queue = files
    .map((file) => ({ file, depth: 0, again: before.tried.has(file.name) }))
    .toSorted((a, b) => rank(a.file) - rank(b.file))
  let partsLeft = mostParts
  for (let next = queue.shift(); next; next = queue.shift()) {
    signal.throwIfAborted()
    const { file, depth, again } = next
    try {
      const { at, kept } = await prepareOne(preparing, file, again, budget)
      if (at !== file) prepared.origin_files.push(at)
      addEntries(prepared, at, kept, taken)
      const parts = partsOf(at, kept).slice(0, partsLeft)
      partsLeft -= parts.length
      const { [at.name]: entry } = prepared.other_files
      if (entry && parts.length < (kept.unpacked?.length ?? 0))
        entry.notes = [...entry.notes, tooMany(parts.length)]
      if (parts.length === 0) continue
      prepared.origin_files.push(...parts)
      if (depth + 1 < bounds.zipDepth)
        queue.unshift(...parts.map((part) => ({ file: part, depth: depth + 1, again })))
      else for (const part of parts) addEntries(prepared, part, tooDeep, taken)
    } catch (error) {
      if (!(error instanceof FileFault)) throw error
      addEntries(prepared, file, unreadable('unknown', error.message, error.passing), taken)
    }
  }
  return prepared
}

/** The file as it is kept from now on (one that was fetched is a blob of ours), and what is in it. */
const prepareOne = async (
  preparing: Preparing,
  file: Readonly<OriginFile>,
  again: boolean,
  budget: OpenBudget,
): Promise<{ at: OriginFile; kept: Kept }> => {
  const time = again ? 'again' : whence(file) === 'elsewhere' ? 'fetch' : 'open'
  await using saved = await budget.within(time, (until) => preparing.open(file, until))
  const at: OriginFile =
    urlOf(file.local_path) === null
      ? (file as OriginFile)
      : { ...file, mapping: null, local_path: `blob:${(await preparing.keepFile(saved.path)).blob}` }
  const openedAs = `${extname(file.name).toLowerCase()} ${file.type.toLowerCase()}`
  const before = await preparing.cache.find(saved.sha256, openedAs)
  if (before) return { at, kept: before }
  const folder = preparing.place()
  await onDisk(mkdir(folder))
  try {
    const job = { kind: 'prepare' as const, path: saved.path, name: file.name, type: file.type, folder }
    const reply = await budget.within(again ? 'again' : 'open', (until) => preparing.process.ask(job, until))
    const kept = await keepFound(preparing, reply)
    if (!('kind' in reply) || reply.kind === 'unreadable')
      await preparing.cache.keep(saved.sha256, openedAs, kept)
    return { at, kept }
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    // what was fetched need not be fetched again
    return { at, kept: unreadable('unknown', error.message, error.passing) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const keepFound = async (preparing: Preparing, reply: Reply | Ended): Promise<Kept> => {
  if (!reply.ok)
    return unreadable('format' in reply ? reply.format : 'unknown', faultOf(reply), reply.kind === 'starved')
  if (!('found' in reply)) throw new Error('the process that opens files answered another question')
  const { document, unpacked, ...rest } = reply.found
  const kept: Kept = { ...rest, readable: true }
  if (document)
    kept.document = { ...document, text: document.text && (await preparing.keepFile(document.text.path)) }
  if (unpacked) {
    kept.unpacked = []
    for (const { name, path } of unpacked)
      kept.unpacked.push({ name, blob: (await preparing.keepFile(path)).blob })
  }
  return kept
}

const faultOf = (reply: Extract<Reply | Ended, { ok: false }>): string => {
  switch (reply.kind) {
    case 'memory':
      return 'opening it takes more memory than one file may; split it, or save it in a simpler format'
    case 'time':
      return 'opening it takes longer than one file may; split it, or save it in a simpler format'
    case 'crashed':
      return 'opening it ended the program that opens files; save it anew, in another format'
    case 'starved':
      return 'this machine had no time or memory to open it; try again later'
    default:
      return reply.message
  }
}

const unreadable = (format: string, note: string, passing = false): Kept => ({
  format,
  readable: false,
  facts: {},
  notes: [note],
  ...(passing && { passing }),
})
/** Of all archives given at once, those inside archives among them. */
const mostParts = 200
const tooMany = (opened: number): string =>
  `only ${opened} of its files are opened, since ${mostParts} come out of archives already; upload the others by themselves`
const tooDeep = unreadable('zip', `it is inside an archive inside an archive; upload it by itself`)

const partsOf = (at: OriginFile, { unpacked = [] }: Kept): OriginFile[] =>
  unpacked.map(({ name, blob }) => ({
    name: `${at.name}/${name}`,
    type: 'application/octet-stream',
    local_path: `blob:${blob}`,
    mapping: null,
  }))

const addEntries = (
  prepared: PreparedFiles,
  file: Readonly<OriginFile>,
  kept: Kept,
  taken: Set<string>,
): void => {
  const { format, notes, document, tables = [], readable } = kept
  const from = fromOf(file)
  if (document) prepared.documents[file.name] = { from, format, ...document, notes }
  for (const found of tables) {
    const name = found.part === null ? file.name : `${file.name}/${found.part}`
    const table = tableNameOf(name, taken)
    taken.add(table)
    prepared.tables[name] = {
      from,
      format,
      table,
      file: file.name,
      ...found,
      notes: [...notes, ...found.notes],
    }
  }
  // a workbook has its tables under the names of its sheets: that it was opened stands under its own
  if (prepared.documents[file.name] === undefined && prepared.tables[file.name] === undefined)
    prepared.other_files[file.name] = {
      ...{ from, format, readable, facts: kept.facts ?? {}, notes },
      ...(kept.passing && { tries: 1 }),
    }
}
