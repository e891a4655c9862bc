import { fileBounds, UnreadableFileError } from '../../protocol/child-protocol.ts'
import { type Archive, listRelatedParts, parseXml, readXml } from '../formats/archive.ts'
import { openRowSource, type RowSource } from './row-source.ts'

const maxStrings = 2_000_000

/** The sheets of a workbook. Their rows stream out of the archive's XML. */
export const openWorkbook = async (archive: Archive): Promise<RowSource[]> => {
  const sheets = await listRelatedParts(archive, 'xl/workbook.xml', 'sheet')
  const strings = await readSharedStrings(archive)
  const isDate = await readDateStyles(archive)
  const sources: RowSource[] = []
  for (const { path, attributes } of sheets.slice(0, fileBounds.tables)) {
    const openRows = () => readRowBatches(archive, path, strings, isDate)
    const source = await openRowSource(attributes.name ?? path, openRows)
    if (source) sources.push(source)
  }
  return sources
}

const readSharedStrings = async (archive: Archive): Promise<string[]> => {
  const strings: string[] = []
  let text = ''
  await readXml(archive, 'xl/sharedStrings.xml', {
    open: (tag) => {
      if (tag === 'si') text = ''
    },
    // the reading aid of an Asian text is no part of it
    text: (chunk, element, parent) => {
      if (element === 't' && parent !== 'rPh') text += chunk
    },
    close: (tag) => {
      if (tag !== 'si') return
      strings.push(text)
      if (strings.length > maxStrings)
        throw new UnreadableFileError('it has more than two million different texts; save it as CSV')
    },
  })
  return strings
}

/** Which cell styles show a date: formats 14 to 22 and 45 to 47, and custom ones with days, months, years or hours. */
const readDateStyles = async (archive: Archive): Promise<readonly boolean[]> => {
  const own = new Map<string, boolean>()
  const styles: boolean[] = []
  await readXml(archive, 'xl/styles.xml', {
    open: (tag, attributes, parent) => {
      if (tag === 'numFmt') {
        const code = (attributes.formatCode ?? '').replace(/"[^"]*"|\[[^[\]]*\]|\\./g, '')
        own.set(attributes.numFmtId ?? '', /[dmyhs]/i.test(code) && !/general/i.test(code))
      }
      if (tag !== 'xf' || parent !== 'cellXfs') return
      const id = attributes.numFmtId ?? '0'
      const number = Number(id)
      styles.push(own.get(id) ?? ((number >= 14 && number <= 22) || (number >= 45 && number <= 47)))
    },
  })
  return styles
}

/** Converts days since 1899-12-30 to ISO form, with a time only where there is one. */
const toDateText = (serial: number): string => {
  const ms = Math.round((serial - 25_569) * 86_400_000)
  const date = new Date(ms)
  if (Number.isNaN(date.getTime())) return String(serial)
  const iso = date.toISOString()
  return ms % 86_400_000 === 0 ? iso.slice(0, 10) : iso.slice(0, 19)
}

/** A cell's column, from 0, by the letters of its reference. */
const parseColumn = (reference: string): number => {
  let column = 0
  for (const letter of reference) {
    const value = letter.charCodeAt(0) - 64
    if (value < 1 || value > 26) break
    column = column * 26 + value
  }
  return column - 1
}

async function* readRowBatches(
  archive: Archive,
  part: string,
  strings: readonly string[],
  isDate: readonly boolean[],
): AsyncGenerator<string[][]> {
  let batch: string[][] = []
  let row: string[] = []
  let cell = { column: 0, type: '', style: 0 }
  let value = ''
  const chunks = parseXml(archive, part, {
    open: (tag, attributes) => {
      if (tag === 'row') row = []
      if (tag === 'c') {
        const column = attributes.r === undefined ? row.length : parseColumn(attributes.r)
        cell = { column, type: attributes.t ?? 'n', style: Number(attributes.s ?? 0) }
        value = ''
      }
    },
    text: (text, element) => {
      if (element === 'v' || element === 't') value += text
    },
    close: (tag) => {
      // the column is a claim of the file: it must not make a row of billions of cells
      if (tag === 'c' && cell.column >= 0 && cell.column < fileBounds.columns) {
        while (row.length < cell.column) row.push('')
        row[cell.column] = toCellText(value, cell, strings, isDate)
      }
      if (tag === 'row') batch.push(row)
    },
  })
  for await (const _chunk of chunks) {
    if (batch.length > 0) yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

const toCellText = (
  value: string,
  { type, style }: { type: string; style: number },
  strings: readonly string[],
  isDate: readonly boolean[],
): string => {
  if (type === 's') return strings[Number(value)] ?? ''
  if (type === 'b') return value === '1' ? 'true' : 'false'
  if (type === 'e') return ''
  return type === 'n' && value !== '' && isDate[style] ? toDateText(Number(value)) : value
}
