import { type ImageDescription, readImageDescription } from '../state/files/image-description.ts'
import {
  findDocument,
  findOtherFile,
  isTableFromFile,
  listTables,
  type OtherFile,
  type PreparedColumn,
  type PreparedDocument,
  type PreparedTable,
} from '../state/files/prepared-files.ts'
import { quoteName } from '../state/files/table-names.ts'
import type { OriginFile, RuntimeState } from '../state/runtime-state.ts'
import { cutText } from '../state/text/cut-text.ts'
import { joinLines } from '../state/text/plain-line.ts'
import { estimateTokens } from '../state/text/tokens.ts'

const maxColumns = 40
/** Characters of what an image shows, and of the text on it: the most that leave room for all files. `read_file` gives all. */
const descriptionLengths = [1000, 500, 250, 120, 60]
/** Characters of a document's head and of the values of a table, where there is room for so much. */
const maxHead = 300
const maxValues = 500
const maxSample = 30

type FilesState = Pick<RuntimeState, 'origin_files' | 'preprocessed_files'>

/**
 * The run's files for a prompt: one line each, and under it what was found in it and what did not go well. What images
 * show, how documents begin and the values of tables are cut shorter where all would take more than `maxTokens`; nothing
 * else is.
 */
export const describeFiles = (state: FilesState, maxTokens = Number.POSITIVE_INFINITY): string => {
  const tables = listTables(state)
  const tellers = state.origin_files.map((file) => createFileRenderer(state, file, tables))
  const describe = (mostShown: number): string => tellers.flatMap((tell) => tell(mostShown)).join('\n')
  for (const mostShown of descriptionLengths) {
    const text = describe(mostShown)
    // no character is less than a quarter of a token
    if (text.length <= maxTokens * 4 && estimateTokens(text) <= maxTokens) return text
  }
  return describe(0)
}

/** The lines of one file, with so many characters of what an image shows. */
type FileRenderer = (mostShown: number) => string[]

const createFileRenderer = (
  state: FilesState,
  file: OriginFile,
  tables: readonly PreparedTable[],
): FileRenderer => {
  const other = findOtherFile(state, file)
  const document = findDocument(state, file)
  const own = tables.filter((table) => isTableFromFile(table, file))
  const describeContent = (mostShown: number): string[] => [
    `- ${file.name} (${file.type})`,
    ...(document ? documentLines(document, mostShown) : []),
    ...own.flatMap((table) => tableLines(table, mostShown)),
  ]
  const notes = (other?.notes ?? []).map((note) => `  note: ${cutText(note, 300)}`)
  if (other?.format !== 'image' || !other.readable)
    return (mostShown) => [...describeContent(mostShown), ...notes]
  const shown = readImageDescription(other)
  return (mostShown) => [...describeContent(mostShown), ...imageLines(other, shown, mostShown), ...notes]
}

const documentLines = (document: PreparedDocument, mostShown: number): string[] => {
  const { pages, lines, sections } = document
  // on one line, so that it cannot look like the description of another file
  const head = cutText(joinLines(document.head), Math.max(1, Math.min(maxHead, mostShown)))
  const notes = [
    ...(mostShown > 0 && head !== '' ? [`  begins: ${head}`] : []),
    ...document.notes.map((note) => `  note: ${note}`),
  ]
  if (document.text === null && sections.length === 0) return notes
  const size = `${pages === null ? '' : `${pages} pages, `}${lines} lines of text`
  const titles = sections.slice(0, 12).map((section) => cutText(section.title, 60))
  return [`  document: ${size}${titles.length > 0 ? `; sections: ${titles.join('; ')}` : ''}`, ...notes]
}

const imageLines = (
  { facts: { type, width, height } }: OtherFile,
  shown: ImageDescription | null,
  mostShown: number,
): string[] => {
  const line = (title: string, text: string): string[] => {
    if (text === '') return []
    const rest = text.length > mostShown ? ' (read_file gives all of it)' : ''
    return [`  ${title}: ${cutText(text.replaceAll(/\s+/g, ' '), mostShown)}${rest}`]
  }
  const hint = shown && mostShown === 0 ? '; read_file describes it' : ''
  return [
    `  image: ${type}, ${width} x ${height} pixels${hint}`,
    ...(shown && mostShown > 0
      ? [...line('shows', shown.description), ...line('text on it', shown.text)]
      : []),
  ]
}

/** The names and types of columns, of many the first ones. */
export const describeColumns = (columns: readonly PreparedColumn[]): string => {
  const named = columns.slice(0, maxColumns).map(({ name, type }) => `${quoteName(name)} ${type}`)
  const more = columns.length > maxColumns ? `, and ${columns.length - maxColumns} more` : ''
  return `${named.join(', ')}${more}`
}

const tableLines = ({ table, rows, columns, notes }: PreparedTable, mostShown: number): string[] => {
  return [
    `  table for query_table: ${quoteName(table)}, ${rows} rows; columns: ${describeColumns(columns)}`,
    ...valueLines(columns, Math.min(maxValues, mostShown)),
    ...notes.map((note) => `  note: ${note}`),
  ]
}

/** Ranges of numbers and dates, and some values of texts, on one line; each value is quoted. */
const valueLines = (columns: readonly PreparedColumn[], maxChars: number): string[] => {
  const shown = columns.slice(0, maxColumns).flatMap(({ name, type, min, max, samples }) => {
    if (min !== null && max !== null) return [`${quoteName(name)} ${toValue(min)} to ${toValue(max)}`]
    const some = type === 'text' ? samples.slice(0, 2).map(toValue) : []
    return some.length > 0 ? [`${quoteName(name)} ${some.join(', ')}`] : []
  })
  const line = cutText(shown.join('; ').replaceAll(/\s+/g, ' '), Math.max(1, maxChars))
  return shown.length > 0 && maxChars > 0 ? [`  values: ${line}`] : []
}

/** As JSON has it, so that a value with a line end or a comma is one value. */
const toValue = (value: string | number): string =>
  typeof value === 'number' || /^\d{4}-[\d-]+$/.test(value)
    ? String(value)
    : JSON.stringify(cutText(value, maxSample))
