import type { Json } from '../../../state/runtime-state.ts'
import {
  columnName,
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
  remarksOf,
  rowsOf,
  sourceOf,
  styleOf,
  termsOf,
} from './figures.ts'
import { countRemark } from './fit.ts'
import { say } from './frames.ts'
import { combined, dryLedger, type Ledger, locally } from './ledger.ts'
import { decimalsOf, plain, show } from './numbers.ts'
import type { Query } from './query.ts'
import { cellOf, type Row } from './tables.ts'
import type { Language } from './text.ts'

/** Answers that are figures: one, one per group, a share, a comparison. */

/** Groups past these many get no figure of their own; the answer says how many there are. */
const mostGroups = 24

export const answerAggregate = (query: Query, ledger: Ledger, language: Language): Finding => {
  const rows = rowsOf(query)
  if (rows.length === 0) return nothingMatches(query, language)
  const figure = figureOf(query, rows, ledger)
  if (figure.terms.length === 0)
    return { text: say.noNumbers(language, measureName(query, language)), empty: true }
  const label = `${figureLabel(query, language)}${filterText(query, language)}`
  if (query.asked.percent !== null)
    return answerPart(query, query.asked.percent, label, rows, figure, ledger, language)
  const names = query.measure.kind === 'distinct' ? valuesIn(rows, query.measure.column) : []
  const listed =
    names.length > 0
      ? ` ${names.slice(0, 20).join(say.and(language))}${names.length > 20 ? ` ${say.more(language, names.length - 20)}` : ''}.`
      : ''
  const work = figure.work ? `${language === 'zh' ? '。计算：' : '. Calculation: '}${figure.work}` : ''
  const text = `${label}: **${figure.shown}** (${sourceOf(query, rows, language)})${remarksOf(query, rows, figure, language)}${countRemark(query, language)}${work}${work ? '' : '.'}${listed}`
  return { text, number: figure.value, name: figure.shown, names }
}

/** "10% of the total revenue". */
const answerPart = (
  query: Query,
  percent: number,
  label: string,
  rows: readonly Row[],
  figure: Figure,
  ledger: Ledger,
  language: Language,
): Finding => {
  const value = ledger.value(
    combined(`${figure.expression.text} * ${plain(percent)} / 100`, (figure.value * percent) / 100),
  )
  const shown = show(value, styleOf(query), Math.min(6, decimalsOf(value)))
  const text = `${label} × ${plain(percent)}%: **${shown}** (${label}: ${figure.shown}; ${sourceOf(query, rows, language)})`
  return { text, number: value, name: shown }
}

const valuesIn = (rows: readonly Row[], column: number): string[] => [
  ...new Set(rows.map((row) => cellOf(row, column)).filter((cell) => cell !== '')),
]

type Ranked = { key: string; rows: Row[]; figure: Figure }

/** Figures of the groups, best first; only the first groups by the engine's own count go to the calculator. */
const rank = (query: Query, ledger: Ledger): { ranked: Ranked[]; left: number } => {
  const groups = [...groupRows(query, rowsOf(query))]
  const down = query.pick?.direction === 'min' ? -1 : 1
  const order = groups
    .map(([key, rows]) => ({ key, rows, values: termsOf(query, rows).map((t) => t.local) }))
    .filter(({ values }) => values.length > 0)
    .map((group) => ({ ...group, size: locally(functionOf(query), group.values) }))
    .sort((a, b) => down * (b.size - a.size))
  const dated = query.group?.part && !query.pick
  const kept = order.slice(0, Math.max(mostGroups, query.pick?.n ?? 0))
  const ranked = kept.map(({ key, rows }) => ({ key, rows, figure: figureOf(query, rows, ledger) }))
  ranked.sort((a, b) => (dated ? (a.key < b.key ? -1 : 1) : down * (b.figure.value - a.figure.value)))
  return { ranked, left: order.length - kept.length }
}

const bullet = (query: Query, item: Ranked, language: Language): string => {
  const work = item.figure.work && item.figure.terms.length > 1 ? `; ${item.figure.work}` : ''
  return `- ${item.key}: ${item.figure.shown} (${sourceOf(query, item.rows, language)}${work})`
}

