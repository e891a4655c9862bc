import { conceptsOf, findColumn, findConcept, type Mention } from './concepts.ts'
import type { Filter } from './filters.ts'
import { readNumber } from './numbers.ts'
import { type Table, valuesOf } from './tables.ts'
import { blank, findName, hasHan, isStopWord, readText, type Span, stem, type Text } from './text.ts'

/** Conditions named by nothing but a value of the table: "returned", "in North", "not paid". */

export type Found = { filters: Filter[]; rest: string }

const negated = (text: string, at: number): boolean =>
  /(?:\b(?:not|except(?: for)?|excluding|other than|without|non|isn't|aren't|wasn't|weren't)[ -](?:the |been |yet |from |in )?|不是|非|除了|除|未|没有?被?|不含)$/i.test(
    text.slice(0, at),
  )

/** Where a value of a text column stands in the question, or null; loose matches only for short lists of values. */
const findValue = (text: Text, value: string, few: boolean): Span | null => {
  if (value.length < 2 && !hasHan(value)) {
    if (!/^[A-Z]$/.test(value)) return null
    return text.words.find((word) => word.raw === value && word.at > 0) ?? null
  }
  if (value.length > 80) return null
  const exact = text.lower.includes(value.toLowerCase()) ? findName(text, value, true) : null
  if (exact) return isStopWord(value) ? null : exact
  if (!few || readNumber(value) !== null || isStopWord(value)) return null
  return value.length >= 4 || hasHan(value) ? findName(text, value) : null
}

type Hit = Span & { column: number; value: string }

export const findValues = (text: string, table: Table, isMeasure: (span: Span) => boolean): Found => {
  const read = readText(text)
  const hits: Hit[] = []
  table.columns.forEach((column, i) => {
    if (column.kind !== 'text') return
    const values = valuesOf(table, i)
    const few = values.length <= 40
    const direct = values.flatMap((value) => {
      const span = findValue(read, value, few)
      return span && !isMeasure(span) ? [{ ...span, column: i, value }] : []
    })
    hits.push(...direct)
    if (direct.length > 0 || values.length > 20 || /name|note|comment|description/i.test(column.name)) return
    for (const value of values) {
      const meant = findConcept(read, conceptsOf(value))
      if (
        meant &&
        !isMeasure(meant) &&
        !table.columns.some((c) => stem(c.name) === stem(read.raw.slice(meant.at, meant.end)))
      )
        hits.push({ at: meant.at, end: meant.end, column: i, value })
    }
  })
  hits.sort((a, b) => b.end - b.at - (a.end - a.at) || a.at - b.at)
  const kept: Hit[] = []
  for (const hit of hits)
    if (
      !kept.some(
        (k) =>
          hit.at < k.end && k.at < hit.end && (k.column !== hit.column || k.end - k.at > hit.end - hit.at),
      )
    )
      kept.push(hit)
  let rest = text
  const filters = [...new Set(kept.map((hit) => hit.column))].map((column): Filter => {
    const own = kept.filter((hit) => hit.column === column).sort((a, b) => a.at - b.at)
    return {
      kind: 'values',
      column,
      values: [...new Set(own.map((hit) => hit.value))],
      not: own.some((hit) => negated(text, hit.at)),
    }
  })
  for (const hit of kept) rest = blank(rest, hit)
  return { filters, rest }
}

export const findFlags = (text: string, table: Table, taken: ReadonlySet<number>): Found => {
  const read = readText(text)
  const filters = table.columns.flatMap((column, i): Filter[] => {
    const mention: Mention | null =
      column.kind === 'flag' && !taken.has(i) ? findColumn(read, column.name) : null
    return mention && mention.score >= 0.5
      ? [{ kind: 'flag', column: i, yes: !negated(text, mention.at) }]
      : []
  })
  return { filters, rest: text }
}
