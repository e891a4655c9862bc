import { bestColumn, type Condition, findConditions, type NamedValue, withoutWords } from './conditions.ts'
import { type Column, isAmount, isId, isNumber, type Table } from './tables.ts'
import { asks, findName, findUnusedWord, hasHan } from './words.ts'

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

/** How many rows or groups are shown; a query asks for one more. */
export const mostShown = 50

const hanNumbers = '一二三四五六七八九十'
const counted = `(?:\\d{1,2}|[${hanNumbers}])`
const topPattern = new RegExp(`(?:\\b(?:top|bottom|first|last)[ -]|[前后]\\s?)${counted}`, 'i')

/** How many of a ranking a question asks for. */
const readTop = (question: string): number | null => {
  const digit = topPattern.exec(question)?.[0].match(/\d{1,2}$|.$/)?.[0]
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
  /最[大高多贵低小少](?:价)?的(\p{L}{1,8})/u,
  new RegExp(`(?:[前后]\\s*${counted}[个名位大家款]?|哪一?[个位家种款些])([\\p{L}_]{1,8})`, 'u'),
]
const countPatterns: readonly RegExp[] = [
  /\b(?:how many|how much|(?:number|count) of)\s+(?:different |distinct |unique |all )?([\p{L}_-]+(?: [\p{L}_-]+)?)/iu,
  /((?:多少|几)[个位名家种]?[\p{L}_]{0,4})/u,
]
const mostOfPattern = [/\b(?:most|fewest|least)\s+([\p{L}_]+)/iu, /(\p{L}{2})最[多少]/u]
/** "The largest order": which one it is. */
const rowPattern =
  /\b(?:highest|largest|biggest|greatest|lowest|smallest|cheapest)\s+([\p{L}_]+)(?!\s+(?:value|amount|size))/iu
/** Without a noun behind it, it may be of rows, pieces or money. */
const vagueMost = /\b(?:most|fewest|least)\b(?! (?:common|frequent|popular|expensive|recent))|最[多少]/i
/** Words that a query uses beside those of `asks`. */
const groupWords = /\b(?:by|per|each|every)\b|按照?|每个?/i
const rankWords = /\b(?:common|frequent|popular)\b|常见/i
const distinctWords = /\b(?:different|distinct|unique)\b|不同/i
const timeWords = /\b(?:latest|newest|earliest|recent|first|last|oldest)\b|最新|最近|最早/i

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
  const named = bestColumn(question, amounts)
  if (named) return toMeasure(named.column)
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

/**
 * The query that answers a question on a table, of which it names these values; null: it asks for none that is clear. `unused` is a word of
 * it that the query would leave out.
 */
