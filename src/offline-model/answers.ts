import type { Json } from '../state/runtime-state.ts'
import type { Aggregate, Query } from './sql-question.ts'
import type { Row, Rows } from './tables.ts'
import type { Language } from './words.ts'

/** Results of query_table in sentences of both languages. */

/** An answer: its text, and its value and rows where a structured answer wants them. */
export type Finding = { text: string; value?: Json; rows?: Rows }

const labels: Record<Language, Record<Aggregate, string>> = {
  en: { count: 'Number of $', sum: 'Total $', avg: 'Average $', max: 'Highest $', min: 'Lowest $' },
  zh: { count: '$数', sum: '$ 总和', avg: '$ 平均值', max: '$ 最大值', min: '$ 最小值' },
}

const isNumeric = (value: string): boolean => /^-?\d+(?:\.\d+)?$/.test(value)

/** A figure with separators of thousands; other values as they are. */
const show = (value = ''): string =>
  isNumeric(value) ? Number(value).toLocaleString('en-US', { maximumFractionDigits: 6 }) : value

export const toJson = (value = ''): Json => (isNumeric(value) ? Number(value) : value || null)

const upper = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
const lower = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

/** The answer that the rows of a query give. */
export const describeRows = (query: Query, rows: Rows, file: string, language: Language): Finding => {
  const zh = language === 'zh'
  const { kind, aggregate, measure, group, rank } = query
  const says = query.conditions.map((condition) => condition.says)
  const where = says.length === 0 ? '' : zh ? `（${says.join('，')}）` : ` where ${says.join(' and ')}`
  const what = aggregate === 'count' && (kind === 'groups' || measure === '') ? (zh ? '行' : 'rows') : measure
  const label = labels[language][aggregate].replace('$', () => what)
  const [first] = rows
  if (first === undefined || first.figure === '')
    return {
      text: zh ? `${file} 中没有符合条件的行${where}。` : `No rows of ${file} match${where}.`,
      rows: [],
    }
  const size = (row: Row): string =>
    zh ? `${row.rows} 行` : `${row.rows} ${row.rows === '1' ? 'row' : 'rows'}`

  if (kind === 'figure') {
    const from = aggregate === 'count' ? file : `${size(first)}, ${file}`
    return {
      text: `${label}${where}: **${show(first.figure)}** (${from})`,
      value: toJson(first.figure),
      rows,
    }
  }
  if (kind === 'groups') {
    const lines = rows.map(
      (row) => `${row.group}: ${show(row.figure)}${aggregate === 'count' ? '' : ` (${size(row)})`}`,
    )
    const table = rows.map((row): Row => ({ [group]: row.group ?? '', [what]: row.figure ?? '' }))
    const list = (items: readonly string[]): string => items.map((line) => `\n- ${line}`).join('')
    if (rank === null) {
      const head = zh ? `${label}，按 ${group}` : `${label} by ${group}`
      return { text: `${head}${where} (${file}):${list(lines)}`, rows: table }
    }
    const head = zh
      ? `${label}最${rank.direction === 'max' ? '高' : '低'}的 ${group}`
      : `${upper(group)} with the ${rank.direction === 'max' ? 'highest' : 'lowest'} ${lower(label)}`
    const numbered = lines.slice(0, rank.most).map((line, at) => `\n${at + 1}. ${line}`)
    const text =
      rank.most > 1
        ? `${head}${where} (${file}):${numbered.join('')}`
        : `${head}${where}: **${first.group}**, ${show(first.figure)} (${file})${list(lines.slice(0, 5))}`
    return { text, value: first.group ?? '', rows: table.slice(0, rank.most) }
  }
  const names = Object.keys(first)
  const values = rows.map((row) => row[names[0] ?? ''] ?? '')
  const value = rows.length === 1 ? toJson(values[0]) : values
  const cells =
    rows.length === 1 ? names.map((name) => `${name} **${first[name]}**`) : values.map((one) => `**${one}**`)
  if (rows.length === 1 || names.length === 1)
    return {
      text: `${rows.length === 1 ? '' : `${names[0]}: `}${cells.join(', ')}${where} (${file})`,
      value,
      rows,
    }
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const head = zh ? `${rows.length} 行${where}（${file}）：` : `${rows.length} rows${where} (${file}):`
  const body = rows.map((row) => line(Object.values(row)))
  return { text: [head, line(names), line(names.map(() => '---')), ...body].join('\n'), value, rows }
}
