import type { Json } from '../../../state/runtime-state.ts'
import { answerAggregate } from './answer-figures.ts'
import {
  type Figure,
  type Finding,
  figureLabel,
  figureOf,
  filterText,
  functionOf,
  groupName,
  groupRows,
  measureName,
  nothingMatches,
  rowsOf,
  sourceOf,
} from './figures.ts'
import { say } from './frames.ts'
import { combined, type Ledger } from './ledger.ts'
import { plain, show } from './numbers.ts'
import { comparedValues, type Measure, type Query } from './query.ts'
import type { Language } from './text.ts'

/** Two or more things side by side: values of a column, columns, or files, with their difference. */

const numericColumns = (query: Query): Measure[] => {
  const all = query.table.columns.flatMap((column, i) =>
    column.kind === 'number' && !column.idLike ? [i] : [],
  )
  const asked = all.filter((i) => query.wanted.includes(i))
  return (asked.length > 0 ? asked : all).slice(0, 4).map((column) => ({ kind: 'column', column }))
}

type Side = { name: string; figure: Figure }

const comparison = (
  query: Query,
  measure: Measure,
  sides: readonly Side[],
  ledger: Ledger,
  language: Language,
): { line: string; difference: number } => {
  const [a, b] = sides as [Side, Side]
  const single = sides.every(({ figure }) => figure.terms.length <= 1) && measure.kind !== 'rows'
  const label = single ? measureName(query, language, measure) : figureLabel(query, language, measure)
  const listed = sides.map(({ name, figure }) => `${name} **${figure.shown}**`).join(say.and(language))
  if (sides.length !== 2) return { line: `- ${label}: ${listed}`, difference: 0 }
  const expression = combined(
    `${a.figure.expression.text} - ${b.figure.expression.text}`,
    a.figure.value - b.figure.value,
  )
  const short = combined(
    `${plain(a.figure.value)} - (${plain(b.figure.value)})`,
    a.figure.value - b.figure.value,
  )
  const difference =
    a.figure.terms.length > 1 || b.figure.terms.length > 1 ? ledger.value(expression) : ledger.value(short)
  const extra = functionOf(query, measure) === 'avg' ? 2 : 0
  const style = query.table.columns[measure.kind === 'column' ? measure.column : -1]?.style
  const size = show(Math.abs(difference), style, extra)
  const higher = difference === 0 ? '=' : difference > 0 ? `${a.name} > ${b.name}` : `${b.name} > ${a.name}`
  return { line: `- ${label}: ${listed}; ${say.difference(language)} ${size} (${higher})`, difference }
}

export const answerCompare = (query: Query, ledger: Ledger, language: Language): Finding => {
  const rows = rowsOf(query)
  const measures =
    query.measure.kind === 'rows' && query.aggregate !== 'count' ? numericColumns(query) : [query.measure]
  const groups = groupRows(query, rows)
  const where = filterText(query, language, query.group?.column)
  if (!query.group) {
    const columns = numericColumns(query)
    const sides = columns.map((measure) => ({
      name: measureName(query, language, measure),
      figure: figureOf(query, rows, ledger, measure),
    }))
    if (sides.length < 2 || !columns[0]) return answerAggregate(query, ledger, language)
    const { line, difference } = comparison(query, columns[0], sides.slice(0, 2), ledger, language)
    return {
      text: `${line.slice(2).replace(
        /^[^:]+/,
        figureLabel(query, language, columns[0])
          .replace(measureName(query, language, columns[0]), '')
          .trim() || 'Total',
      )} (${sourceOf(query, rows, language)})${where}`,
      number: Math.abs(difference),
      rows: sides.map(({ name, figure }) => ({ name, value: figure.value })),
    }
  }
  const wanted = comparedValues(query)
  const keys = [...groups.keys()]
    .sort()
    .filter((key) => wanted.some((value) => value.toLowerCase() === key.toLowerCase()))
  keys.sort(
    (a, b) =>
      wanted.findIndex((v) => v.toLowerCase() === a.toLowerCase()) -
      wanted.findIndex((v) => v.toLowerCase() === b.toLowerCase()),
  )
  const names = (keys.length > 0 ? keys : [...groups.keys()].sort()).slice(0, 8)
  if (names.length === 0) return nothingMatches(query, language)
  const lines: string[] = []
  const data = names.map((name): Record<string, Json> => ({ [groupName(query)]: name }))
  let difference = 0
  for (const measure of measures.length > 0 ? measures : [query.measure]) {
    const sides = names.map((name) => ({
      name,
      figure: figureOf(query, groups.get(name) ?? [], ledger, measure),
    }))
    for (const [i, { figure }] of sides.entries())
      Object.assign(data[i] ?? {}, { [measureName(query, language, measure)]: figure.value })
    const compared = comparison(query, measure, sides, ledger, language)
    if (lines.length === 0) difference = compared.difference
    lines.push(compared.line)
  }
  const sources = names.map((name) => `- ${name}: ${sourceOf(query, groups.get(name) ?? [], language)}`)
  const best = [...data].sort(
    (a, b) => Number(Object.values(b)[1] ?? 0) - Number(Object.values(a)[1] ?? 0),
  )[0]
  const title = `${names.join(' / ')}${where}:`
  return {
    text: [title, ...lines, ...sources].join('\n'),
    rows: data,
    number: Math.abs(difference),
    name: String(Object.values(best ?? {})[0] ?? ''),
    names,
  }
}
