import { RefusedStatementError } from '../../../files/protocol/child-protocol.ts'
import { reservedWord } from '../../../state/files/table-names.ts'
import type { LoadedTable } from './query-job.ts'

/** SQLite counts with the digits that a text begins with: twice "12 kg" is 24, and the days between two dates are 0. */

/** `literal`: what is quoted as a text, and then `text` is empty; `level`: in how many selects of others it stands; `depth`: in how many parentheses. */
export type Token = Record<'name' | 'literal', string | null> & { text: string; level: number; depth: number }

const comment = /('(?:[^']|'')*'?)|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g
const tokenPattern =
  /'((?:[^']|'')*)'?|"([^"]*)"?|`([^`]*)`?|\[([^\]]*)\]?|([\p{L}_][\p{L}\p{N}_$]*)|\d[\w.]*|->>?|\|\||\S/gu

/** The words and signs of a statement; names in lower case, words of SQL without one. */
export const tokenize = (sql: string): Token[] => {
  const levels = [0]
  return [...sql.replace(comment, (_part, quoted) => quoted ?? ' ').matchAll(tokenPattern)].map(
    ([text, literal, quoted, ticked, bracketed, bare], at, all) => {
      const isSelect = /^(?:select|with)$/i.test(all[at + 1]?.[0] ?? '')
      if (text === '(') levels.push((levels.at(-1) ?? 0) + (isSelect ? 1 : 0))
      if (text === ')') levels.pop()
      const name = (quoted ?? ticked ?? bracketed ?? bare)?.toLowerCase() ?? null
      const isReserved = bare !== undefined && reservedWord.test(bare.toLowerCase())
      return {
        text: literal === undefined ? text : "''",
        name: isReserved ? null : name,
        literal: literal?.replaceAll("''", "'") ?? null,
        level: levels.at(-1) ?? 0,
        depth: levels.length,
      }
    },
  )
}

export const isWord = (token: Token | undefined, word: string): boolean => token?.text.toLowerCase() === word

