import type { Cell } from '../../../files/child/reader-definition.ts'
import type { ColumnType, PreparedColumn } from '../../../state/files/prepared-files.ts'
import { type Marks, readDate, readTime } from './cell-dates.ts'

/** One way to read the cells of a column. Of a family, those that give the same values are one decision. */
export type Reading = {
  id: 'point' | 'comma' | 'dmy' | 'mdy' | 'ymd' | 'utc' | 'time' | 'duration' | 'boolean'
  family: 'number' | 'date' | 'time' | 'boolean'
  /** The value as SQL has it; undefined: the cell is not of this reading. */
  read(cell: Cell, marks: Marks): number | string | undefined
}

const plainInteger = /^-?(?:0|[1-9]\d{0,14})$/
/** Integers, and dates whose year is first: the same under each decimal sign and each order. */
export const neutralCell = /^(?:-?(?:0|[1-9]\d{0,14})|\d{4}[-/]\d.*)$/
const plainDecimal = /^-?(?:0|[1-9]\d{0,14})\.\d{1,15}$/

const spaces = ' \\u00a0\\u2009\\u202f'
const toDecimalSource = (decimal: string, group: string, more = ''): string =>
  `^(0|[1-9]\\d*|[1-9]\\d{0,2}(?:(?:${group}\\d{3})+|(?:[${spaces}]\\d{3})+|(?:['’]\\d{3})+)${more})?(?:${decimal}(\\d+))?(?:[eE]([-+]?\\d{1,3}))?$`
const decimalPatterns = {
  // India groups by two digits above the thousands
  point: new RegExp(toDecimalSource('\\.', ',', '|[1-9]\\d?(?:,\\d\\d)+,\\d{3}')),
  comma: new RegExp(toDecimalSource(',', '\\.')),
}
const currency =
  '[A-Z]{0,3}\\p{Sc}|[A-Z]{3}|kr\\.?|zł|Kč|Ft|lei|TL|RM|Rp\\.?|грн\\.?|Rs\\.?|S?Fr\\.?|руб\\.?|元|円|원'
// a minus of Unicode, and what is written for it: hyphen, figure dash, en dash
const sign = '[-+−‐-–]'
const dressed = new RegExp(
  `^(?:(${currency})\\s?(?=\\())?(\\()?(${sign})?\\s?(%|${currency})?\\s?(${sign})?((?=[.,]?\\d)[\\d.,'’${spaces}eE+-]*\\d)\\s?(%|${currency})?((?!\\+)${sign})?(\\))?$`,
  'u',
)
const currencies: ReadonlySet<string> = new Set(Intl.supportedValuesOf('currency'))
const maxNumberChars = 60

/** The digits and signs of East Asian keyboards as plain ones, and a dash for cents as zeros: 12.– is 12.00. */
const toPlain = (text: string): string =>
  text.replace(/[！-～]|(?<=\d[.,])(?:-{1,3}|[–—])(?![\d–—-])/g, (sign) =>
    sign < '！' ? '00' : String.fromCharCode(sign.charCodeAt(0) - 0xfee0),
  )

/** A number in its dress: sign, unit, groups, decimal sign. */
const readDressed = (cell: string, decimal: 'point' | 'comma', marks: Marks): number | undefined => {
  const match = cell.length > maxNumberChars ? null : (dressed.exec(cell) ?? dressed.exec(toPlain(cell)))
  if (!match) return undefined
  const [, outer, open, sign, within, inner, body = '', after, trailing, close] = match
  const before = outer ?? within
  const parts = decimalPatterns[decimal].exec(body)
  const signs = [open && close, sign, inner, trailing].filter(Boolean)
  if (!parts || signs.length > 1 || Boolean(open) !== Boolean(close) || (before && after && before !== after))
    return undefined
  const [, whole = '', fraction, exponent] = parts
  const digits = whole.replace(/\D/g, '')
  const unit = (before ?? after ?? '').replace(/\.$/, '')
  if (/^[A-Z]{3}$/.test(unit) && !currencies.has(unit)) return undefined
  // more digits than a number holds; a code like 12E4; a telephone number
  if (!Number.isSafeInteger(Number(digits)) || (exponent && !fraction && !/^[-+]/.test(exponent)))
    return undefined
  if (signs[0] === '+' && !fraction && (digits.length > 6 || whole !== digits)) return undefined
  const isNegative = signs.length > 0 && signs[0] !== '+'
  const scale = Number(exponent ?? 0) - (unit === '%' ? 2 : 0)
  const value = Number(`${isNegative ? '-' : ''}${digits || '0'}.${fraction ?? '0'}e${scale}`)
  if (!Number.isFinite(value)) return undefined
  if (unit !== '%' || value !== 0) marks.add(`unit ${unit}`)
  marks.add(open ? 'parentheses' : trailing ? 'trailing minus' : 'plain sign')
  marks.add(/^\d{3}(?:[ .]\d{3}){2,}$/.test(body) ? 'three by three' : 'other digits')
  if (fraction !== undefined || unit === '%' || exponent) marks.add(`${decimal} decimals`)
  if (digits.length + (fraction?.length ?? 0) > 17 && /[1-9]/.test((fraction ?? '').slice(17)))
    marks.add('rounded')
  if (Number(exponent) > 10 && (fraction?.length ?? 0) < 7) marks.add('digits lost')
  return value
}

