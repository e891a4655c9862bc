import { z } from 'zod'
import { defineTool } from '../graph/tool.ts'
import type { PreparedFiles } from '../state/files/ports.ts'
import { isPrepared, tablesOf } from '../state/files/prepared.ts'
import type { RuntimeState } from '../state/runtime-state.ts'

const unprepared = (state: Pick<RuntimeState, 'origin_files' | 'preprocessed_files'>) =>
  state.origin_files.filter((file) => !isPrepared(state, file))

/** Makes documents and tables of the files that are new. What cannot be read is noted under its name; the run goes on. */
export default defineTool({
  name: 'preprocess-files',
  description: 'Makes documents and tables of the given files',
  kinds: ['prepare'],
  pure: true,
  input: z.strictObject({}),
  reads: ['origin_files', 'preprocessed_files'],
  writes: ['origin_files', 'preprocessed_files'],
  skip: (state) => unprepared(state).length === 0,
  async run(state, { checkpoint, files }, signal) {
    const taken = tablesOf(state).map(({ table }) => table.table)
    const prepared = await files.prepare(unprepared(state), taken, signal)
    const { origin_files, ...preprocessed_files } = prepared
    return checkpoint(
      { summary: summaryOf(prepared), result: resultOf(prepared), relevance: 0.2 },
      { preprocessed_files, ...(origin_files.length > 0 && { origin_files }) },
    )
  },
})

const count = (many: number, one: string): string => `${many} ${one}${many === 1 ? '' : 's'}`

const notRead = ({ other_files }: PreparedFiles): string[] =>
  Object.entries(other_files).flatMap(([name, { readable }]) => (readable ? [] : [name]))

const summaryOf = (prepared: PreparedFiles): string => {
  const documents = Object.keys(prepared.documents).length
  const tables = Object.keys(prepared.tables).length
  const unread = notRead(prepared).length
  return [
    `Prepared ${count(documents, 'document')} and ${count(tables, 'table')}`,
    ...(unread > 0 ? [`${count(unread, 'file')} could not be read`] : []),
  ].join('; ')
}

const resultOf = (prepared: PreparedFiles) => ({
  documents: Object.keys(prepared.documents),
  tables: Object.keys(prepared.tables),
  other_files: Object.keys(prepared.other_files),
  unreadable: notRead(prepared),
})
