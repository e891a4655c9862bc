import type { Line } from './delimited.ts'
import { type Document, tablesOf } from './documents.ts'

/** A table pasted into the prompt itself counts as a file, and its lines are no questions. */

const looksTabular = (text: string): boolean =>
  /^\s*\|.*\|/.test(text) || /^[^?？]*(?:,[^,\s?？][^?？]*|\t[^?？]*|;[^;\s][^?？]*)$/.test(text)

export const inlineTable = (prompt: string, name: string): { document: Document | null; rest: string } => {
  const lines: Line[] = prompt.split('\n').map((text, i) => ({ n: i + 1, text }))
  let best: Line[] = []
  let open: Line[] = []
  for (const line of lines) {
    if (looksTabular(line.text)) open.push(line)
    else open = []
    if (open.length > best.length) best = open
  }
  const tables = best.length > 2 ? tablesOf(name, best) : []
  if (tables.length === 0) return { document: null, rest: prompt }
  const first = best[0]?.n ?? 0
  const last = best.at(-1)?.n ?? 0
  const rest = lines.filter(({ n }) => n < first || n > last).map(({ text }) => text.replace(/^```\w*$/, ''))
  return { document: { file: name, lines: best, tables, complete: true }, rest: rest.join('\n').trim() }
}
