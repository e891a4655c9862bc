import type { Cell } from '../../../files/child/reader-definition.ts'
import type { ColumnType, PreparedColumn } from '../../../state/files/prepared-files.ts'
import { cutText } from '../../../state/text/cut-text.ts'
import type { Marks } from './cell-dates.ts'
import { findFamily, type Reading } from './cell-values.ts'
import type { RowSource } from './row-source.ts'

/** A reading that no cell of a column contradicts, and what was met under it. */
export type AliveReading = { reading: Reading; marks: Marks; read(cell: Cell): number | string | undefined }

/** What all cells of a column say. */
export type ColumnFacts<Alive extends AliveReading = AliveReading> = {
  alive: readonly Alive[]
  /** The first cell whose value is another under each of them; undefined: they agree. */
  example: Cell | undefined
  /** The cell that no reading of the earlier ones has. */
  misfit: Cell | undefined
  /** The first thousand distinct cells. */
  distinct: readonly Cell[]
}

/** What its source says of a table. */
export type TableHints = Pick<RowSource, 'decimalHint' | 'named'>

/** What the columns of a table that can be decided say about the others. */
export type TableEvidence = {
  decimals: ReadonlySet<string>
  orders: ReadonlySet<string>
  /** Those of columns that are surely dates. */
  sureOrders: ReadonlySet<string>
  hint: 'point' | null
  /** There are numbers in columns that the header has no cells for. */
  hasOverflow: boolean
}

/** `alive`: the reading, null for a text. `notes`: decisions that are said once for all their columns; `doubt`: why it is a text. */
export type ColumnDecision<Alive extends AliveReading = AliveReading> = {
  type: ColumnType
  reading?: NonNullable<PreparedColumn['reading']>
  alive: Alive | null
  notes: string[]
  doubt?: string
}

const orderIds: ReadonlySet<string> = new Set(['dmy', 'mdy', 'ymd'])
const isDecimal = ({ reading }: AliveReading): boolean => reading.family === 'number'
const isOrder = ({ reading }: AliveReading): boolean => orderIds.has(reading.id)

export const findEvidence = (columns: readonly ColumnFacts[], hints: TableHints): TableEvidence => {
  const collect = (isWanted: (one: AliveReading) => boolean): Set<string> => {
    const only = columns.map(({ alive }) => alive.filter(isWanted)).filter(({ length }) => length === 1)
    return new Set(only.flat().map(({ reading }) => reading.id))
  }
  const { decimalHint: hint = null, named = columns.length } = hints
  const hasOverflow = columns
    .slice(named)
    .some(({ distinct }) => distinct.some((cell) => /^[-+]?\d/.test(String(cell))))
  const sureOrders = collect((one) => isOrder(one) && one.marks.has('surely a date'))
  return { decimals: collect(isDecimal), orders: collect(isOrder), sureOrders, hint, hasOverflow }
}

/** How the cells of a column are read. What stays ambiguous is a text, and the doubt says why. */
export const decideColumn = <Alive extends AliveReading>(
  facts: ColumnFacts<Alive>,
  evidence: TableEvidence,
): ColumnDecision<Alive> => {
  const [first] = facts.alive
  if (facts.distinct.length === 0) return { type: 'empty', alive: null, notes: [] }
  if (first === undefined) return { ...explainUnread(facts), ...toText(explainMisfit(facts)) }
  if (first.reading.family === 'number') return decideNumber(facts, evidence)
  if (first.reading.family === 'date') return decideDate(facts, evidence)
  if (first.reading.family === 'time')
    return {
      type: first.reading.id === 'time' ? 'time' : 'duration',
      alive: first,
      notes: [
        `${facts.distinct.every((cell) => /^\d\d?:\d\d(?!:)/.test(String(cell))) ? 'hours and minutes: ' : ''}texts, of which seconds(x) makes numbers${facts.distinct.some((cell) => /^\d{3}/.test(String(cell))) ? ' to sort and compare too' : ''}`,
      ],
    }
  const { marks } = first
  if (!marks.has('truth literal') && !(marks.has('word for yes') && marks.has('word for no'))) return toText()
  const note = 'words for yes and no, true and false are read as truth values'
  return { type: 'boolean', alive: first, notes: marks.has('truth word') ? [note] : [] }
}

const toText = <Alive extends AliveReading>(doubt?: string): ColumnDecision<Alive> => ({
  type: 'text',
  alive: null,
  notes: [],
  ...(doubt !== undefined && { doubt, reading: 'doubtful' }),
})

