import type { Files } from '../../state/ports.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'
import { decodeText, findFile, splitLines } from './text.ts'

export type Opened = { ok: true; name: string; lines: string[] } | { ok: false; fault: string }

const maxNamed = 100

const filesThereAre = (names: readonly string[]): string => {
  if (names.length === 0) return 'There are no files in this run.'
  const more = names.length > maxNamed ? ` and ${names.length - maxNamed} more` : ''
  return `Files there are: ${names.slice(0, maxNamed).join(', ')}${more}.`
}

/** The lines of one of the run's own text files, or why there are none, in words for the model. */
export const openLines = async (
  state: Pick<RuntimeState, 'origin_files'>,
  files: Files,
  path: string,
  signal: AbortSignal,
): Promise<Opened> => {
  const file = findFile(state.origin_files, path)
  if (!file) {
    const names = state.origin_files.map(({ name }) => name)
    return { ok: false, fault: `Error: File not found at path '${path}'.\n${filesThereAre(names)}` }
  }
  const text = decodeText(await files.read(file, signal))
  if (text !== null) return { ok: true, name: file.name, lines: splitLines(text) }
  const fault = `Error: '${file.name}' is a binary file, not text. Use a text file (txt, csv, json, md), or a tool that reads its format.`
  return { ok: false, fault }
}
