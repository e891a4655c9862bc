import { conceptsOf, findColumn } from './concepts.ts'
import { findRanges } from './dates.ts'
import type { Comparison, Filter } from './filters.ts'
import { type Found, findFlags, findValues } from './find-values.ts'
import { readNumber } from './numbers.ts'
import { isYes, type Table, valuesOf } from './tables.ts'
import { blank, findName, hasHan, readText } from './text.ts'

/** Conditions said in words and signs: `over 100`, `status = paid`, `in March`. */

const numeral = '([$€£¥]?\\s?-?\\d[\\d,]*(?:\\.\\d+)?(?:万|亿)?)(?![\\d/-]|\\s*(?:年|月))'
const comparisons: readonly (readonly [RegExp, Comparison])[] = [
  [
    new RegExp(
      `(?:>=|≥|\\bat least|\\bno less than|\\bnot less than|\\bminimum of|至少|不低于|不少于|大于等于)\\s*${numeral}`,
      'i',
    ),
    '>=',
  ],
  [
    new RegExp(
      `(?:<=|≤|\\bat most|\\bno more than|\\bnot more than|\\bup to|至多|不超过|不高于|最多|小于等于)\\s*${numeral}`,
      'i',
    ),
    '<=',
  ],
  [new RegExp(`(?:!=|<>|≠|不等于)\\s*${numeral}`, 'i'), '!='],
  [
    new RegExp(
      `(?:>|\\b(?:over|above|exceed(?:s|ing)?|older than|longer than|(?:more|greater|larger|higher|bigger) than)|大于|超过|高于|多于)\\s*${numeral}`,
      'i',
    ),
    '>',
  ],
  [
    new RegExp(
      `(?:<|\\b(?:under|below|younger than|shorter than|cheaper than|(?:less|fewer|smaller|lower) than)|小于|少于|低于|不到|不足)\\s*${numeral}`,
      'i',
    ),
    '<',
  ],
  [new RegExp(`${numeral}\\s*(?:or more|and above|or above|以上)`, 'i'), '>='],
  [new RegExp(`${numeral}\\s*(?:or less|or fewer|and below|or below|以下)`, 'i'), '<='],
]
const betweenNumbers = new RegExp(
  `\\b(?:between|from)\\s+${numeral}\\s+(?:and|to)\\s+${numeral}|在?${numeral}\\s*[到至]\\s*${numeral}\\s*之间`,
  'i',
)

/** The numeric column a condition speaks of: the one named closest to it, else the only or most likely one. */
const columnNear = (text: string, at: number, table: Table): number => {
  const read = readText(text)
  const near = table.columns
    .map((column, i) => ({ i, column, mention: findColumn(read, column.name) }))
    .filter(
      ({ column, mention }) =>
        column.kind === 'number' && mention !== null && (!column.idLike || mention.score >= 1),
    )
    .map(({ i, mention }) => ({ i, score: (mention?.score ?? 0) - Math.abs((mention?.at ?? 0) - at) / 80 }))
    .sort((a, b) => b.score - a.score)[0]
  if (near) return near.i
  const measures = table.columns
    .map((column, i) => ({ column, i }))
    .filter(({ column }) => column.kind === 'number' && !column.idLike)
  const money =
    measures.find(({ column }) => conceptsOf(column.name).has('revenue')) ??
    measures.find(({ column }) => conceptsOf(column.name).has('price'))
  return (money ?? measures[0])?.i ?? -1
}

const findComparisons = (text: string, table: Table): Found => {
  const filters: Filter[] = []
  let rest = text
  const add = (column: number, comparison: Comparison, value: string | undefined): void => {
    const number = readNumber(value ?? '')
    if (column >= 0 && number !== null) filters.push({ kind: 'number', column, comparison, value: number })
  }
  const range = betweenNumbers.exec(rest)
  if (range) {
    const column = columnNear(text, range.index, table)
    add(column, '>=', range[1] ?? range[3])
    add(column, '<=', range[2] ?? range[4])
    rest = blank(rest, { at: range.index, end: range.index + range[0].length })
  }
  for (const [pattern, comparison] of comparisons)
    for (let m = pattern.exec(rest); m; m = pattern.exec(rest)) {
      add(columnNear(text, m.index, table), comparison, m[1])
      rest = blank(rest, { at: m.index, end: m.index + m[0].length })
    }
  return { filters, rest }
}

