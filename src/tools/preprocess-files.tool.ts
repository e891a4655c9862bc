import { z } from 'zod'
import { defineTool } from '../graph/tool.ts'
import type { PreparedFiles } from '../state/files/ports.ts'
import { tablesOf } from '../state/files/prepared.ts'
import { canSee, describeImages } from './files/describe-images.ts'
import { filesToPrepare, filesTried, withEarlierTries } from './files/to-prepare.ts'

/** Makes documents and tables of the files that are new, and has images described. What cannot be read is noted under its name; the run goes on. */
export default defineTool({
  name: 'preprocess-files',
  description: 'Makes documents and tables of the given files',
  kinds: ['prepare'],
  pure: true,
  input: z.strictObject({}),
  reads: ['origin_files', 'preprocessed_files'],
  writes: ['origin_files', 'preprocessed_files'],
  skip: (state) => filesToPrepare(state, true).length === 0,
  hasWork: async ({ models }, state) => filesToPrepare(state, canSee(models)).length > 0,
  async run(state, { checkpoint, files, models, log }, signal) {
    const tables = tablesOf(state).map(({ table }) => table.table)
    const before = { tables, tried: filesTried(state) }
    const opened = await files.prepare(filesToPrepare(state, canSee(models)), before, signal)
    const services = { files, models, log }
    const seen = await describeImages(opened, state.origin_files, services, signal)
    const { prepared, described, usage } = seen
    const { origin_files, ...preprocessed_files } = withEarlierTries(state, prepared)
    return checkpoint(
      {
        summary: summaryOf(prepared, described.length),
        result: { ...resultOf(prepared), described },
        usage,
        relevance: 0.2,
      },
      { preprocessed_files, ...(origin_files.length > 0 && { origin_files }) },
    )
  },
})

const count = (many: number, one: string): string => `${many} ${one}${many === 1 ? '' : 's'}`

const notRead = ({ other_files }: PreparedFiles): string[] =>
  Object.entries(other_files).flatMap(([name, { readable }]) => (readable ? [] : [name]))

const summaryOf = (prepared: PreparedFiles, described: number): string => {
  const documents = Object.keys(prepared.documents).length
  const tables = Object.keys(prepared.tables).length
  const unread = notRead(prepared).length
  return [
    `Prepared ${count(documents, 'document')} and ${count(tables, 'table')}`,
    ...(described > 0 ? [`${count(described, 'image')} described`] : []),
    ...(unread > 0 ? [`${count(unread, 'file')} could not be read`] : []),
  ].join('; ')
}

const resultOf = (prepared: PreparedFiles) => ({
  documents: Object.keys(prepared.documents),
  tables: Object.keys(prepared.tables),
  other_files: Object.keys(prepared.other_files),
  unreadable: notRead(prepared),
})
