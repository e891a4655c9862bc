import { type Condition, findConditions, type NamedValue } from './conditions.ts'
import { type Column, isAmount, isId, isNumber, type Table } from './tables.ts'
import { asks, findName, hasHan, unknownWords } from './words.ts'

export type Aggregate = 'count' | 'sum' | 'avg' | 'max' | 'min'

/** A question as a query: what it shows is one figure, a figure for each group, or rows. */
export type Query = {
  sql: string
  kind: 'figure' | 'groups' | 'rows'
  aggregate: Aggregate
  /** What is measured, in words; empty where rows are counted. */
  measure: string
  group: string
  /** Of a ranking: its direction and how many of it are asked for. */
  rank: { direction: 'max' | 'min'; most: number } | null
  conditions: readonly Condition[]
}

type Columns = readonly Column[]

const mostRows = 50
const mostGroups = 20

const hanNumbers = '一二三四五六七八九十'
const counted = `(?:\\d{1,2}|[${hanNumbers}])`
const topPattern = new RegExp(`(?:\\b(?:top|bottom|first|last)[ -]|[前后]\\s*)(${counted})`, 'i')

/** How many of a ranking a question asks for. */
const readTop = (question: string): number | null => {
  const digit = topPattern.exec(question)?.[1]
  return digit ? Number(digit) || hanNumbers.indexOf(digit) + 1 || 1 : null
}

/** What follows these words is what to group by, what is ranked, and what is counted. */
const groupPatterns: readonly RegExp[] = [
  /\b(?:by|per|each|every)\s+(?:the\s+)?([\p{L}_ -]{1,30})/iu,
  /(?:按照?|每个?)([\p{L}_]{1,8})/u,
]
const rankPatterns: readonly RegExp[] = [
  new RegExp(`\\b(?:top|bottom)[ -]${counted}\\s+([\\p{L}_ -]{1,30})`, 'iu'),
  /\b(?:(?:most|least) (?:common|frequent|popular)|(?:best|worst)(?:[- ]selling)?)\s+([\p{L}_ -]{1,30})/iu,
  /(?<![\p{L}_])([\p{L}_]+) with (?:the )?(?:highest|lowest|most|fewest)\b/iu,
  /\b(?:which|what)\s+(?!is\b|are\b|was\b|the\b)([\p{L}_-]{1,20}(?: [\p{L}_-]+)?)/iu,
  /\b(who)\b|(谁)/i,
  new RegExp(`(?:[前后]\\s*${counted}[个名位大家款]?|哪一?[个位家种款些])([\\p{L}_]{1,8})`, 'u'),
]
const countPatterns: readonly RegExp[] = [
  /\b(?:how many|how much|(?:number|count) of)\s+(?:different |distinct |unique |all )?([\p{L}_-]+(?: [\p{L}_-]+)?)/iu,
  /((?:多少|几)[个位名家种]?[\p{L}_]{0,4})/u,
]
const mostOfPattern = [/\b(?:most|fewest|least)\s+([\p{L}_]+)/iu]

/** The column that stands first behind one of these patterns. */
const columnAfter = (text: string, patterns: readonly RegExp[], columns: Columns): Column | null => {
  for (const pattern of patterns) {
    const match = pattern.exec(text)
    const phrase = match?.[1] ?? match?.[2] ?? ''
    const found = columns.flatMap((column) => {
      const place = findName(phrase, column.name)
      return place ? [{ column, ...place }] : []
    })
    const [first] = found.toSorted((a, b) => a.at - b.at || b.score - a.score)
    if (first) return first.column
  }
  return null
}

/** What is measured. `isRate`: adding it up makes no sense. */
type Measure = { column: Column | null; sql: string; name: string; isRate: boolean }

const rate = /price|rate|rating|age|score|grade|percent|salary|wage|单价|价格|年龄|评分|分数|工资|薪/i
const toMeasure = (column: Column): Measure => ({ ...column, column, isRate: rate.test(column.name) })

/** The amount that is named most surely; else that of money, else quantity times price; else the only one. */
const findMeasure = (question: string, columns: Columns): Measure | null => {
  const amounts = columns.filter(isAmount)
  const scored = amounts.map((column) => ({ column, score: findName(question, column.name)?.score ?? 0 }))
  const [named] = scored.toSorted((a, b) => b.score - a.score)
  if (named && named.score > 0) return toMeasure(named.column)
  const [money, quantity, price] = ['revenue', 'quantity', 'price'].map((word) =>
    amounts.find(({ name }) => findName(name, word)),
  )
  if (money) return toMeasure(money)
  if (quantity && price && quantity !== price) {
    const [sql, name] = [`${quantity.sql} * ${price.sql}`, `${quantity.name} × ${price.name}`]
    return { column: null, sql, name, isRate: false }
  }
  return amounts.length === 1 && amounts[0] ? toMeasure(amounts[0]) : null
}

/** "Revenue by month": a part of the date column. */
const findPeriod = (question: string, columns: Columns): Column | null => {
  const date = columns.find(({ type }) => type === 'date')
  const match = /\b(?:by|per|each|which|every)\s+(month|year)\b|(?:按|每个?|哪个?)(月|年)/i.exec(question)
  if (!date || !match) return null
  const [length, name] = /month|月/i.test(match[0]) ? [7, 'month'] : [4, 'year']
  return { sql: `substr(${date.sql}, 1, ${length})`, name, type: 'text' }
}