const equals =
  /^[`"”'’]?\s*(?:column |field )?(==?|!=|<>|≠|:|is not|isn't|are not|was not|not equal to|is equal to|equals?|is|are|was|were|of|不等于|不是|等于|是|为)\s*(?=\S)/i
const bareNumber = /^[`"”'’]?\s*(?:#|no\.? |number )?\s*(?=\d)/

/** `status = paid`, `region is North`, `order 1005`, `状态为已付款`: a column named in full and a value right behind it. */
const findEquals = (text: string, table: Table): Found => {
  const filters: Filter[] = []
  let rest = text
  table.columns.forEach((column, i) => {
    const mention = findColumn(readText(rest), column.name)
    if (!mention || mention.score < 0.8) return
    const after = rest.slice(mention.end)
    const m = equals.exec(after) ?? (column.idLike || column.kind === 'text' ? bareNumber.exec(after) : null)
    if (!m) return
    const sign = m[1] ?? ''
    const tail = after.slice(m[0].length).replace(/^["“'`‘]/, '')
    const skipped = after.length - tail.length
    const known = valuesOf(table, i)
      .filter(
        (value) =>
          tail.toLowerCase().startsWith(value.toLowerCase()) &&
          !/^[\p{L}\p{N}]/u.test(hasHan(value) ? '' : tail.slice(value.length)),
      )
      .sort((a, b) => b.length - a.length)[0]
    const explicit =
      /^(?:==?|!=|<>|≠|equal|等于|不等于)/i.test(sign) || /["“'`‘]$/.test(after.slice(0, skipped))
    const value = known ?? (explicit ? /^[^\s,，。;；?？"”'`]+/.exec(tail)?.[0] : undefined)
    if (value === undefined) return
    const not = /!=|<>|≠|not|n't|不/i.test(sign)
    const number = column.kind === 'number' ? readNumber(value) : null
    if (number !== null)
      filters.push({ kind: 'number', column: i, comparison: not ? '!=' : '=', value: number })
    else if (column.kind === 'flag') filters.push({ kind: 'flag', column: i, yes: isYes(value) !== not })
    else filters.push({ kind: 'values', column: i, values: [value], not })
    rest = blank(rest, { at: mention.at, end: mention.end + skipped + value.length })
  })
  return { filters, rest }
}

const findDates = (text: string, table: Table): Found => {
  const { ranges, rest } = findRanges(text)
  const [first] = ranges
  if (!first) return { filters: [], rest: text }
  const read = readText(text)
  const best = table.columns
    .map((column, i) => ({ column, i, score: findColumn(read, column.name)?.score ?? 0 }))
    .filter(({ column }) => column.kind === 'date')
    .sort((a, b) => b.score - a.score)[0]
  if (best) return { filters: [{ kind: 'date', column: best.i, ranges }], rest }
  const year = table.columns.findIndex((column) => /^(?:year|年份?|fiscal[ _]?year)$/i.test(column.name))
  if (year < 0 || !first.year) return { filters: [], rest: text }
  return { filters: [{ kind: 'number', column: year, comparison: '=', value: Number(first.year) }], rest }
}

/** All conditions of a question on a table; `rest` is the question with values and numbers crossed out. */
export const findFilters = (question: string, table: Table): Found => {
  const compared = findComparisons(question, table)
  const equal = findEquals(compared.rest, table)
  const dated = findDates(equal.rest, table)
  const read = readText(dated.rest)
  const numeric = table.columns
    .filter((column) => column.kind === 'number')
    .flatMap((column) => findName(read, column.name, true) ?? [])
  const valued = findValues(dated.rest, table, (span) =>
    numeric.some((n) => span.at < n.end && n.at < span.end),
  )
  const before = [...compared.filters, ...equal.filters, ...dated.filters]
  const taken = new Set(before.filter((f) => f.kind !== 'number').map((f) => f.column))
  const values = valued.filters.filter((f) => !taken.has(f.column))
  const flagged = findFlags(valued.rest, table, new Set([...taken, ...values.map((f) => f.column)]))
  return { filters: [...before, ...values, ...flagged.filters], rest: valued.rest }
}