const quote = (cell: Cell): string => JSON.stringify(cutText(String(cell).toWellFormed(), 40))

const decideNumber = <Alive extends AliveReading>(
  { alive, example, distinct }: ColumnFacts<Alive>,
  { decimals, hint, hasOverflow }: TableEvidence,
): ColumnDecision<Alive> => {
  if (hasOverflow)
    return toText('rows have more numbers than the header has names, as where a comma splits one')
  const ambiguous = alive.length > 1 && example !== undefined
  // $1.234 has no third decimal, and 1.234 may
  const isPrice = ambiguous && /\p{Sc}|[A-Z]{3}/u.test(String(example)) && /\.\d{3}\D*$/.test(String(example))
  const [decided = isPrice ? null : hint, ...others] = decimals
  const chosen = ambiguous
    ? alive.find(({ reading }) => reading.id === decided && others.length === 0)
    : alive[0]
  if (chosen === undefined) {
    const values = alive.map((one) => one.read(example ?? '')).join(' or ')
    return toText(`${quote(example ?? '')} may be ${values}, and no other cell shows the decimal sign`)
  }
  const { marks, reading } = chosen
  const units = [...marks].filter((mark) => mark.startsWith('unit ')).map((mark) => mark.slice(5))
  if (marks.has('plain') || marks.has('decimals') || marks.has(`${reading.id} plain decimals`)) {
    marks.add('plain sign').add('other digits')
    if (!units.includes('')) units.push('')
  }
  const named = units.filter((unit) => unit !== '')
  if (named.length > 1) return toText(`its cells have different units: ${named.join(', ')}`)
  if (units.includes('%') && units.length > 1)
    return toText('some of its cells have a percent sign and others none')
  if (!marks.has('plain sign'))
    return toText('each of its cells is in parentheses or ends with "-", as no column of numbers is')
  if (!marks.has('other digits'))
    return toText(
      `all its cells have digits like ${quote(distinct[0] ?? '')}, as telephone numbers and codes have`,
    )
  const texts = distinct.map(String)
  // chapters 1.1 and 1.10 are not
  const twin = texts.find((cell) => /[.,]\d+0$/.test(cell) && texts.includes(cell.slice(0, -1)))
  const notes = [
    ...(reading.id === 'comma' && (marks.has('comma decimals') || ambiguous) ? ['decimal comma'] : []),
    ...(reading.id === 'point' && ambiguous
      ? [`decimal point: ${quote(example ?? '')} is ${chosen.read(example ?? '')}`]
      : []),
    ...named.map((unit) =>
      unit === '%' ? 'percents are read as hundredths: 12% is 0.12' : `the unit ${unit} is left out`,
    ),
    ...(marks.has('parentheses') ? ['numbers in parentheses are negative'] : []),
    ...(marks.has('trailing minus') ? ['numbers that end with "-" are negative'] : []),
    ...(twin ? [`${quote(twin.slice(0, -1))} and ${quote(twin)} are one number`] : []),
    ...(marks.has('digits lost') && distinct.every((cell) => /E\+\d\d$/.test(String(cell)))
      ? [`${quote(distinct[0] ?? '')} has lost the digits that a code had`]
      : []),
    ...(marks.has('rounded') ? ['digits beyond the 17th are rounded'] : []),
  ]
  const hasDecimals =
    marks.has('decimals') || marks.has(`${reading.id} decimals`) || marks.has(`${reading.id} plain decimals`)
  return {
    type: hasDecimals ? 'number' : 'integer',
    alive: chosen,
    notes,
    ...(reading.id === 'comma' && { reading: 'comma' }),
  }
}

const orderNames = { dmy: 'day/month/year', mdy: 'month/day/year', ymd: 'year/month/day' }