const readNumber =
  (decimal: 'point' | 'comma') =>
  (cell: Cell, marks: Marks): number | undefined => {
    if (typeof cell === 'number') {
      marks.add(Number.isSafeInteger(cell) ? 'plain' : 'decimals')
      return cell
    }
    const isPlain = plainInteger.test(cell)
    if (!isPlain && (decimal === 'comma' || !plainDecimal.test(cell)))
      return readDressed(cell, decimal, marks)
    marks.add(isPlain ? 'plain' : 'point plain decimals')
    return Number(cell)
  }

/** Words for true and false; those of a language without `alone` are truth values only where both are in the column. */
const truthWords = new Map<string, { value: 0 | 1; alone: boolean }>()
for (const [words, value, alone] of [
  ['true wahr vrai verdadero verdadeiro vero waar prawda sant истина', 1, true],
  ['false falsch faux falso onwaar fałsz falskt ложь', 0, true],
  ['yes ja oui sí si sim sì tak ano да 是 はい', 1, false],
  ['no nein non não nee nej nei nie ne нет 否 いいえ', 0, false],
] as const)
  for (const word of words.split(' ')) truthWords.set(word, { value, alone })

const readBoolean = (cell: Cell, marks: Marks): number | undefined => {
  const word = typeof cell === 'string' && cell.length < 11 ? truthWords.get(cell.toLowerCase()) : undefined
  if (!word) return undefined
  marks.add(word.alone ? 'truth literal' : word.value === 1 ? 'word for yes' : 'word for no')
  if (!/^(true|false)$/i.test(String(cell))) marks.add('truth word')
  return word.value
}

const dateReading = (id: 'dmy' | 'mdy' | 'ymd' | 'utc'): Reading => ({
  id,
  family: 'date',
  read: (cell, marks) => (typeof cell === 'string' ? readDate(cell, id, marks) : undefined),
})

/** All readings, in the order in which equal ones are preferred. */
export const readings: readonly Reading[] = [
  { id: 'point', family: 'number', read: readNumber('point') },
  { id: 'comma', family: 'number', read: readNumber('comma') },
  ...(['ymd', 'dmy', 'mdy', 'utc'] as const).map(dateReading),
  ...(['time', 'duration'] as const).map(
    (id): Reading => ({
      id,
      family: 'time',
      read: (cell) => (typeof cell === 'string' ? readTime(cell, id) : undefined),
    }),
  ),
  { id: 'boolean', family: 'boolean', read: readBoolean },
]

const plainReadings: Record<string, string> = { integer: 'point', number: 'point', date: 'ymd' }

/** How the cells of a column are read; undefined: they are texts. */
export const findReading = (type: ColumnType, reading: PreparedColumn['reading']): Reading | undefined =>
  readings.find(({ id }) => id === (reading ?? plainReadings[type] ?? type))

/** The family that a cell by itself is of; null: it is a text. */
export const findFamily = (cell: Cell): Reading['family'] | null => {
  const marks: Marks = new Set()
  return readings.find(({ read }) => read(cell, marks) !== undefined)?.family ?? null
}

const nullWord =
  /^(?:null|\(null\)|nil|none|na|n\/a|n\.a\.|n\.d\.|k\.\s?a\.|nan|<na>|#n\/[ad]|#nv|#¡?(?:value|wert|valeur|valor|ref|bezug|name|num|zahl|null|div\/0)[!?]|\\n|-{1,3}|[–—?]|\.{1,2}|0000-00-00(?: 00:00:00)?|1900-01-00)$/i

/** Whether a cell is one of the words for an empty one, where the other cells are numbers, dates, times or truth values. */
export const isNullWord = (cell: string): boolean => cell.length <= 19 && nullWord.test(cell)

/** Whether a word stands for an empty cell among texts too: NA is a country, and None a name. */
export const isNullText = (word: string): boolean =>
  /^(?:NULL|null|\\N|#N\/A|N\/A|n\/a|NaN|nan|<NA>|#NV)$/.test(word)
