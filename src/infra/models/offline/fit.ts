import { findColumn } from './concepts.ts'
import { columnName } from './figures.ts'
import type { Query } from './query.ts'
import { contentWords, hasHan, type Language, nameWords, readText, shorten, stem } from './text.ts'

/** Whether a table has what a question asks about, so that no figure is given for a word the file doesn't know. */

const harmless = new Set(
  `total sum average mean median minimum maximum min max highest lowest largest smallest biggest greatest top bottom best worst
   count number many much overall altogether combined percent percentage share proportion compare comparison versus difference
   calculate compute work make made get got bring brought sell sold buy bought order place spend spent earn pay cost money amount
   value figure row record entry entrie item line thing result data report csv table sheet column field latest newest oldest
   earliest recent first last common frequent often popular distinct different unique group grouped per between over under above
   below more less fewer least exactly whole entire sort sorted rank ranked descending ascending please help name need want know
   see year month quarter day week date time today one two three four five six seven eight nine ten three answer question up
   strongest weakest richest poorest ascending cheap cheapest expensive second third fourth fifth rank here there according based only well next previous same those these among out part contribution perform performing profitable active valuable ordered bought selling popular
   someone anyone people person who whom occur happen has had been come came see seen use used user`
    .split(/\s+/)
    .map(stem),
)

/** Words of the question that neither the table nor the language of questions explains. */
export const unexplained = (query: Query): string[] => {
  const { table, asked } = query
  const fileWords = new Set(nameWords(table.name).map(stem))
  const values = query.filters
    .flatMap((f) => (f.kind === 'values' ? f.values : []))
    .join(' ')
    .toLowerCase()
  return contentWords(asked.text.raw).filter((word) => {
    const s = stem(word)
    if (hasHan(word) || /\d/.test(word) || harmless.has(s) || fileWords.has(s) || /ly$/.test(word))
      return false
    if (values.includes(word.toLowerCase()) || nameWords(values).some((v) => stem(v) === s)) return false
    return !table.columns.some((column) => findColumn(readText(word), column.name) !== null)
  })
}

const namesMeasure = (query: Query): boolean => {
  if (query.measure.kind !== 'column') return query.measure.kind === 'product'
  return query.wanted.includes(query.measure.column)
}

/** Why a question can't be answered from the table it fits best, or null. */
export const isStopped = (query: Query, language: Language): string | null => {
  const figure = query.kind === 'aggregate' || query.kind === 'groups' || query.kind === 'pick'
  if (!figure || query.aggregate === 'count' || namesMeasure(query) || query.asked.elliptical) return null
  const generic = query.table.columns.filter((column) => !/^(?:item|value|column \d+)$/i.test(column.name))
  if (generic.length === 0) return null
  const [word] = unexplained(query)
  if (word === undefined) return null
  const columns = shorten(query.table.columns.map((_, i) => columnName(query, i)).join(', '), 300)
  return language === 'zh'
    ? `${query.table.name} 中没有与“${word}”对应的列；它的列有：${columns}。`
    : `I found no column for "${word}" in ${query.table.name}; its columns are: ${columns}.`
}

/** For counts of rows: a word the file doesn't use is said to be read as "rows". */
export const countRemark = (query: Query, language: Language): string => {
  if (query.measure.kind !== 'rows' || query.kind !== 'aggregate') return ''
  const words = unexplained(query)
  const subject = readText(query.asked.subject).words.map((word) => word.stem)
  const unknown = words.find((word) => subject.includes(stem(word)))
  if (unknown === undefined) return ''
  return language === 'zh'
    ? `（文件中没有“${unknown}”一词，我把每一行算作一个。）`
    : ` (${query.table.name} doesn't use the word "${unknown}": I took each row as one.)`
}
