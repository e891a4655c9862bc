import { type Column, isAmount, isId, isNumber, literal, type Table } from './tables.ts'
import { escapePattern, findName, hasHan, withTranslations, wordsForValue } from './words.ts'

/**
 * A condition of a question as SQL and as the answer says it; `words` are the texts of the question that it is made from. `byRow`: the word
 * ("no", "and") that makes it one of rows alone: of a customer with several rows it says something else.
 */
export type Condition = {
  sql: string
  says: string
  column: string
  words: readonly string[]
  byRow?: string
}

/** A value of a column that a question names. */
export type NamedValue = { field: string; value: string }

type Compared = Pick<Column, 'sql' | 'name'>

const mostColumns = 12

/** A query for the values that stand in a question, of text columns and of long ids; null for a table without such columns. */
export const valuesQuery = (question: string, { sql: table, columns }: Table): string | null => {
  const named = columns.filter((column) => column.type === 'text' || (isNumber(column) && isId(column)))
  if (named.length === 0) return null
  const asked = literal(withTranslations(question).slice(0, 500).toLowerCase())
  const selects = named.slice(0, mostColumns).map(({ sql, name, type }) => {
    const isIn = `length(${sql}) > ${type === 'text' ? 1 : 3} AND instr(question.text, lower(${sql})) > 0`
    return `SELECT ${literal(name)} AS field, ${sql} AS value FROM ${table}, question WHERE ${isIn}`
  })
  return `WITH question AS (SELECT ${asked} AS text) ${selects.join(' UNION ')}`
}

