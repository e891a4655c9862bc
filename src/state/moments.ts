import { z } from 'zod'

/** Days and times in queries: a span from one to another. */

const firstYear = '1970'
const daySchema = z.iso.date('must be a day such as 2026-01-31').refine((day) => day >= firstYear, {
  error: 'must not be before 1970',
})
/** A day of UTC or a time. */
export const momentSchema = z.union([daySchema, z.iso.datetime({ offset: true })], {
  error: 'must be a day such as 2026-01-31 or a time such as 2026-01-31T12:00:00Z',
})

const dayMs = 86_400_000
const isDay = (moment: string): boolean => moment.length === 10

/** The start of a span from this UTC day or this time on. */
export const toSpanStart = (moment: string): string => new Date(moment).toISOString()

/** The end of a span up to this UTC day or this time: the first moment after it. */
export const toSpanEnd = (moment: string): string =>
  new Date(Date.parse(moment) + (isDay(moment) ? dayMs : 0)).toISOString()
