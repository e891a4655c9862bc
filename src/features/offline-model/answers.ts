import type { Json } from '../../state/runtime-state.ts'
import type { TextLanguage } from '../../state/text/text-language.ts'
import { type Aggregate, mostShown, type Query } from './sql-question.ts'
import type { Row, Rows } from './tables.ts'

/** Results of query_table in sentences of both languages. */

/** An answer: its text, and its value and rows where a structured answer wants them. `isRefused`: it says why there is none. */
export type Finding = { text: string; value?: Json; rows?: Rows; isRefused?: boolean }

const labels: Record<TextLanguage, Record<Aggregate, string>> = {
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
export const describeRows = (query: Query, found: Rows, file: string, language: TextLanguage): Finding => {
  const say = (en: string, zh: string): string => (language === 'zh' ? zh : en)
  const { kind, aggregate, measure, group, rank } = query
  const isCount = aggregate === 'count'
  const says = query.conditions.map((condition) => condition.says)
  const where = says.length === 0 ? '' : say(` where ${says.join(' and ')}`, `（${says.join('，')}）`)
  const what = isCount && (kind === 'groups' || measure === '') ? say('rows', '行') : measure
  const label = labels[language][aggregate].replace('$', () => what)
  const [first] = found
  const rows = found.slice(0, mostShown)
  const cut = rows.length < found.length ? say(', only the first of more', '，只是其中最前面的') : ''
  if (first === undefined || first.figure === '') {
    const text = say(`No rows of ${file} match${where}.`, `${file} 中没有符合条件的行${where}。`)
    return { text, rows: [] }
  }
  const size = (row: Row): string => say(`${row.rows} ${row.rows === '1' ? 'row' : 'rows'}`, `${row.rows} 行`)

  if (kind === 'figure') {
    const from = isCount ? file : `${size(first)}, ${file}`
    const text = `${label}${where}: **${show(first.figure)}** (${from})`
    return { text, value: toJson(first.figure), rows }
  }
  if (kind === 'groups') {
    const lines = rows.map((row) => `${row.group}: ${show(row.figure)}${isCount ? '' : ` (${size(row)})`}`)
    const table = rows.map((row): Row => ({ [group]: row.group ?? '', [what]: row.figure ?? '' }))
    const list = (items: readonly string[]): string => items.map((line) => `\n- ${line}`).join('')
    if (rank === null) {
      const head = say(`${label} by ${group}`, `${label}，按 ${group}`)
      return { text: `${head}${where} (${file}${cut}):${list(lines)}`, rows: table }
    }
    const isMax = rank.direction === 'max'
    const head = say(
      `${upper(group)} with the ${isMax ? 'highest' : 'lowest'} ${lower(label)}`,
      `${label}最${isMax ? '高' : '低'}的 ${group}`,
    )
    // what is equal to the last of them belongs to them
    const last = found[rank.most - 1]?.figure
    const count = found.filter(({ figure }, at) => at < rank.most || figure === last).length
    const source = count > rows.length ? `${file}${cut}` : file
    const numbered = lines.slice(0, count).map((line, at) => `\n${at + 1}. ${line}`)
    const names = rows.slice(0, count).map((row) => row.group ?? '')
    const text =
      rank.most > 1
        ? `${head}${where} (${source}):${numbered.join('')}`
        : `${head}${where}: ${names.map((name) => `**${name}**`).join(', ')}, ${show(first.figure)} (${source})${list(lines.slice(0, 5))}`
    const value = rank.most > 1 ? (names[0] ?? '') : names.join(', ')
    return { text, value, rows: table.slice(0, count) }
  }
  const names = Object.keys(first)
  const [name = ''] = names
  const values = rows.map((row) => row[name] ?? '')
  if (rows.length === 1) {
    const cells = names.map((one) => `${one} **${first[one]}**`)
    return { text: `${cells.join(', ')}${where} (${file})`, value: toJson(values[0]), rows }
  }
  if (names.length === 1) {
    const cells = values.map((one) => `**${one}**`)
    return { text: `${name}: ${cells.join(', ')}${where} (${file}${cut})`, value: values, rows }
  }
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const from = `${where} (${file}${cut}):`
  const head = say(`${rows.length} rows${from}`, `${rows.length} 行${from}`)
  const body = rows.map((row) => line(Object.values(row)))
  return { text: [head, line(names), line(names.map(() => '---')), ...body].join('\n'), value: values, rows }
}
