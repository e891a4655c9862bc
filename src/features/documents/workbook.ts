import type { Cell, Sheet } from '../../files/child/reader-definition.ts'
import { fileBounds, UnreadableFileError } from '../../files/protocol/child-protocol.ts'
import { type Archive, listRelatedParts, openArchive, parseXml, readXml } from './archive.ts'
import { findBuiltInFormat, type NumberFormat, parseFormatCode, toFormattedText } from './serial-dates.ts'

const maxStrings = 2_000_000

/** Uses the sheets of a workbook. Their rows stream out of the archive's XML. */
export const withWorkbook = async <Result>(
  path: string,
  use: (sheets: Sheet[]) => Promise<Result>,
): Promise<Result> => {
  using archive = await openArchive(path)
  const sheets = await listRelatedParts(archive, 'xl/workbook.xml', 'sheet')
  const book = {
    strings: await readSharedStrings(archive),
    formats: await readFormats(archive),
    is1904: await isDateSystem1904(archive),
  }
  return await use(
    sheets.map(({ path, attributes }) => {
      const doubts: SheetDoubts = {
        merged: new Set(),
        errors: new Set(),
        empty: new Set(),
        hidden: new Set(/hidden/i.test(attributes.state ?? '') ? ['the sheet'] : []),
      }
      return {
        name: attributes.name ?? path,
        openRows: () => readRowBatches(archive, path, book, doubts),
        notes: () => toDoubtNotes(doubts),
      }
    }),
  )
}

/** What all sheets of a workbook share. */
type Book = { strings: readonly string[]; formats: readonly NumberFormat[]; is1904: boolean }

/** References: of merged cells, errors, formulas without a result, and of what the program does not show. */
type SheetDoubts = Record<'merged' | 'errors' | 'empty' | 'hidden', Set<string>>

const toDoubtNotes = ({ merged, errors, empty, hidden }: SheetDoubts): string[] => {
  const remedy = '; open it in an office program, save it and upload it again'
  const describe = (fact: string, cells: Set<string>, end = '') =>
    cells.size > 0 ? [`${fact}: ${cells.size} (${[...cells].slice(0, 5).join(', ')})${end}`] : []
  return [
    ...describe('merged cells have their value in the first of them only', merged),
    ...describe('cells with an error are empty', errors),
    ...describe('formulas without a stored result are empty', empty, remedy),
    ...describe('hidden rows and sheets are read too', hidden),
  ]
}

const isTrue = (value: string | undefined): boolean => value === '1' || value === 'true'

/** Days count from 1904 in workbooks of old Macs. */
const isDateSystem1904 = async (archive: Archive): Promise<boolean> => {
  let is1904 = false
  await readXml(archive, 'xl/workbook.xml', {
    open: (tag, { date1904 }) => {
      if (tag === 'workbookPr') is1904 = isTrue(date1904)
    },
  })
  return is1904
}

const readSharedStrings = async (archive: Archive): Promise<string[]> => {
  const strings: string[] = []
  const runs = createRuns()
  let text = ''
  await readXml(archive, 'xl/sharedStrings.xml', {
    open: (tag, { val }) => {
      if (tag === 'si') text = ''
      runs.open(tag, val)
    },
    text: (chunk, element, parent) => {
      text += runs.read(chunk, element, parent)
    },
    close: (tag) => {
      if (tag !== 'si') return
      strings.push(decodeEscapes(text))
      if (strings.length > maxStrings)
        throw new UnreadableFileError('it has more than two million different texts; save it as CSV')
    },
  })
  return strings
}

/** The text of a cell. The reading aid of an Asian one is no part of it, and raised digits are marks of footnotes and exponents: 12¹, m². */
const createRuns = () => {
  let isRaised = false
  return {
    open(tag: string, val: string | undefined): void {
      if (tag === 'vertAlign' || tag === 'r' || tag === 'si' || tag === 'c') isRaised = val === 'superscript'
    },
    read(text: string, element: string, parent?: string): string {
      if (element !== 't' || parent === 'rPh') return ''
      return isRaised ? text.replace(/\d/g, (digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)] ?? '') : text
    },
  }
}

/** Characters that XML does not have are written `_x000D_`. */
const decodeEscapes = (text: string): string =>
  text.includes('_x')
    ? text.replace(/_x([0-9A-Fa-f]{4})_/g, (_all, code: string) => String.fromCharCode(parseInt(code, 16)))
    : text

/** What the styles of cells show of a number. */
const readFormats = async (archive: Archive): Promise<NumberFormat[]> => {
  const own = new Map<string, NumberFormat>()
  const formats: NumberFormat[] = []
  await readXml(archive, 'xl/styles.xml', {
    open: (tag, attributes, parent) => {
      const id = attributes.numFmtId ?? '0'
      if (tag === 'numFmt') own.set(id, parseFormatCode(attributes.formatCode ?? ''))
      const format = own.get(id)
      if (tag === 'xf' && parent === 'cellXfs')
        formats.push(format === undefined ? findBuiltInFormat(Number(id)) : format)
    },
  })
  return formats
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
  book: Book,
  doubts: SheetDoubts,
): AsyncGenerator<Cell[][]> {
  let batch: Cell[][] = []
  let row: Cell[] = []
  let cell = { column: 0, type: '', style: 0, reference: '' }
  let value = ''
  let isFormula = false
  let hidden: string | null = null
  const runs = createRuns()
  const chunks = parseXml(archive, part, {
    open: (tag, attributes) => {
      runs.open(tag, attributes.val)
      if (tag === 'row') {
        row = []
        hidden = isTrue(attributes.hidden) ? `row ${attributes.r ?? '?'}` : null
      }
      if (tag === 'f') isFormula = true
      if (tag === 'mergeCell') doubts.merged.add(attributes.ref ?? '')
      if (tag === 'c') {
        const column = attributes.r === undefined ? row.length : parseColumn(attributes.r)
        const reference = attributes.r ?? ''
        cell = { column, type: attributes.t ?? 'n', style: Number(attributes.s ?? 0), reference }
        value = ''
        isFormula = false
      }
    },
    text: (text, element, parent) => {
      value += element === 'v' ? text : runs.read(text, element, parent)
    },
    close: (tag) => {
      // the column is a claim of the file: it must not make a row of billions of cells
      if (tag === 'c' && cell.column >= 0 && cell.column < fileBounds.columns) {
        while (row.length < cell.column) row.push('')
        row[cell.column] = toCell(value, cell, book)
        if (cell.type === 'e') doubts.errors.add(cell.reference)
        else if (isFormula && value === '' && cell.type !== 'str') doubts.empty.add(cell.reference)
      }
      if (tag !== 'row') return
      if (hidden !== null && row.some((value) => value !== '')) doubts.hidden.add(hidden)
      batch.push(row)
    },
  })
  for await (const _chunk of chunks) {
    if (batch.length > 0) yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

const toCell = (
  value: string,
  { type, style }: { type: string; style: number },
  { strings, formats, is1904 }: Book,
): Cell => {
  if (type === 's') return strings[Number(value)] ?? ''
  if (type === 'b') return String(isTrue(value))
  if (type === 'e' || value === '') return ''
  if (type !== 'n') return type === 'd' ? value.replace(/T00:00:00(?:\.0+)?Z?$/, '') : decodeEscapes(value)
  const number = Number(value)
  if (Number.isNaN(number)) return value
  const format = formats[style] ?? null
  if (format !== null) return toFormattedText(number, format, is1904)
  // an id of more digits than a number holds
  return /^-?\d{16,}$/.test(value) && !Number.isSafeInteger(number) ? value : number
}
