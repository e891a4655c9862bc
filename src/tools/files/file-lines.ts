import { findFile } from '../../state/files/find-file.ts'
import { readImageDescription } from '../../state/files/image-description.ts'
import {
  findDocument,
  findOtherFile,
  isTableFromFile,
  listTables,
  type PreparedDocument,
} from '../../state/files/prepared-files.ts'
import type { Files, LinePage, LineQuery } from '../../state/ports/files.ts'
import type { OriginFile, RuntimeState } from '../../state/runtime-state.ts'

/** `locate` gives the part of a document that a line is in, such as " (page 3)"; else it is empty. */
export type FileLines =
  | { ok: true; name: string; page: LinePage; locate(line: number): string }
  | { ok: false; error: string }

/** What a search through all lines asks for, apart from its pattern and what it shows. */
export const wholeSearch = {
  first: 1,
  last: Number.MAX_SAFE_INTEGER,
  maxBytes: Number.MAX_SAFE_INTEGER,
  mode: 'search',
} as const

type FilesState = Pick<RuntimeState, 'origin_files' | 'preprocessed_files'>

const maxNamed = 100

const listFileNames = (names: readonly string[]): string => {
  if (names.length === 0) return 'There are no files in this run.'
  const more = names.length > maxNamed ? ` and ${names.length - maxNamed} more` : ''
  return `Files there are: ${names.slice(0, maxNamed).join(', ')}${more}.`
}

/** Lines of one of the run's own files, as text or as what was made of it, or why there are none, for the model. */
export const readFileLines = async (
  state: FilesState,
  files: Files,
  path: string,
  query: LineQuery,
  signal: AbortSignal,
): Promise<FileLines> => {
  const file = findFile(state.origin_files, path)
  if (!file) {
    const names = state.origin_files.map(({ name }) => name)
    return { ok: false, error: `Error: File not found at path '${path}'.\n${listFileNames(names)}` }
  }
  const { name } = file
  const seen = imageText(state, file)
  const document = findDocument(state, file)
  const text = document?.text ? { ...file, local_path: `blob:${document.text.blob}`, mapping: null } : file
  const read = await files.readLines(seen ?? text, query, signal)
  if (!read.ok) return { ok: false, error: `Error: ${read.reason}.` }
  if (read.page === null) return { ok: false, error: explainNoText(state, file) }
  const locate = seen === null ? createLocator(document) : () => ' (an image, as a model described it)'
  return { ok: true, name, page: read.page, locate }
}

/** The description of an image, in place of its bytes; null without one. */
const imageText = (state: FilesState, file: OriginFile): string | null => {
  const image = findOtherFile(state, file)
  const shown = image && readImageDescription(image)
  if (!shown) return null
  return shown.text === '' ? shown.description : `${shown.description}\n\nText on it:\n${shown.text}`
}

const explainNoText = (state: FilesState, file: OriginFile): string => {
  const { name } = file
  const other = findOtherFile(state, file)
  if (other && !other.readable) return `Error: '${name}' cannot be read: ${other.notes.join('; ')}.`
  if (other && other.notes.length > 0)
    return `Error: '${name}' ${other.format === 'image' ? 'is an image' : 'has no text'}: ${other.notes.join('; ')}.`
  const tables = listTables(state).filter((table) => isTableFromFile(table, file))
  if (tables.length > 0)
    return `Error: '${name}' holds tables: ask query_table for ${tables.map(({ table }) => table).join(', ')}.`
  return `Error: '${name}' is a binary file, not text. Use a text file (txt, csv, json, md), or a tool that reads its format.`
}

const createLocator = (document: PreparedDocument | null): ((line: number) => string) => {
  const pages = document?.page_lines ?? []
  if (document === null || pages.length === 0) return () => ''
  const word = document.format === 'pptx' ? 'slide' : 'page'
  return (line) => {
    const page = pages.findLastIndex((first) => first <= line) + 1
    return page === 0 ? '' : ` (${word} ${page})`
  }
}
