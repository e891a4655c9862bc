import { cutText } from '../cut-text.ts'
import type { RuntimeState } from '../runtime-state.ts'
import { descriptionOf } from './image.ts'
import { documentOf, otherFileOf, type PreparedTable, tablesOf } from './prepared.ts'
import { quoted } from './table-names.ts'

const mostColumns = 40
/** Characters of what an image shows, and of the text on it; `read_file` gives all. */
const mostShown = 1000

/** The run's files for a prompt: one line each, and under it what was found in it and what did not go well. */
export const describeFiles = (state: Pick<RuntimeState, 'origin_files' | 'preprocessed_files'>): string => {
  const tables = tablesOf(state)
  return state.origin_files
    .flatMap(({ name, type }) => [
      `- ${name} (${type})`,
      ...documentLines(state, name),
      ...tables.filter(({ table }) => table.file === name).flatMap(({ table }) => tableLines(table)),
      ...imageLines(state, name),
      ...(otherFileOf(state, name)?.notes ?? []).map((note) => `  note: ${cutText(note, 300)}`),
    ])
    .join('\n')
}

const documentLines = (state: Pick<RuntimeState, 'preprocessed_files'>, name: string): string[] => {
  const document = documentOf(state, name)
  if (!document || (document.text === null && document.sections.length === 0)) return []
  const { pages, lines, sections, notes } = document
  const size = `${pages === null ? '' : `${pages} pages, `}${lines} lines of text`
  const titles = sections.slice(0, 12).map((section) => cutText(section.title, 60))
  return [
    `  document: ${size}${titles.length > 0 ? `; sections: ${titles.join('; ')}` : ''}`,
    ...notes.map((note) => `  note: ${note}`),
  ]
}

const imageLines = (state: Pick<RuntimeState, 'preprocessed_files'>, name: string): string[] => {
  const image = otherFileOf(state, name)
  if (image?.format !== 'image' || !image.readable) return []
  const { type, width, height } = image.facts
  const shown = descriptionOf(image)
  const line = (title: string, text: string): string[] => {
    if (text === '') return []
    const rest = text.length > mostShown ? ' (read_file gives all of it)' : ''
    return [`  ${title}: ${cutText(text.replaceAll(/\s+/g, ' '), mostShown)}${rest}`]
  }
  return [
    `  image: ${type}, ${width} x ${height} pixels`,
    ...(shown ? [...line('shows', shown.description), ...line('text on it', shown.text)] : []),
  ]
}

const tableLines = ({ table, rows, columns, notes }: PreparedTable): string[] => {
  const named = columns.slice(0, mostColumns).map(({ name, type }) => `${quoted(name)} ${type}`)
  const more = columns.length > mostColumns ? `, and ${columns.length - mostColumns} more` : ''
  return [
    `  table for query_table: ${quoted(table)}, ${rows} rows; columns: ${named.join(', ')}${more}`,
    ...notes.map((note) => `  note: ${note}`),
  ]
}
