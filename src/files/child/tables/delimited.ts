import { parse } from 'csv-parse'
import { fileBounds, UnreadableFileError } from '../../protocol/child-protocol.ts'
import { detectEncoding, readTextChunks } from '../formats/plain-text.ts'
import { openRowSource, type RowSource } from './row-source.ts'

const candidates = [',', ';', '\t', '|'] as const

/** CSV, TSV and the like. The delimiter is the one that splits the first lines into the same number of cells. */
export const openDelimited = async (path: string, name: string): Promise<RowSource[]> => {
  const encoding = await detectEncoding(path)
  const delimiter = /\.(tsv|tab)$/i.test(name) ? '\t' : await guessDelimiter(path, encoding)
  const notes: string[] = []
  const source = await openRowSource(
    null,
    () => readRowBatches(path, encoding, delimiter, notes),
    () => [...new Set(notes)],
  )
  return source ? [source] : []
}

const guessDelimiter = async (path: string, encoding: string): Promise<string> => {
  const { value = '' } = await readTextChunks(path, encoding).next()
  const lines = String(value)
    .slice(0, 20_000)
    .split(/\r?\n/)
    .slice(0, 20)
    .filter((line) => line.trim() !== '')
  const scored = candidates.map((delimiter) => {
    const counts = lines.map((line) => line.replace(/"[^"]*"/g, '').split(delimiter).length - 1)
    const first = counts[0] ?? 0
    return {
      delimiter,
      score: first === 0 ? 0 : counts.filter((count) => count === first).length * 100 + first,
    }
  })
  return scored.sort((a, b) => b.score - a.score)[0]?.delimiter ?? ','
}

async function* readRowBatches(
  path: string,
  encoding: string,
  delimiter: string,
  notes: string[],
): AsyncGenerator<string[][]> {
  let batch: string[][] = []
  let parseError: Error | null = null
  const parser = parse({
    delimiter,
    bom: true,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: fileBounds.recordChars,
    on_record: (record: string[]) => {
      batch.push(record)
      return null
    },
  })
  parser.on('error', (error) => {
    parseError = error
  })
  parser.resume()
  for await (const text of readTextChunks(path, encoding)) {
    await new Promise<void>((resolve) => parser.write(text, () => resolve()))
    if (batch.length > 0) yield batch
    batch = []
    if (parseError) break
  }
  if (!parseError) await new Promise<void>((resolve) => parser.end(() => resolve()))
  if (batch.length > 0) yield batch
  if (parseError) notes.push(toParseNote(parseError))
}

const toParseNote = (error: Error & { code?: string; lines?: number }): string => {
  if (error.code === 'CSV_QUOTE_NOT_CLOSED' || error.code === 'CSV_MAX_RECORD_SIZE')
    return 'a quote is opened and never closed, or a row is longer than a million characters: rows from there on are not read'
  if (error.code?.startsWith('CSV_'))
    return `rows from line ${error.lines ?? '?'} on are not read: ${error.message.slice(0, 150)}`
  throw new UnreadableFileError(error.message)
}
