import { finished } from 'node:stream/promises'
import { parse } from 'csv-parse'
import { detectEncoding, readTextChunks } from '../../../files/child/formats/plain-text.ts'
import { maxRecordChars, openRowSource, type RowSource } from './row-source.ts'

/** In the order in which equal ones are preferred: commas are in numbers too. */
const candidates = ['\t', ';', '|', ','] as const
const delimiterNames: Readonly<Record<string, string>> = { '\t': 'tab', ' ': 'space' }

/** Excel's own line above the header, which says what the delimiter is. */
const separatorLine = /^\ufeff?"?sep=([^\r\n])"?\1{0,64}[^\S\r\n]{0,64}(?:\r\n|\r|\n|$)/i

/** CSV, TSV and the like. The delimiter is the one that splits the first lines into the same number of cells. */
export const openDelimited = async (path: string, name: string): Promise<RowSource[]> => {
  const encoding = await detectEncoding(path)
  const { value: start = '' } = await readTextChunks(path, encoding).next()
  const separator = separatorLine.exec(start)
  const isTabular = /\.(tsv|tab)$/i.test(name)
  const delimiter = separator?.[1] ?? guessDelimiter(start, isTabular)
  const isExpected = delimiter === (isTabular ? '\t' : ',')
  const notes = isExpected ? [] : [`delimiter: ${delimiterNames[delimiter] ?? delimiter}`]
  // a quote behind a space may be a mark for "as above"
  const isSpaced = /[,;\t|] +"(?:[^"\r\n]|"")*" *(?:[,;\t|\r\n]|$)/.test(start)
  const readAll = () => readRowBatches(path, encoding, delimiter, isSpaced, separator?.[0].length ?? 0, notes)
  const source = await openRowSource(null, readAll, () => [...new Set(notes)])
  // where commas are between cells, they are no decimal signs
  return source ? [{ ...source, ...(delimiter === ',' && { decimalHint: 'point' }) }] : []
}

const sampledChars = 20_000
const sampledLines = 100

const guessDelimiter = (start: string, isTabular: boolean): string => {
  const lines = start
    .slice(0, sampledChars)
    .replace(/(^|[,;\t|]) *"(?:[^"]|"")*"/gm, '$1')
    .split(/\r\n|\r|\n/)
    .slice(0, sampledLines)
    .filter((line) => line.trim() !== '')
  if (isTabular && lines.some((line) => line.includes('\t'))) return '\t'
  const scored = candidates.map((delimiter) => {
    const counts = new Map<number, number>()
    for (const line of lines) {
      const count = line.split(delimiter).length - 1
      if (count > 0) counts.set(count, (counts.get(count) ?? 0) + 1)
    }
    // the lines that agree
    return { delimiter, score: Math.max(0, ...counts.values()) }
  })
  const best = scored.toSorted((a, b) => b.score - a.score).find(({ score }) => score > 0)?.delimiter ?? ','
  // one column of numbers: a name, and below it each comma within digits
  const [first = '', ...others] = lines
  const isOneColumn =
    !first.includes(',') &&
    others.some((line) => line.includes(',')) &&
    others.every((line) => /^[^,]*(?:\d,\d[^,]*)?$/.test(line))
  return best === ',' && isOneColumn ? ';' : best
}

/** The two errors that are left with the options of the parser. */
const parseNote =
  'a quote is opened and never closed, or a row is longer than a million characters: rows from there on are not read'

async function* readRowBatches(
  path: string,
  encoding: string,
  delimiter: string,
  ltrim: boolean,
  skippedChars: number,
  notes: string[],
): AsyncGenerator<string[][]> {
  let batch: string[][] = []
  const parser = parse({
    delimiter,
    bom: true,
    ltrim,
    // those of its first line may not be those of the others
    record_delimiter: ['\n', '\r\n', '\r'],
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: maxRecordChars,
  })
  // `on_record` would have an object of information made for every row
  parser.on('data', (record: string[]) => batch.push(record.map(withoutFormula)))
  const ended = finished(parser).catch(() => {})
  let skip = skippedChars
  for await (const text of readTextChunks(path, encoding)) {
    await new Promise<void>((resolve) => parser.write(text.slice(skip), () => resolve()))
    skip = 0
    if (batch.length > 0) yield batch
    batch = []
    if (parser.destroyed) break
  }
  parser.end()
  await ended
  if (batch.length > 0) yield batch
  if (parser.errored) notes.push(parseNote)
}

/** As exports keep a code from being read as a number: ="00123". */
const withoutFormula = (cell: string): string =>
  cell.startsWith('="') ? cell.slice(2).replace(/"$/, '') : cell
