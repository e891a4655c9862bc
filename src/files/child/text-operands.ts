import { type LoadedTable, RefusedStatementError } from '../protocol/child-protocol.ts'

/** SQLite counts with the digits that a text begins with: twice "12 kg" is 24, and the days between two dates are 0. */

type Token = { text: string; name: string | null }

const skipped = /'[^']*'?|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g
const token = /"([^"]*)"?|`([^`]*)`?|\[([^\]]*)\]?|([\p{L}_][\p{L}\p{N}_$]*)|\d[\w.]*|->>?|\|\||\S/gu

/** The words and signs of a statement, without what is quoted as a text; names in lower case. */
const tokenize = (sql: string): Token[] =>
  [...sql.replace(skipped, (part) => (part.startsWith("'") ? "''" : ' ')).matchAll(token)].map(
    ([text, quoted, ticked, bracketed, bare]) => ({
      text,
      name: (quoted ?? ticked ?? bracketed ?? bare)?.toLowerCase() ?? null,
    }),
  )

const operators: ReadonlySet<string | undefined> = new Set(['+', '-', '*', '/', '%'])
const aggregates: ReadonlySet<string | null> = new Set(['sum', 'avg', 'total'])
const words = new Set(
  'case when then else end distinct cast as real integer int numeric float and or not null is in between true false'.split(
    ' ',
  ),
)
const numberTypes: ReadonlySet<string> = new Set(['integer', 'number', 'boolean', 'empty'])

/**
 * Whether a sum of a statement may get a text. Throws `RefusedStatementError` where a text is an operand of arithmetic, or of a
 * sum over a window, which no function of ours can guard.
 */
export const maySumTexts = (sql: string, tables: readonly LoadedTable[]): boolean => {
  const columns = tables.flatMap((table) => table.columns)
  const select = (isNumber: boolean): Set<string> =>
    new Set(
      columns.filter(({ type }) => numberTypes.has(type) === isNumber).map(({ name }) => name.toLowerCase()),
    )
  const numbers = select(true)
  const tokens = tokenize(sql)
  // what a statement names itself may be a number
  const aliases = new Set(tokens.flatMap(({ name }, at) => (tokens[at - 1]?.name === 'as' ? [name] : [])))
  const texts = select(false)
  const isText = (name: string | null): boolean =>
    name !== null && texts.has(name) && !numbers.has(name) && !aliases.has(name)
  for (const [at, { name, text }] of tokens.entries()) {
    const before = tokens[at - 1]?.text === '.' ? at - 3 : at - 1
    const after = tokens[at + 1]?.text
    if (isText(name) && after !== '(' && (operators.has(tokens[before]?.text) || operators.has(after)))
      throw new RefusedStatementError(
        `${text} is a text, of which SQLite takes the digits that it begins with: convert it first (dates by julianday(x), times and durations by seconds(x), others by replace and CAST)`,
      )
  }
  const summed = tokens.flatMap(({ name }, at) => (aggregates.has(name) ? listNames(tokens, at + 1) : []))
  const isOverWindow = tokens.some(({ name }) => name === 'over')
  const wrong = isOverWindow ? summed.find(isText) : undefined
  if (wrong !== undefined)
    throw new RefusedStatementError(`"${wrong}" is a text, which has no sum: convert it first, by CAST`)
  return !isOverWindow && summed.some((name) => !numbers.has(name))
}

/** The names between the parenthesis at a position and its end, without functions, tables and words of SQL. */
const listNames = (tokens: readonly Token[], from: number): string[] => {
  const names: string[] = []
  let depth = 0
  for (let at = from; at < tokens.length; at++) {
    const { text = '', name = null } = tokens[at] ?? {}
    depth += text === '(' ? 1 : text === ')' ? -1 : 0
    if (depth === 0) break
    if (name !== null && !words.has(name) && !['(', '.'].includes(tokens[at + 1]?.text ?? ''))
      names.push(name)
  }
  return names
}
