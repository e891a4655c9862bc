import { z } from 'zod'
import { defineTool } from '../../graph/definitions.ts'
import {
  findOtherFile,
  isFilePrepared,
  listTables,
  type OtherFile,
  readOwn,
} from '../../state/files/prepared-files.ts'
import type { PreparedFiles } from '../../state/ports/files.ts'
import type { OriginFile, RuntimeState } from '../../state/runtime-state.ts'
import { canSee, describeImages } from './describe-images.ts'

/** Makes documents and tables of the files that are new, and has images described. What cannot be read is noted under its name; the run goes on. */
export default defineTool({
  name: 'preprocess-files',
  description: 'Makes documents and tables of the given files',
  kinds: ['prepare'],
  pure: true,
  input: z.strictObject({}),
  reads: ['origin_files', 'preprocessed_files'],
  writes: ['origin_files', 'preprocessed_files'],
  needs: ['files'],
  skip: (state) => listPendingFiles(state, true).length === 0,
  hasWork: async ({ models }, state) => listPendingFiles(state, canSee(models)).length > 0,
  async run(state, { checkpoint, files, models, log }, signal) {
    const tables = listTables(state).map(({ table }) => table)
    const before = { tables, triedFiles: listTriedFiles(state) }
    const opened = await files.prepare(listPendingFiles(state, canSee(models)), before, signal)
    const services = { files, models, log }
    const { prepared, described, usage } = await describeImages(opened, state.origin_files, services, signal)
    const result = toResult(prepared, described)
    const { origin_files, ...preprocessed_files } = withEarlierTries(state, prepared)
    return checkpoint(
      { summary: toSummary(result), result, usage, relevance: 0.2 },
      { preprocessed_files, ...(origin_files.length > 0 && { origin_files }) },
    )
  },
})

const count = (many: number, one: string): string => `${many} ${one}${many === 1 ? '' : 's'}`

const toResult = ({ documents, tables, other_files }: PreparedFiles, described: string[]) => ({
  documents: Object.keys(documents),
  tables: Object.keys(tables),
  other_files: Object.keys(other_files),
  unreadable: Object.keys(other_files).filter((name) => !other_files[name]?.readable),
  described,
})

const toSummary = ({ documents, tables, unreadable, described }: ReturnType<typeof toResult>): string =>
  [
    `Prepared ${count(documents.length, 'document')} and ${count(tables.length, 'table')}`,
    ...(described.length > 0 ? [`${count(described.length, 'image')} described`] : []),
    ...(unreadable.length > 0 ? [`${count(unreadable.length, 'file')} could not be read`] : []),
  ].join('; ')

/** How often a file with a temporary error is tried, once a turn. */
const maxTries = 4

type View = Readonly<Pick<RuntimeState, 'origin_files' | 'preprocessed_files'>>

/** How often a file, or an image's description, failed for a reason that may pass; 0: there is no such reason. */
const countTries = (state: View, file: OriginFile): number => findOtherFile(state, file)?.tries ?? 0

/** The files that are new, and those to try again: images without a description are, when a model `sees` now. */
export const listPendingFiles = (state: View, sees: boolean): OriginFile[] =>
  state.origin_files.filter((file) => {
    if (sees && findOtherFile(state, file)?.unseen) return true
    const tries = countTries(state, file)
    return tries > 0 ? tries < maxTries : !isFilePrepared(state, file)
  })

/** Names of those that earlier turns tried. */
const listTriedFiles = (state: View): Set<string> =>
  new Set(state.origin_files.filter((file) => countTries(state, file) > 0).map(({ name }) => name))

/** What preparing brought, beside what earlier turns tried: tries add up, and what went well clears the old note away. */
export const withEarlierTries = (state: View, prepared: PreparedFiles): PreparedFiles => {
  const other_files = { ...prepared.other_files }
  for (const file of state.origin_files) {
    const tries = countTries(state, file)
    const now = readOwn(other_files, file.name)
    const read = readOwn(prepared.documents, file.name) ?? readOwn(prepared.tables, file.name)
    if (tries > 0 && read)
      other_files[file.name] = { from: read.from, format: read.format, readable: true, facts: {}, notes: [] }
    else if (now?.tries !== undefined) other_files[file.name] = withNote(now, tries + now.tries)
  }
  return { ...prepared, other_files }
}

const withNote = (entry: OtherFile, tries: number): OtherFile => {
  const note =
    tries < maxTries ? 'the next turn tries it again' : `it was tried ${tries} times and is left alone now`
  return { ...entry, tries, notes: [...entry.notes, note] }
}
