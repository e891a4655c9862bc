import { RefusedStatementError } from '../../../files/protocol/child-protocol.ts'
import { quoteName } from '../../../state/files/table-names.ts'
import { findFamily, findReading } from './cell-values.ts'
import { unreadForm } from './column-decision.ts'
import type { LoadedTable } from './query-job.ts'
import { isWord, openNames, type Token, tokenize } from './text-operands.ts'

/** SQLite compares a number with a text, and a date with one of another form, without an error: none is equal, or all are. */

/**
 * A token as one letter, so that the patterns below find comparisons: l is a literal, c the name of a column or function, d a
 * number, = a sign that compares, k CASE, m min or max, and any other word its first letter: w WHEN, i IN or IS, n NOT, b BETWEEN, a AND.
 */
const toCode = ({ text, name, literal }: Token, at: number, all: readonly Token[]): string => {
  if (all[at + 1]?.text === '(' && (name === 'min' || name === 'max')) return 'm'
  const word = text.toLowerCase().replace('case', 'k')
  return literal !== null
    ? 'l'
    : name !== null
      ? 'c'
      : word.charAt(0).replace(/\d/, 'd').replace(/[<>!]/, '=')
}

/** A column beside literals: = 'x', IS NOT 'x', CASE … WHEN 'x', IN ('x', 'y'), BETWEEN 'x' AND 'y'; or 'x' = and a column. */
const comparison =
  /(?<![|*/%+-](?:c\.)?)c(?:(?:=+|in?|(?<=k(?:c\.)?c)w)l(?!\|)|n?i\([ld,+-]*\)|n?b[ld]a[ld])|l=+(?:c\.)?c(?![.(|*/%+-])/g
/** The column of min or max, and the first ten of ORDER BY, of which the first may be its place in the select: others only order ties. */
const sorted = /(?<=m\((?:c\.)?)c(?=\))|(?<=ob(?:(?:c\.)?cc?,){0,9}(?:c\.)?)c(?![.(|])|(?<=ob)d/g
/** A function beside a number. */
const functionComparison = /c\([^()]*(?:\([^()]*\)[^()]*)*\)=+d/g
const textFunctions = new Set('strftime date time substr substring lower upper trim replace'.split(' '))
/** What SQLite makes a number of. */
export const plainNumber = /^\s*[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?\s*$/i

const refuse = (message: string): never => {
  throw new RefusedStatementError(message)
}

const isUnread = (cell: string): boolean => unreadForm.test(cell) || findFamily(cell) !== null

const isIsoDate = (cell: unknown): boolean => /^\d{4}-\d/.test(String(cell))

/**
 * Throws `RefusedStatementError` for a literal that no cell of its column is, and where numbers or dates that were not read are
 * sorted or compared as the texts they are. `select` gives values of a table, at most 1,000.
 */
export const checkLiterals = (
  sql: string,
  tables: readonly LoadedTable[],
  select: (what: string, table: string) => unknown[],
): void => {
  const tokens = tokenize(sql)
  const codes = tokens.map(toCode).join('')
  const findNamed = openNames(tokens)
  /** The only column of a name; undefined: no table has it. */
  const findOnly = (named?: string | null) => {
    const isNamed = ({ name }: { name: string }): boolean => name.toLowerCase() === named?.toLowerCase()
    const [found, ...others] = tables.filter(({ columns }) => columns.some(isNamed))
    const column = found?.columns.find(isNamed)
    if (!column || others.length > 0) return column && null
    const name = quoteName(column.name)
    return { ...column, name, select: (what: string) => select(what, found?.table ?? '') }
  }
  /** The column of a name; null for one that the statement itself gives (`AS`). */
  const findColumn = (at: number) => (findNamed(at) === at ? findOnly(tokens[at]?.name) : null)
  /** The same, but an alias stands for its column, unless a table has a column of this name too: SQLite means one or the other by the clause. */
  const findSorted = (at: number) => findColumn(findOnly(tokens[at]?.name) === undefined ? findNamed(at) : at)
  /** Of a text column that is sorted, or compared with a date. */
  const checkTexts = (column: ReturnType<typeof findColumn>, literal?: string): void => {
    if (column?.type !== 'text') return
    const { name } = column
    const cells = column.select(name).map(String)
    const odd = cells.filter((cell) => !isIsoDate(cell))
    const codeLengths = new Set(odd.map((cell) => (/^\d+$/.test(cell) ? cell.length : null)))
    const unread = odd.filter(isUnread)
    const areCodes = codeLengths.size === 1 && !codeLengths.has(null)
    if (literal ? odd.length === cells.length : unread.length * 2 > cells.length && !areCodes)
      refuse(
        `${name} is text that sorts by its letters, as '${odd[0]}': convert it first, or write ${name} || ''`,
      )
  }
  /** The column of a place in the list of the select before it. */
  const findPlace = (at: number) => {
    const isNear = (nth: number): boolean => tokens[nth]?.depth === tokens[at]?.depth
    const starts: number[] = []
    let nth = at - 1
    for (; !isNear(nth) || !isWord(tokens[nth], 'select'); nth--) {
      if ((tokens[nth]?.depth ?? -1) < (tokens[at]?.depth ?? 0)) return null
      if (isNear(nth) && codes[nth] === ',') starts.unshift(nth)
    }
    if (/^(?:union|all|except|intersect)$/i.test(tokens[nth - 1]?.text ?? '')) return null
    const place = Number(tokens[at]?.text) - 1
    const all = tables.find(({ table }) => table === tokens[nth + 3]?.name)
    if (all && codes[nth + 1] === '*' && codes[nth + 2] === 'f' && !isWord(tokens[0], 'with'))
      return findOnly(all.columns[place]?.name)
    const start = [isWord(tokens[nth + 1], 'distinct') ? nth + 1 : nth, ...starts][place] ?? at
    const item = /^(?:c\.)?c(?=a?c?[,f])/.exec(codes.slice(start + 1, start + 8))
    return item && !/[s.,]\*/.test(codes.slice(nth, start)) ? findSorted(start + item[0].length) : null
  }
  for (const { index, 0: match } of codes.matchAll(sorted)) {
    const isFirst =
      /(?:b|m\()(?:c\.)?$/.test(codes.slice(Math.max(0, index - 4), index)) &&
      /^(?:[,);]|asc|desc|nulls|collate|limit)?$/i.test(tokens[index + 1]?.text ?? '')
    checkTexts((!isFirst ? findColumn : match === 'd' ? findPlace : findSorted)(index))
  }
  // LIKE beside a literal
  for (const { index, 0: match } of codes.matchAll(/cn?ll(?!\|)/g)) {
    const column = findColumn(index)
    const literal = tokens[index + match.length - 1]?.literal ?? ''
    if (!column || /^(?:[\d_]{4}|%-)/.test(literal) === (column.type === 'date')) continue
    const { name, type, select } = column
    const unread = select(name).filter((cell) => type === 'date' || isUnread(String(cell)))
    const like = `${name} LIKE '${literal.replaceAll("'", "''")}'`
    if (unread.length * 2 >= select(name).length && select(`max(${like})`)[0] === 0)
      refuse(`${name} holds texts as '${unread[0]}', and '${literal}' is like none of them`)
  }
  for (const { index, 0: match } of codes.matchAll(comparison)) {
    const column = findColumn(match.startsWith('l') ? index + match.length - 1 : index)
    if (!column) continue
    const parts = tokens.slice(index, index + match.length)
    const form = parts.map(({ text }, nth) => (match[nth] === '=' ? text : match[nth])).join('')
    const { type, reading, name } = column
    if (/(?<!<)>|<(?!>)|b/.test(form)) checkTexts(column)
    for (const { literal } of parts) {
      if (literal === '' && /^c(?:=+l|il|i\()|^l=/.test(form) && !/\bnull\b|coalesce/i.test(sql))
        refuse(`an empty cell is NULL, and no text is: write ${name} IS NULL`)
      if (literal && isIsoDate(literal)) checkTexts(column, literal)
      const read = findReading(type, reading === 'utc' ? undefined : reading)?.read
      if (!literal || !read) continue
      const value = read(literal, new Set())
      const right = typeof value === 'string' ? `'${value}'` : value
      if (typeof value === 'string' ? value !== literal : !plainNumber.test(literal))
        refuse(
          `${name} is of type ${type}: '${literal}' is ${value === undefined ? 'not' : `${right} in it`}`,
        )
      const isDay = literal.length === 10 && !/^c(?:<|>=)l|^l(?:>|<=)(?:c\.)?c/.test(form)
      if (type === 'date' && isDay && Number(column.select(`max(length(${name}))`)[0]) > 10)
        refuse(`${name} has times of day, later than '${literal}': compare its day, substr(${name}, 1, 10)`)
    }
  }
  for (const { index, 0: match } of codes.matchAll(functionComparison)) {
    const name = tokens[index]?.name ?? ''
    const number = tokens[index + match.length - 1]?.text
    if (textFunctions.has(name)) refuse(`${name}() gives a text: compare it with '${number}'`)
  }
}