/** What makes a number of what comes before it, or after it: arithmetic, an order beside a number, functions. */
const operandBefore = /^(?:[-+*/%](?: |$)|(?:(?:not )?between|[<>](?: =)?) (?:[-+] )?\d)/i
const operandAfter = /(?:^| )(?:[-+*/%]|\d\S* [<>](?: =)?|(?:abs|round) \()$/i
const aggregates: ReadonlySet<string | null> = new Set(['sum', 'avg', 'total'])
const words = new Set('cast real integer int numeric float true false'.split(' '))
const numberTypes: ReadonlySet<string> = new Set(['integer', 'number', 'boolean', 'empty'])

/**
 * Whether a sum of a statement may get a text. Throws `RefusedStatementError` where a text is an operand of arithmetic, or all
 * that is summed beside a window, where no function of ours can guard.
 */
export const maySumTexts = (sql: string, tables: readonly LoadedTable[]): boolean => {
  const columns = tables.flatMap((table) => table.columns)
  const select = (isNumber: boolean): Set<string> =>
    new Set(
      columns.filter(({ type }) => numberTypes.has(type) === isNumber).map(({ name }) => name.toLowerCase()),
    )
  const numbers = select(true)
  const textNames = select(false)
  const tokens = tokenize(sql)
  const findNamed = openNames(tokens)
  const texts = tokens.map(({ text }) => text)
  const isText = (at: number): boolean => {
    const { name = null } = tokens[at] ?? {}
    return name !== null && textNames.has(name) && !numbers.has(name) && findNamed(at) === at
  }
  for (const [at, { text }] of tokens.entries()) {
    const before = tokens[at - 1]?.text === '.' ? at - 3 : at - 1
    const after = tokens[at + 1]?.text
    const isOperand =
      operandBefore.test(texts.slice(at + 1, at + 5).join(' ')) ||
      operandAfter.test(texts.slice(Math.max(0, before - 3), before + 1).join(' '))
    if (isOperand && after !== '(' && after !== '.' && isText(at))
      throw new RefusedStatementError(
        `${text} holds text, and SQLite would count only with the digits it begins with, or compare as letters sort; convert it first: julianday(x) for dates, seconds(x) for times and durations, CAST(replace(x, …) AS REAL) for others`,
      )
  }
  const sums = tokens.flatMap(({ text }, at) =>
    text === '(' && aggregates.has(tokens[at - 1]?.name ?? null) ? [at] : [],
  )
  if (!tokens.some((one) => isWord(one, 'over')))
    return sums.some((at) => listNames(tokens, at).some((name) => textNames.has(name) || !numbers.has(name)))
  const wrong = tokens[sums.map((at) => findOnlyColumn(tokens, at)).find(isText) ?? -1]
  if (wrong !== undefined)
    throw new RefusedStatementError(
      `A sum over a window needs numbers, and "${wrong.name}" holds text; convert it first, as in SUM(CAST(${wrong.text} AS REAL)) OVER (…)`,
    )
  return false
}

/** The position of the column that a name means: its own, or that which the only select that gives this name has before it. -1: neither. */
export const openNames = (tokens: readonly Token[]) => {
  // of each name the first position, the innermost level and how often it is given
  const aliases = new Map<string, { at: number; level: number; count: number }>()
  let open = 0
  const add = (from: number, to: number): void => {
    for (let at = from; at < to; at++) {
      const { name = null, level = 0 } = tokens[at] ?? {}
      const known = aliases.get(name ?? '') ?? { at, level, count: 0 }
      const count = known.count + 1
      if (name !== null) aliases.set(name, { at: known.at, level: Math.max(known.level, level), count })
    }
  }
  for (const [at, { text, name, literal }] of tokens.entries()) {
    const next = at + 1
    if (name !== null || literal !== null || /^(?:\)|as|end|\d.*)$/i.test(text)) add(next, next + 1)
    // WITH k (x, y) AS (…
    const near = tokens.slice(at, at + 3).map((one) => one.text)
    if (/^\) as (?:\(|not|materialized)$/i.test(near.join(' '))) add(open, at)
    if (text === '(' || text === ')') open = at
  }
  const findAlias = (at: number) => {
    const alias = aliases.get(tokens[at]?.name ?? '')
    return alias && (alias.at < at || alias.level > (tokens[at]?.level ?? 0)) ? alias : undefined
  }
  return (at: number): number => {
    const alias = findAlias(at)
    if (!alias) return at
    const column = alias.at - (isWord(tokens[alias.at - 1], 'as') ? 2 : 1)
    const before = tokens[tokens[column - 1]?.text === '.' ? column - 3 : column - 1]?.text ?? ''
    const isColumn =
      /^(?:select|distinct|,)$/i.test(before) && /^(?:,|from)$/i.test(tokens[alias.at + 1]?.text ?? '')
    return isColumn && alias.count === 1 && !findAlias(column) ? column : -1
  }
}

/** Where the column is that is all of the parenthesis at a position: (x), (DISTINCT x), (t.x). */
const findOnlyColumn = (tokens: readonly Token[], open: number): number => {
  let at = open + (isWord(tokens[open + 1], 'distinct') ? 2 : 1)
  if (tokens[at + 1]?.text === '.') at += 2
  return tokens[at + 1]?.text === ')' ? at : -1
}

/** The names between the parenthesis at a position and its end, without functions, tables and words of SQL. */
const listNames = (tokens: readonly Token[], from: number): string[] => {
  const end = tokens.findIndex((one, at) => at > from && one.depth < (tokens[from]?.depth ?? 0))
  return tokens
    .slice(from + 1, end === -1 ? undefined : end)
    .flatMap(({ name }, nth, { [nth + 1]: next }) =>
      name !== null && !words.has(name) && !['(', '.'].includes(next?.text ?? '') ? [name] : [],
    )
}