export const answerGroups = (query: Query, ledger: Ledger, language: Language): Finding => {
  const { ranked, left } = rank(query, ledger)
  const [first] = ranked
  if (!first) return nothingMatches(query, language)
  const group = groupName(query)
  const label = figureLabel(query, language)
  const where = filterText(query, language)
  const rows = ranked.map(
    (item): Record<string, Json> => ({ [group]: item.key, [valueName(query, language)]: item.figure.value }),
  )
  const bullets = ranked.map((item) => bullet(query, item, language))
  const more = left > 0 ? [say.more(language, left)] : []
  if (!query.pick) {
    const text = [`${say.by(language, label, group)}${where}:`, ...bullets, ...more].join('\n')
    return { text, rows, names: ranked.map((item) => item.key) }
  }
  const best = ranked.slice(0, query.pick.n)
  const ties = query.pick.n === 1 ? ranked.filter((item) => item.figure.value === first.figure.value) : best
  const title = say.with(language, group, label, query.pick.direction === 'min')
  const named = ties.map((item) => `**${item.key}**`).join(say.and(language))
  if (query.pick.n > 1)
    return {
      text: [
        `${title}${where} (${best.length}):`,
        ...bullets.slice(0, query.pick.n).map((b, i) => b.replace(/^-/, `${i + 1}.`)),
      ].join('\n'),
      rows: rows.slice(0, query.pick.n),
      names: best.map((item) => item.key),
      name: best.map((item) => item.key).join(', '),
    }
  const text = [
    `${title}${where}: ${named}, ${first.figure.shown}`,
    ...bullets.slice(0, 12),
    ...(bullets.length > 12 ? [say.more(language, bullets.length - 12 + left)] : more),
  ].join('\n')
  return {
    text,
    rows,
    name: ties.map((item) => item.key).join(', '),
    names: ties.map((item) => item.key),
    number: first.figure.value,
  }
}

const valueName = (query: Query, language: Language): string =>
  query.measure.kind === 'column'
    ? columnName(query, query.measure.column)
    : figureLabel(query, language).toLowerCase()

const percent = { before: '', after: '%', decimals: 0 }

const shareExpression = (part: Figure, whole: Figure) =>
  combined(
    `100 * ${part.expression.text} / ${whole.expression.text}`,
    whole.value === 0 ? 0 : (100 * part.value) / whole.value,
  )

export const answerShare = (query: Query, ledger: Ledger, language: Language): Finding => {
  const base = { ...query, filters: query.group ? query.filters : query.filters.slice(0, -1) }
  const all = rowsOf(base)
  const whole = figureOf(base, all, dryLedger)
  if (all.length === 0 || whole.value === 0) return nothingMatches(base, language)
  const one = (rows: readonly Row[]): { value: number; part: Figure } => {
    const part = figureOf(base, rows, dryLedger)
    return { value: part.terms.length === 0 ? 0 : ledger.value(shareExpression(part, whole)), part }
  }
  const of = `${measureName(base, language)}${filterText(base, language)}`
  if (query.group) {
    const parts = [...groupRows(query, all)]
      .slice(0, mostGroups)
      .map(([key, rows]) => ({ key, rows, ...one(rows) }))
      .sort((a, b) => b.value - a.value)
    const group = groupName(query)
    const bullets = parts.map(
      ({ key, value, part, rows }) =>
        `- ${key}: ${show(value, percent, 2)} (${part.shown} / ${whole.shown}; ${sourceOf(query, rows, language)})`,
    )
    return {
      text: [`${say.by(language, say.share(language, '', of), group)}:`, ...bullets].join('\n'),
      rows: parts.map(({ key, value }) => ({ [group]: key, percent: value })),
    }
  }
  const rows = rowsOf(query)
  const { value, part } = one(rows)
  const shown = show(value, percent, 2)
  const last = query.filters.at(-1)
  const condition = last ? filterText({ ...query, filters: [last] }, language) : ''
  return {
    text: `${say.share(language, condition, of)}: **${shown}** (${part.shown} / ${whole.shown}; ${rows.length > 0 ? sourceOf(query, rows, language) : '0'}).`,
    number: value,
    name: shown,
  }
}
