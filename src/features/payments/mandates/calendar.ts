import { z } from 'zod'

/** So often an agent may pay under one mandate. */
export const frequencies = [
  'ON_DEMAND',
  'DAILY',
  'WEEKLY',
  'BIWEEKLY',
  'MONTHLY',
  'QUARTERLY',
  'ANNUALLY',
] as const
/** One of `frequencies`. */
export type Frequency = (typeof frequencies)[number]

const dayMs = 86_400_000
const days: Partial<Record<Frequency, number>> = { DAILY: 1, WEEKLY: 7, BIWEEKLY: 14 }
const months: Partial<Record<Frequency, number>> = { MONTHLY: 1, QUARTERLY: 3, ANNUALLY: 12 }

/**
 * From when on a recurring payment may be made again, in epoch milliseconds: the start (UTC) of the day of the last one, plus 1, 7
 * or 14 days or 1, 3 or 12 calendar months. Where that month is too short, its last day: January 31 is followed by February 28.
 */
export const computeNextUse = (lastUsedAt: number, frequency: Frequency): number => {
  if (frequency === 'ON_DEMAND') return Number.NEGATIVE_INFINITY
  const last = new Date(lastUsedAt)
  const [year, month, day] = [
    last.getUTCFullYear(),
    last.getUTCMonth() + (months[frequency] ?? 0),
    last.getUTCDate(),
  ]
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate()
  return Date.UTC(year, month, Math.min(day, lastDay)) + (days[frequency] ?? 0) * dayMs
}

const daySchema = z.iso.date()
const timeSchema = z.iso.datetime({ offset: true })

/** Offsets of times on Earth are from -12:00 to +14:00. */
const hasPossibleOffset = (text: string): boolean => {
  const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)$/.exec(text) ?? []
  return sign === undefined || Number(hours) * 60 + Number(minutes) <= (sign === '+' ? 14 : 12) * 60
}

/** Whether a text is a time whose offset, and nothing else, makes it unreadable. */
export const hasWrongOffset = (text: string): boolean => {
  const [, time] = /^(\d{4}-\d\d-\d\dT[\d:.]{5,20})[+-][\d:]{0,8}$/.exec(text) ?? []
  return time !== undefined && readTimeSpan(`${time}Z`) !== null && readTimeSpan(text) === null
}

/**
 * The first and the last millisecond of an ISO 8601 time with an offset, or of a day (UTC); null for anything else. A time without
 * an offset could be any of 26 hours, so it is nothing.
 */
export const readTimeSpan = (text: string): { from: number; to: number } | null => {
  const isDay = daySchema.safeParse(text).success
  // Java writes no seconds where they are zero
  if (!isDay && !timeSchema.safeParse(text.replace(/T\d\d:\d\d(?=[Z+-])/, '$&:00')).success) return null
  if (!isDay && !hasPossibleOffset(text)) return null
  const from = Date.parse(text)
  return { from, to: isDay ? from + dayMs - 1 : from }
}