const decideDate = <Alive extends AliveReading>(
  facts: ColumnFacts<Alive>,
  { orders, sureOrders }: TableEvidence,
): ColumnDecision<Alive> => {
  const { example } = facts
  const local = facts.alive.filter(isOrder)
  const likely = local.length > 1 && example !== undefined ? dropUnlikelyOrders(local, facts.distinct) : local
  const [decided, ...others] = orders
  const ambiguous = likely.length > 1 && example !== undefined
  const chosen = ambiguous
    ? likely.find(({ reading }) => reading.id === decided && others.length === 0)
    : likely[0]
  if (chosen === undefined) {
    const values = likely.map((one) => one.read(example ?? '')).join(' or ')
    return toText(`${quote(example ?? '')} may be ${values}, and no other cell shows the order`)
  }
  const { marks } = chosen
  const offsets = [...marks].filter((mark) => mark.startsWith('offset '))
  const utc = offsets.length > 1 ? facts.alive.find(({ reading }) => reading.id === 'utc') : undefined
  if (utc)
    return {
      type: 'date',
      reading: 'utc',
      alive: utc,
      notes: ['times of different offsets are given in UTC'],
    }
  if (offsets.length > 1) return toText('some of its times have an offset and others none, or another')
  const id = chosen.reading.id as keyof typeof orderNames
  const isShort = marks.has('two-digit years')
  if (!isShort && !marks.has('four-digit years')) return { type: 'date', alive: chosen, notes: [] }
  if (!marks.has('surely a date') && !sureOrders.has(id))
    return toText(`${quote(facts.distinct[0] ?? '')} may be a version or a code`)
  const years = isShort ? ', two-digit years are 1969 to 2029' : ''
  return { type: 'date', reading: id, alive: chosen, notes: [`dates are ${orderNames[id]}${years}`] }
}

/** With two-digit years the part with few different values is the year. */
const dropUnlikelyOrders = <Alive extends AliveReading>(
  alive: readonly Alive[],
  distinct: readonly Cell[],
): readonly Alive[] => {
  const first = new Set<string>()
  const last = new Set<string>()
  for (const cell of distinct) {
    const [, a = '', b = ''] = /^(\d+)\D+\d+\D+(\d+)/.exec(String(cell)) ?? []
    first.add(a)
    last.add(b)
  }
  const isYearFirst = first.size * 3 <= last.size ? true : last.size * 3 <= first.size ? false : null
  return isYearFirst === null ? alive : alive.filter(({ reading }) => (reading.id === 'ymd') === isYearFirst)
}

const familyNames = { number: 'a number', date: 'a date', time: 'a time', boolean: 'a truth value' }

/** "1.5 kg", "< 5", "1.2万", "05-Jan-2024", "Rp 1.250", "Jan 5, 2024" */
export const unreadForm =
  /^(?:(?!\+|0\d|[\d.]+$)[\p{Sc}\p{Cf}<>~≈(+−–-]*\s?\p{Nd}[\p{Nd}.,'’\s]*[^\p{Nd}]{0,12}|\d\d?\P{Nd}{5,14}(?:\d\d){1,2}(?:\s\d\d?:.*)?|[-−]?\p{L}{1,3}\.?\s?\d{1,3}(?:[.,\s]\d{2,3})+\D{0,3}|\p{L}{3,9}\.?\s\d\d?,?\s\d{4})$/u

/** What a statement can convert: no sum of it is doubtful. */
const explainUnread = ({ distinct }: ColumnFacts): { doubt?: string } => {
  const unread = distinct.filter((cell) => unreadForm.test(String(cell)) && findFamily(cell) === null)
  const doubt = `${quote(unread[0] ?? '')} is a number or a date with a unit, word or sign that is not read`
  return unread.length * 2 > distinct.length ? { doubt } : {}
}

/** Why a column of which at least half is of one kind is a text; undefined: it is one. */
const explainMisfit = ({ distinct, misfit }: ColumnFacts): string | undefined => {
  if (distinct.every((cell) => /^\d{1,7}:[0-5]\d$/.test(String(cell))))
    return `${quote(distinct[0] ?? '')} may be of hours and minutes, or of minutes and seconds`
  const families = distinct.map(findFamily)
  for (const family of ['number', 'date', 'time'] as const) {
    if (families.filter((one) => one === family).length * 2 < distinct.length) continue
    const other = distinct[families.findIndex((one) => one !== family)] ?? misfit
    if (other === undefined || findFamily(other) === family)
      return `its cells mix ways to write ${familyNames[family]}, as ${quote(distinct[0] ?? '')} and ${quote(misfit ?? '')} are`
    if (family === 'number' && /^[-+]?[\d.,]+$/.test(String(other)))
      return `${quote(other)} has ${/^[-+]?0/.test(String(other)) ? 'a zero in front' : 'more digits or signs than a number'}, as codes have`
    return `${quote(other)} is not ${familyNames[family]}`
  }
  const short = distinct.find((cell) => /^\d\d?[-/.]\d\d?[-/.]\d\d$/.test(String(cell)))
  return short !== undefined && findFamily(short) === null && distinct.length < 1000
    ? `${quote(short)} does not show its century`
    : undefined
}
