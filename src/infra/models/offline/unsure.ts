import type { Query } from './query.ts'

/** True when a query needs a number column and none is clear. */
export const findMeasureless = (query: Query): boolean =>
  query.choices.length > 1 && query.measure.kind === 'rows'

/** True when a table says nothing about a question, so that the text of the files should be asked instead. */
export const isForeign = (query: Query): boolean => {
  const { asked, score } = query
  if (score > 0) return false
  if (asked.elliptical) return false
  return (
    asked.aggregate === null && asked.pick === null && asked.manner !== 'list' && asked.manner !== 'compare'
  )
}
