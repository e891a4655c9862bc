import type { Document } from './documents.ts'
import { tablesOf } from './documents.ts'
import type { Asked } from './intent.ts'
import type { Query } from './query.ts'
import type { FileInfo } from './read-request.ts'
import { resolve } from './resolve.ts'
import { joinRows, type Table } from './tables.ts'
import { contentWords, nameWords, stem } from './text.ts'
import { findMeasureless } from './unsure.ts'

/** Which file and which table a question is about. */

const bareName = (name: string): string => name.replace(/\.\w{1,5}$/, '')

/** Files a text names, with or without their ending. */
export const namedFiles = (text: string, files: readonly FileInfo[]): string[] => {
  const lower = text.toLowerCase()
  const full = files.filter(({ name }) => lower.includes(name.toLowerCase()))
  if (full.length > 0) return full.map(({ name }) => name)
  return files
    .filter(({ name }) => {
      const bare = bareName(name).toLowerCase()
      return (
        bare.length > 3 &&
        (/[_\d-]/.test(bare)
          ? lower.includes(bare)
          : new RegExp(`\\b${bare.replace(/\W/g, '.')} (?:file|table|sheet|log|csv|json|document)\\b`).test(
              lower,
            ))
      )
    })
    .map(({ name }) => name)
}

/** A question without the names of files in it, so that sales.csv is not taken for the column sales. */
export const withoutFileNames = (question: string, files: readonly FileInfo[]): string => {
  let text = question
  for (const { name } of [...files].sort((a, b) => b.name.length - a.name.length)) {
    const pattern = new RegExp(
      `\\s*(?:\\b(?:in|from|of|inside|within|according to)\\s+)?(?:the )?(?:file )?[\`"'“]?${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}[\`"'”]?(?:里面|中的|里的|文件中?的?|中|里)?`,
      'gi',
    )
    text = text.replace(pattern, (match) => (/^\s/.test(match) ? ' ' : ''))
  }
  return text.trim()
}

const nameScore = (asked: Asked, file: string): number => {
  const words = new Set(contentWords(asked.text.raw).map(stem))
  return nameWords(bareName(file)).some((word) => word.length > 2 && words.has(stem(word))) ? 0.6 : 0
}

const isMedia = (file: FileInfo): boolean =>
  /^(?:image|audio|video)\b|\.(?:png|jpe?g|gif|webp|mp[34]|zip)$/i.test(`${file.type}\n${file.name}`)

/** Files worth reading for a question, judged by their names and the first lines shown of them. */
export const candidateFiles = (
  asked: Asked,
  files: readonly FileInfo[],
  named: readonly string[],
): string[] => {
  if (named.length > 0) return [...named]
  const readable = files.filter((file) => !isMedia(file))
  if (readable.some(({ preview }) => preview.length === 0))
    return readable.slice(0, 6).map(({ name }) => name)
  if (readable.length < 2 || asked.scope === 'all') return readable.slice(0, 12).map(({ name }) => name)
  const scored = readable.map((file) => {
    const tables = tablesOf(
      file.name,
      file.preview.map((text, i) => ({ n: i + 1, text })),
    )
    const fit = Math.max(0, ...tables.map((table) => resolve(asked, table, null).score))
    return { name: file.name, score: fit + nameScore(asked, file.name) }
  })
  const best = Math.max(...scored.map(({ score }) => score))
  const kept = best > 0.3 ? scored.filter(({ score }) => score >= best * 0.6) : scored
  return kept.slice(0, 6).map(({ name }) => name)
}

export type Choice = { query: Query; rivals: readonly Query[] }

/** The table that fits a question best, and others that fit just as well; null when none has anything to do with it. */
export const chooseTable = (
  asked: Asked,
  documents: readonly Document[],
  before: (table: Table) => Query | null,
): Choice | null => {
  const tables = documents.flatMap((document) => document.tables)
  const joined = asked.scope === 'all' || asked.manner === 'compare' ? joinRows(tables) : null
  const queries = tables
    .map((table) => resolve(asked, table, before(table)))
    .map((query) => ({
      query,
      score:
        query.score +
        nameScore(asked, query.table.name.split(' (')[0] ?? '') +
        (query.score > 0 && !findMeasureless(query) ? 0.05 : 0),
    }))
    .sort((a, b) => b.score - a.score)
  const first = queries[0]
  if (!first) return null
  if (
    joined &&
    (asked.scope === 'all' || !first.query.filters.some((f) => f.kind === 'values' && f.values.length > 1))
  )
    return { query: resolve(asked, joined, before(joined)), rivals: [] }
  const rivals = queries
    .slice(1)
    .filter(({ score }) => score >= first.score - 0.01)
    .map(({ query }) => query)
  return {
    query: first.query,
    rivals: rivals.filter((query) => query.table.rows[0]?.file !== first.query.table.rows[0]?.file),
  }
}