const negation = /(?:\b(?:not|isn't|aren't|no|except|without|excluding)\s+(?:\w+\s+)?|没有?|不是?|未|非)$/i
/** What stands between values of which each will do; "returned in the North and cancelled in the East" says more. */
const joiner = /^(?:[\s,，、/&]|\b(?:and|or|the|in|from|of|for)\b|以及|或者|[和或及与])*$/i
const explicitPattern = /(?<![\p{L}_])([\p{L}_]+)\s*(?:==?|等于)\s*["“']?([\p{L}_][\p{L}\p{N}_-]*)/u

/** "paid orders": the first column that has a value of the question; "status = paid" whether it has it or not. */
const valueConditions = (question: string, { columns }: Table, named: readonly NamedValue[]): Condition[] => {
  const asked = withTranslations(question)
  const [explicit = '', field = '', value = ''] = explicitPattern.exec(question) ?? []
  const taken = new Set<string>()
  const isNamed = (text: string): boolean => {
    const pattern = escapePattern(text)
    const whole = hasHan(text) ? pattern : `(?<![\\p{L}\\p{N}])${pattern}(?![\\p{L}\\p{N}])`
    return text !== '' && !taken.has(text.toLowerCase()) && new RegExp(whole, 'iu').test(asked)
  }
  return columns.flatMap(({ sql, name }): Condition[] => {
    const own = [...named, { field, value }].filter((one) => one.field === name && isNamed(one.value))
    const values = [...new Set(own.map((one) => one.value))]
    if (values.length === 0) return []
    for (const one of values) taken.add(one.toLowerCase())
    const words = values.flatMap((one) => wordsForValue(question, one))
    const places = words.map((word) => ({ word, at: question.indexOf(word) })).toSorted((a, b) => a.at - b.at)
    const ends = places.map(({ word, at }) => at + word.length)
    const gaps = places.slice(1).map(({ at }, one) => question.slice(ends[one], at))
    if (!gaps.every((text) => joiner.test(text))) return []
    const [and] = gaps.flatMap((text) => /\band\b|[和与及]/i.exec(text)?.[0] ?? [])
    const [not] = negation.exec(question.slice(0, places[0]?.at)) ?? []
    const byRow = (not ?? and)?.trim()
    return [
      {
        sql: `${sql} ${not ? 'NOT ' : ''}IN (${values.map(literal).join(', ')})`,
        says: `${name} ${not ? '≠' : '='} ${values.join(' / ')}`,
        column: name,
        ...(byRow && { byRow }),
        words: [
          ...(field === name ? [explicit] : []),
          not ?? '',
          ...words,
          ...values.slice(1).map(() => ' or '),
        ],
      },
    ]
  })
}

const figure = '[$€£¥]?\\s?(-?\\d[\\d,]*(?:\\.\\d+)?)(?![\\d/年月-])'
const comparisons: readonly (readonly [words: string, sign: string])[] = [
  ['>=|≥|\\bat least|\\bno less than|至少|不低于|不少于', '>='],
  ['<=|≤|\\bat most|\\bno more than|\\bup to|至多|不超过', '<='],
  ['>|\\bover|\\babove|\\b(?:more|greater|larger|higher) than|大于|超过|高于|多于', '>'],
  ['<|\\bunder|\\bbelow|\\b(?:less|fewer|smaller|lower) than|小于|少于|低于|不到', '<'],
  ['=|\\bequals?|等于', '='],
]
const between = new RegExp(`\\bbetween\\s+${figure}\\s+and\\s+${figure}`, 'i')

/** The first comparison of a question: its words, and its limits. */
const findComparison = (
  question: string,
): { words: string; limits: (readonly [string, string])[] } | null => {
  const [range = '', from = '', to = ''] = between.exec(question) ?? []
  const limits = [['>=', from] as const, ['<=', to] as const]
  if (range) return { words: range, limits }
  for (const [pattern, sign] of comparisons) {
    const [words, number = ''] = new RegExp(`(?:${pattern})\\s*${figure}`, 'i').exec(question) ?? []
    if (words) return { words, limits: [[sign, number]] }
  }
  return null
}

/** The column that a text names most surely. */
export const bestColumn = (text: string, columns: readonly Column[]) =>
  columns
    .map((column) => ({ column, score: findName(text, column.name)?.score ?? 0 }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)[0]

/** What is measured, and what a row is worth. */
export type Amounts = { measure: Compared | null; value: Compared | null }

/**
 * What a comparison is about. "15 units" names its column; "15 orders" and "15 customers" would have to be counted first: null. "Orders over
 * 500" is about what an order is worth.
 */
const comparedColumn = (
  [before = '', after = '']: readonly string[],
  { sql: table, columns }: Table,
  named: readonly NamedValue[],
  { measure, value }: Amounts,
): Compared | null => {
  if (/^\s*[单次笔条人家位种款名个]/u.test(after)) return null
  const amounts = columns.filter(isAmount)
  const unit = /^\s*件/.test(after) ? '件数' : (/^\s*([a-z]+)/i.exec(after)?.[1] ?? '')
  const byUnit = bestColumn(unit, amounts)
  if (byUnit) return byUnit.column
  const others = [table, ...columns.filter((column) => !isAmount(column)).map(({ name }) => name)]
  const begins = ({ value: one }: NamedValue): boolean => one.toLowerCase().startsWith(unit.toLowerCase())
  if (unit !== '' && (named.some(begins) || others.some((name) => findName(unit, name)))) return null
  const noun = /(?<![a-z])[a-z]+$/i.exec(before.trimEnd())?.[0] ?? ''
  if (findName(noun, table)) return value
  const byName = bestColumn(before + after, amounts)
  return byName && byName.score > 1 ? byName.column : measure
}

/** "over 500" of the number column that is named, else of what the question measures. */
const comparisonConditions = (
  question: string,
  table: Table,
  named: readonly NamedValue[],
  amounts: Amounts,
): Condition[] => {
  const found = findComparison(question)
  const column = found && comparedColumn(question.split(found.words), table, named, amounts)
  if (!column) return []
  return found.limits.map(([sign, number]) => ({
    sql: `${column.sql} ${sign} ${number.replaceAll(',', '')}`,
    says: `${column.name} ${sign} ${number}`,
    column: column.name,
    words: [found.words],
  }))
}

const months = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')
const monthEnds = 'uary|ruary|ch|il|e|y|ust|t|tember|ober|ember'
const day = '(\\d{4}-\\d{2}-\\d{2})'
const daysPattern = new RegExp(
  `(?:\\b(?:between\\s+${day}\\s*and|(?:from\\s+)?${day}\\s*to)|${day}\\s*[到至])\\s*${day}|${day}(?<!\\b(?:between|from)\\s+.{10})(?!\\s*and\\s+\\d)`,
)
const yearMonthPattern = /(\d{4})(?:-|年)(\d{1,2})(?:月|\b)/
const monthPattern = new RegExp(
  `\\b(?:in|during|for|of)\\s+(${months.join('|')})(?:${monthEnds})?\\b(?:,?\\s+(\\d{4}))?|(?<!\\d)(\\d{1,2})月`,
  'i',
)
const yearPattern = /\b(?:in|during|for)\s+(\d{4})\b|(\d{4})年/

/** The days that a question speaks of, as SQL on an ISO date. */
const daysIn = (question: string, sql: string): { sql: string; words: string } | null => {
  const [days, ...found] = daysPattern.exec(question) ?? []
  const [from = '', to = from] = found.filter((one) => one !== undefined)
  if (days) return { sql: `substr(${sql}, 1, 10) BETWEEN '${from}' AND '${to}'`, words: days }
  const yearMonth = yearMonthPattern.exec(question)
  const named = monthPattern.exec(question)
  const year = yearMonth?.[1] ?? named?.[2]
  const name = named?.[1]?.toLowerCase()
  const number = yearMonth?.[2] ?? (name === undefined ? named?.[3] : String(months.indexOf(name) + 1))
  const month = number?.padStart(2, '0')
  const words = yearMonth?.[0] ?? named?.[0] ?? ''
  if (month && year) return { sql: `substr(${sql}, 1, 7) = '${year}-${month}'`, words }
  if (month) return { sql: `substr(${sql}, 6, 2) = '${month}'`, words }
  const [whole, en, han] = yearPattern.exec(question) ?? []
  return whole ? { sql: `substr(${sql}, 1, 4) = '${en ?? han}'`, words: whole } : null
}

const dateConditions = (question: string, { columns }: Table): Condition[] => {
  const column = columns.find(({ type }) => type === 'date')
  const found = column && daysIn(question, column.sql)
  if (!found) return []
  const says = found.words.replace(/^(?:in|during|for|of|between|from) /i, `${column.name} `)
  return [{ ...found, says, column: column.name, words: [found.words] }]
}

/** A question without what its conditions are made from. */
export const withoutWords = (question: string, conditions: readonly Condition[]): string =>
  conditions.flatMap(({ words }) => words).reduce((text, words) => text.replace(words, ' '), question)

/** All conditions of a question on a table. */
export const findConditions = (
  question: string,
  table: Table,
  named: readonly NamedValue[],
  amounts: Amounts,
): Condition[] => {
  const dates = dateConditions(question, table)
  const rest = withoutWords(question, dates)
  return [
    ...valueConditions(question, table, named),
    ...comparisonConditions(rest, table, named, amounts),
    ...dates,
  ]
}