export const readQuestion = (
  asked: string,
  table: Table,
  named: readonly NamedValue[],
  before = '',
): Query | { unused: string } | null => {
  const { columns } = table
  const question = asked.replaceAll(table.file, ' ')
  const found = findMeasure(question, columns)
  const amounts = { measure: found, value: findMeasure('', columns) }
  const conditions = findConditions(question, table, named, amounts)
  // "How many orders did Ann place and how many were returned?": Ann's, or all?
  const open = findConditions(before, table, named, amounts).find(
    ({ column }) => !conditions.some((one) => one.column === column),
  )
  if (open) return { unused: open.words.find((word) => word.trim() !== '') ?? open.says }
  // values and limits say which rows, not which columns
  const rest = withoutWords(question, conditions)

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
  const byRow = conditions.find((one) => one.byRow !== undefined)?.byRow

  const expression = (aggregate: Aggregate): string => {
    if (aggregate === 'count' || !measure) return 'count(*)'
    const text = `${aggregate}(${measure.sql})`
    return aggregate === 'sum' || aggregate === 'avg' ? `round(${text}, 6)` : text
  }
  type Answer = Query | { unused: string }
  const measureNames = measure ? [measure.column ? measure.name : 'revenue'] : []
  /** The query, unless a word of the question is neither one of these names nor in these patterns. */
  const unless = (query: Query, names: readonly string[], patterns: readonly RegExp[]): Answer => {
    const own =
      query.kind === 'rows' ? [] : [asks[query.aggregate], ...(query.aggregate === 'count' ? [asks.sum] : [])]
    const known = [table.sql, ...conditions.map(({ column }) => column), ...names]
    const unused = findUnusedWord(rest, known, [...patterns, ...own])
    return unused === null ? query : { unused }
  }
  const groups = (by: Column, aggregate: Aggregate, rank: Query['rank']): Answer => {
    const order = by === period && !rank ? '1' : `2 ${rank?.direction === 'min' ? 'ASC' : 'DESC'}, 1`
    const sql = `SELECT ${by.sql} AS "group", ${expression(aggregate)} AS figure, count(*) AS "rows" ${from} GROUP BY 1 ORDER BY ${order} LIMIT ${mostShown + 1}`
    const used = rank ? [rankWords, topPattern, asks[rank.direction]] : [groupWords]
    const names = [by.name, ...(aggregate === 'count' ? [] : measureNames)]
    return unless({ ...base, sql, kind: 'groups', aggregate, group: by.name, rank }, names, used)
  }
  const figure = (aggregate: Aggregate, select = expression(aggregate), name = base.measure): Answer => {
    const sql = `SELECT ${select} AS figure, count(*) AS "rows" ${from}`
    const names = aggregate === 'count' ? [name] : measureNames
    return unless(
      { ...base, sql, kind: 'figure', aggregate, measure: name },
      names,
      name ? [distinctWords] : [],
    )
  }
  const rows = (select: string, names: readonly string[], used: readonly RegExp[], more = ''): Answer => {
    const sql = `SELECT ${select} ${from}${more} LIMIT ${top ?? mostShown + 1}`
    return unless({ ...base, sql, kind: 'rows', aggregate: 'count' }, names, used)
  }
  const rowsOf: Column = { sql: '', name: table.sql, type: 'text' }
  const noun = columnAfter(rest, mostOfPattern, [...columns, rowsOf])
  const [vague] = vagueMost.exec(rest) ?? []
  if (vague && !noun && measure && !measure.column && !findName(rest, 'revenue')) return { unused: vague }

  if (direction && ranked && (ranked === period || ranked !== grouped)) {
    const isCounted = isCount || (noun && !isAmount(noun)) || rankWords.test(rest)
    const most = { direction, most: top ?? 1 } as const
    if (isCounted || !measure) return groups(ranked, 'count', most)
    return groups(ranked, isAverage ? 'avg' : measure.isRate ? direction : 'sum', most)
  }
  if (grouped) {
    if (isCount || !measure) return groups(grouped, 'count', null)
    return groups(grouped, isAverage ? 'avg' : (direction ?? (measure.isRate ? 'avg' : 'sum')), null)
  }
  if (direction) {
    /** The first rows by a column: as many as are asked for, else all that are equal. */
    const firstRows = (by: string, names: readonly string[]): Answer => {
      const equal = top ? '' : `${where ? ' AND' : ' WHERE'} ${by} = (SELECT ${direction}(${by}) ${from})`
      const order = ` ORDER BY ${by} ${direction === 'max' ? 'DESC' : 'ASC'}`
      return rows('*', names, [timeWords, topPattern, asks[direction]], equal + order)
    }
    const date = columns.find(({ type }) => type === 'date')
    if (date && timeWords.test(rest)) return firstRows(date.sql, [date.name])
    const id = columns.find(isId)
    const isRow = columnAfter(rest, [...rankPatterns, rowPattern], [rowsOf]) !== null
    if (measure && (isRow || top || (id && findName(rest, id.name)))) {
      // "the cheapest order" is not the one with the lowest price of a piece
      const isNamed = measure.column && (findName(rest, measure.name)?.score ?? 0) > 1
      const by = isRow && !isNamed ? (amounts.value ?? measure) : measure
      return firstRows(by.sql, [...measureNames, by.column ? by.name : 'revenue', id?.name ?? ''])
    }
    return measure && figure(isAverage ? 'avg' : direction)
  }
  if (isCount) {
    const isDistinct = counts?.type === 'text' && !isId(counts) && !findName(table.sql, counts.name)
    if (!isDistinct) return figure('count', 'count(*)', '')
    if (byRow) return { unused: byRow }
    return figure('count', `count(DISTINCT ${counts.sql})`, counts.name)
  }
  if (isAverage) return measure && figure('avg')
  if (measure && (asks.sum.test(rest) || (counts && measure.column === counts))) return figure('sum')
  const shown = columns.filter(({ name }) => (findName(rest, name)?.score ?? 0) > (hasHan(rest) ? 0 : 1))
  if (asks.list.test(rest) || (conditions.length > 0 && shown.length > 0)) {
    const one = columnAfter(rest, rankPatterns, names) ?? shown.find((column) => !isId(column))
    const isWhole = !one || /\b(?:orders|rows|records)\b/i.test(rest)
    if (!isWhole && byRow) return { unused: byRow }
    return rows(isWhole ? '*' : `DISTINCT ${one.sql}`, isWhole ? [] : [one.name], [asks.list])
  }
  const isMeasured = measure?.column ? shown.includes(measure.column) : measure && findName(rest, 'revenue')
  if (isMeasured) return figure(measure?.isRate ? 'avg' : 'sum')
  const all = [table.sql, ...columns.map(({ name }) => name)]
  const unused =
    conditions.length > 0 || all.some((name) => findName(question, name))
      ? findUnusedWord(rest, all, [])
      : null
  return unused === null ? null : { unused }
}
