import { type Column, isAmount, isId, isNumber, literal, type Table } from './tables.ts'
import { escapePattern, findName, hasHan, withTranslations, wordsForValue } from './words.ts'

/** A condition of a question as SQL and as the answer says it; `words` are the texts of the question that it is made from. */
export type Condition = { sql: string; says: string; column: string; words: readonly string[] }

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
    const [not] = negation.exec(question.slice(0, question.indexOf(words[0] ?? ''))) ?? []
    return [
      {
        sql: `${sql} ${not ? 'NOT ' : ''}IN (${values.map(literal).join(', ')})`,
        says: `${name} ${not ? '≠' : '='} ${values.join(' / ')}`,
        column: name,
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

/** "over 500" of the number column that is named, else of what the question measures. */
const comparisonConditions = (
  question: string,
  { columns }: Table,
  measure: Compared | null,
): Condition[] => {
  const named = columns.find((one) => isAmount(one) && (findName(question, one.name)?.score ?? 0) > 1)
  const column = named ?? measure
  if (!column) return []
  const condition = (sign: string, number: string, words: string): Condition => ({
    sql: `${column.sql} ${sign} ${number.replaceAll(',', '')}`,
    says: `${column.name} ${sign} ${number}`,
    column: column.name,
    words: [words],
  })
  const [range, from = '', to = ''] = between.exec(question) ?? []
  if (range) return [condition('>=', from, range), condition('<=', to, '')]
  return comparisons
    .flatMap(([pattern, sign]) => {
      const match = new RegExp(`(?:${pattern})\\s*${figure}`, 'i').exec(question)
      return match ? [condition(sign, match[1] ?? '', match[0])] : []
    })
    .slice(0, 1)
}

const months = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')
const day = '(\\d{4}-\\d{2}-\\d{2})'
const daysPattern = new RegExp(`(?:\\b(?:between|from)\\s+)?${day}(?:\\s*(?:and|to|到|至)\\s*${day})?`)
const yearMonthPattern = /(\d{4})(?:-|年)(\d{1,2})(?:月|\b)/
const monthPattern = new RegExp(
  `\\b(?:in|during|for|of)\\s+(${months.join('|')})[a-z]*\\b(?:,?\\s+(\\d{4}))?|(?<!\\d)(\\d{1,2})月`,
  'i',
)
const yearPattern = /\b(?:in|during|for)\s+(\d{4})\b|(\d{4})年/

/** The days that a question speaks of, as SQL on an ISO date. */
const daysIn = (question: string, sql: string): { sql: string; words: string } | null => {
  const [days, from = '', to = from] = daysPattern.exec(question) ?? []
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
  measure: Compared | null,
): Condition[] => {
  const dates = dateConditions(question, table)
  const rest = withoutWords(question, dates)
  return [...valueConditions(question, table, named), ...comparisonConditions(rest, table, measure), ...dates]
}
