import { answerCompare } from './answer-compare.ts'
import { answerAggregate, answerGroups, answerShare } from './answer-figures.ts'
import { answerDistinct, answerList, answerLookup, answerPick } from './answer-rows.ts'
import type { Document } from './documents.ts'
import { columnName, type Finding } from './figures.ts'
import { isStopped } from './fit.ts'
import { say } from './frames.ts'
import type { Ledger } from './ledger.ts'
import type { Query } from './query.ts'
import type { Table } from './tables.ts'
import { type Language, shorten, showRanges } from './text.ts'

/** The answer to one question on one table. What it still needs calculated stands in the ledger afterwards. */
export const answerQuery = (query: Query, ledger: Ledger, language: Language): Finding => {
  const stopped = isStopped(query, language)
  if (stopped) return { text: stopped, empty: true }
  switch (query.kind) {
    case 'aggregate':
      return answerAggregate(query, ledger, language)
    case 'groups':
      return answerGroups(query, ledger, language)
    case 'share':
      return answerShare(query, ledger, language)
    case 'compare':
      return answerCompare(query, ledger, language)
    case 'pick':
      return answerPick(query, ledger, language)
    case 'rows':
      return answerList(query, language)
    case 'distinct':
      return answerDistinct(query, ledger, language)
    case 'lookup':
      return answerLookup(query, ledger, language)
    default:
      throw query.kind satisfies never
  }
}

const describeTable = (table: Table, language: Language): string => {
  const places = showRanges(
    table.rows.map((row) => row.place),
    3,
  )
  const columns = table.columns.map((column) => `${column.name} (${column.kind})`).join(', ')
  return language === 'zh'
    ? `- 表格：${table.rows.length} 行（${places}），${table.columns.length} 列：${columns}`
    : `- a table of ${table.rows.length} rows (${table.unit}s ${places}) and ${table.columns.length} columns: ${columns}`
}

/** What is in a file, as far as rules can tell: tables, headings, first lines. */
export const describeDocument = (document: Document, language: Language): Finding => {
  const filled = document.lines.filter(({ text }) => text.trim() !== '')
  const headings = filled
    .filter(({ text }) => /^#{1,6}\s|^\d+(?:\.\d+)*[.)]?\s+[A-Z\p{Script=Han}]/u.test(text))
    .slice(0, 15)
  const opening =
    document.tables.length > 0 ? [] : filled.filter((line) => !headings.includes(line)).slice(0, 3)
  const quote = ({ n, text }: { n: number; text: string }): string =>
    `- ${say.line(language, n)}: ${shorten(text.trim(), 200)}`
  const tables = document.tables.map((table) => describeTable(table, language))
  const text = [
    say.outline(language, document.file, document.lines.length),
    ...tables,
    ...headings.map(quote),
    ...opening.map(quote),
  ].join('\n')
  const columns = document.tables.flatMap((table) => table.columns.map((column) => column.name))
  return {
    text,
    number: document.lines.length,
    names: columns.length > 0 ? columns : headings.map((line) => line.text.replace(/^#+\s*/, '')),
  }
}

/** The options for "which column do you mean", by name. */
export const choiceNames = (query: Query): string[] =>
  query.choices.map((column) => columnName(query, column))
