import { decodeText } from '../../state/files/decode-text.ts'
import { descriptionOf } from '../../state/files/image.ts'
import {
  documentOf,
  isTableOf,
  otherFileOf,
  type PreparedDocument,
  tablesOf,
} from '../../state/files/prepared.ts'
import type { Blobs, Files } from '../../state/ports.ts'
import type { OriginFile, RuntimeState } from '../../state/runtime-state.ts'
import { findFile, splitLines } from './text.ts'

/** `place` says where a line stands in a document of pages or sections, such as " (page 3)"; else it is empty. */
export type Opened =
  | { ok: true; name: string; lines: string[]; place(line: number): string }
  | { ok: false; fault: string }

type Readable = Pick<RuntimeState, 'origin_files' | 'preprocessed_files'>

const maxNamed = 100

const filesThereAre = (names: readonly string[]): string => {
  if (names.length === 0) return 'There are no files in this run.'
  const more = names.length > maxNamed ? ` and ${names.length - maxNamed} more` : ''
  return `Files there are: ${names.slice(0, maxNamed).join(', ')}${more}.`
}

/** The lines of one of the run's own files, as text or as what was made of it, or why there are none, for the model. */
export const openLines = async (
  state: Readable,
  { files, blobs }: { files: Files; blobs: Blobs },
  path: string,
  signal: AbortSignal,
): Promise<Opened> => {
  const file = findFile(state.origin_files, path)
  if (!file) {
    const names = state.origin_files.map(({ name }) => name)
    return { ok: false, fault: `Error: File not found at path '${path}'.\n${filesThereAre(names)}` }
  }
  const seen = imageLines(state, file)
  if (seen)
    return { ok: true, name: file.name, lines: seen, place: () => ' (an image, as a model described it)' }
  const document = documentOf(state, file)
  const kept = document?.text ? await blobs.read(document.text.blob) : null
  const text = kept ? Buffer.from(kept).toString('utf8') : decodeText(await files.read(file, signal))
  if (text === null) return { ok: false, fault: whyNotText(state, file) }
  return { ok: true, name: file.name, lines: splitLines(text), place: placesOf(document) }
}

/** What an image shows, in place of its bytes; null where nobody described it. */
const imageLines = (state: Readable, file: OriginFile): string[] | null => {
  const image = otherFileOf(state, file)
  const shown = image && descriptionOf(image)
  if (!shown) return null
  const text = shown.text === '' ? [] : ['', 'Text on it:', ...splitLines(shown.text)]
  return [...splitLines(shown.description), ...text]
}

const whyNotText = (state: Readable, file: OriginFile): string => {
  const { name } = file
  const other = otherFileOf(state, file)
  if (other && !other.readable) return `Error: '${name}' cannot be read: ${other.notes.join('; ')}.`
  if (other?.format === 'image' && other.notes.length > 0)
    return `Error: '${name}' is an image: ${other.notes.join('; ')}.`
  const tables = tablesOf(state).filter(({ table }) => isTableOf(table, file))
  if (tables.length > 0)
    return `Error: '${name}' holds tables: ask query_table for ${tables.map(({ table }) => table.table).join(', ')}.`
  return `Error: '${name}' is a binary file, not text. Use a text file (txt, csv, json, md), or a tool that reads its format.`
}

const placesOf = (document: PreparedDocument | null): ((line: number) => string) => {
  const pages = document?.page_lines ?? []
  if (document === null || pages.length === 0) return () => ''
  const word = document.format === 'pptx' ? 'slide' : 'page'
  return (line) => {
    const page = pages.findLastIndex((first) => first <= line) + 1
    return page === 0 ? '' : ` (${word} ${page})`
  }
}