/** The query that answers a question on a table, of which it names these values; null: it asks for none that is clear. */
export const readQuestion = (asked: string, table: Table, named: readonly NamedValue[]): Query | null => {
  const { columns } = table
  const question = asked.replaceAll(table.file, ' ')
  const found = findMeasure(question, columns)
  const conditions = findConditions(question, table, named, found?.column ?? null)
  // values and limits say which rows, not which columns
  const rest = conditions.reduce((text, { words }) => (words ? text.replace(words, ' ') : text), question)
  const known = [...columns.map(({ name }) => name), table.sql, found ? 'revenue' : '']
  if (unknownWords(rest, known).length > 0) return null

  const names = columns.filter((column) => !isNumber(column) && column.type !== 'empty')
  const period = findPeriod(rest, columns)
  const grouped = period ?? columnAfter(rest, groupPatterns, names)
  const direction = asks.max.test(rest) ? 'max' : asks.min.test(rest) ? 'min' : null
  const labels = names.filter((column) => !isId(column))
  const ranked = period ?? columnAfter(rest, rankPatterns, labels)
  const counts = columnAfter(rest, countPatterns, columns)
  const measure = counts && isAmount(counts) ? toMeasure(counts) : found
  const isCount = asks.count.test(rest) && !(counts && isAmount(counts))
  const isAverage = asks.avg.test(rest)
  const top = readTop(rest)
  const where = conditions.map(({ sql }) => sql).join(' AND ')
  const from = `FROM ${table.sql}${where && ` WHERE ${where}`}`
  const base = { measure: measure?.name ?? '', group: '', rank: null, conditions }

  const expression = (aggregate: Aggregate): string => {
    if (aggregate === 'count' || !measure) return 'count(*)'
    const text = `${aggregate}(${measure.sql})`
    return aggregate === 'sum' || aggregate === 'avg' ? `round(${text}, 6)` : text
  }
  const groups = (by: Column, aggregate: Aggregate, rank: Query['rank']): Query => {
    const order = by === period && !rank ? '1' : `2 ${rank?.direction === 'min' ? 'ASC' : 'DESC'}, 1`
    const sql = `SELECT ${by.sql} AS "group", ${expression(aggregate)} AS figure, count(*) AS "rows" ${from} GROUP BY 1 ORDER BY ${order} LIMIT ${mostGroups}`
    return { ...base, sql, kind: 'groups', aggregate, group: by.name, rank }
  }
  const figure = (aggregate: Aggregate, select = expression(aggregate), name = base.measure): Query => {
    const sql = `SELECT ${select} AS figure, count(*) AS "rows" ${from}`
    return { ...base, sql, kind: 'figure', aggregate, measure: name }
  }
  const rows = (select: string, order = ''): Query => {
    const sql = `SELECT ${select} ${from}${order} LIMIT ${direction ? (top ?? 1) : mostRows}`
    return { ...base, sql, kind: 'rows', aggregate: 'count' }
  }

  if (direction && ranked && (ranked === period || ranked !== grouped)) {
    const noun = columnAfter(rest, mostOfPattern, columns)
    const isCounted = isCount || (noun && !isAmount(noun)) || /\b(?:common|frequent)\b|最常见/i.test(rest)
    const most = { direction, most: top ?? 1 } as const
    if (isCounted || !measure) return groups(ranked, 'count', most)
    return groups(ranked, isAverage ? 'avg' : measure.isRate ? direction : 'sum', most)
  }
  if (grouped) {
    if (isCount || !measure) return groups(grouped, 'count', null)
    return groups(grouped, isAverage ? 'avg' : (direction ?? (measure.isRate ? 'avg' : 'sum')), null)
  }
  if (direction) {
    const order = direction === 'max' ? 'DESC' : 'ASC'
    const date = columns.find(({ type }) => type === 'date')
    if (date && /\b(?:latest|newest|earliest|recent|first|last|oldest)\b|最新|最近|最早/i.test(rest))
      return rows('*', ` ORDER BY ${date.sql} ${order}`)
    const id = columns.find(isId)
    if (measure && (top || (id && findName(rest, id.name))))
      return rows('*', ` ORDER BY ${measure.sql} ${order}`)
    return measure && figure(isAverage ? 'avg' : direction)
  }
  if (isCount) {
    const isDistinct = counts?.type === 'text' && !isId(counts) && !findName(table.sql, counts.name)
    if (!isDistinct) return figure('count', 'count(*)', '')
    return figure('count', `count(DISTINCT ${counts.sql})`, counts.name)
  }
  if (isAverage) return measure && figure('avg')
  if (measure && (asks.sum.test(rest) || (counts && measure.column === counts))) return figure('sum')
  const shown = columns.filter(({ name }) => (findName(rest, name)?.score ?? 0) > (hasHan(rest) ? 0 : 1))
  if (asks.list.test(rest) || (conditions.length > 0 && shown.length > 0)) {
    const one = columnAfter(rest, rankPatterns, names) ?? shown.find((column) => !isId(column))
    return rows(one && !/\b(?:orders|rows|records)\b/i.test(rest) ? `DISTINCT ${one.sql}` : '*')
  }
  return measure?.column && shown.includes(measure.column) ? figure(measure.isRate ? 'avg' : 'sum') : null
}
