import { describe, expect, test } from 'vitest'
import {
  findCronError,
  findNextTime,
  isTimeZone,
  listPlannedTimes,
} from '../../../src/features/schedules/planned-times.ts'

const after = (cron: string, time_zone: string, from: string, count: number): (string | null)[] => {
  const times: (string | null)[] = []
  for (let at: number | null = Date.parse(from); at !== null && times.length < count; ) {
    at = findNextTime({ cron, time_zone }, at)
    times.push(at === null ? null : new Date(at).toISOString().slice(0, 16))
  }
  return times
}
const newYork = 'America/New_York'

describe('daylight saving', () => {
  test.each([
    [
      'a time that is skipped fires when clocks are set forward',
      '30 2 * * *',
      newYork,
      '2026-03-07T12:00Z',
      ['2026-03-08T07:00', '2026-03-09T06:30'],
    ],
    [
      'all times that are skipped fire once together',
      '0,15,30 2,3 * * *',
      newYork,
      '2026-03-08T06:59Z',
      ['2026-03-08T07:00', '2026-03-08T07:15'],
    ],
    [
      'a time that occurs twice fires the first time',
      '30 1 * * *',
      newYork,
      '2026-10-31T12:00Z',
      ['2026-11-01T05:30', '2026-11-02T06:30'],
    ],
    [
      'every half hour fires each shown time once',
      '*/30 * * * *',
      newYork,
      '2026-11-01T04:45Z',
      ['2026-11-01T05:00', '2026-11-01T05:30', '2026-11-01T07:00'],
    ],
    [
      'in the second of two hours the next time is after both',
      '*/30 * * * *',
      newYork,
      '2026-11-01T06:10Z',
      ['2026-11-01T07:00'],
    ],
    [
      'a shift of half an hour',
      '15 2 * * *',
      'Australia/Lord_Howe',
      '2026-10-03T00:00Z',
      ['2026-10-03T15:30', '2026-10-04T15:15'],
    ],
    [
      'midnight that is skipped',
      '0 0 * * *',
      'America/Santiago',
      '2026-09-05T05:00Z',
      ['2026-09-06T04:00', '2026-09-07T03:00'],
    ],
    [
      'a day that is skipped',
      '0 12 30 12 *',
      'Pacific/Apia',
      '2011-12-01T00:00Z',
      ['2011-12-30T10:00', '2012-12-29T22:00'],
    ],
    ['UTC has no shifts', '30 2 * * *', 'UTC', '2026-03-08T00:00Z', ['2026-03-08T02:30', '2026-03-09T02:30']],
  ])('%s', (_, cron, zone, from, expected) => {
    expect(after(cron, zone, from, expected.length)).toEqual(expected)
  })
})

test('planned times that have passed are the latest ones, in order, from the one that is due', () => {
  const plan = { cron: '0 9 * * 1-5', time_zone: 'Europe/Berlin' }
  const [from, to] = [Date.parse('2026-01-05T08:00Z'), Date.parse('2026-01-14T12:00Z')]
  const times = listPlannedTimes(plan, from, to, 100).map((at) => new Date(at).toISOString().slice(0, 10))
  expect(times).toEqual(['05', '06', '07', '08', '09', '12', '13', '14'].map((day) => `2026-01-${day}`))
  expect(listPlannedTimes(plan, from, to, 2)).toEqual([
    Date.parse('2026-01-13T08:00Z'),
    Date.parse('2026-01-14T08:00Z'),
  ])
  const everyMinute = { cron: '* * * * *', time_zone: 'UTC' }
  const year = listPlannedTimes(everyMinute, Date.parse('2025-01-01T00:00Z'), to, 100)
  expect([year.length, year[0], year.at(-1)]).toEqual([100, to - 99 * 60_000, to])
})

describe('an expression that is refused', () => {
  test.each([
    ['', 'five fields'],
    ['* * * *', 'five fields'],
    ['* * * * * *', 'five fields'],
    ['@daily', 'five fields'],
    ['60 * * * *', 'Invalid value'],
    ['*/0 * * * *', 'illegal stepping'],
    ['5-1 * * * *', 'larger'],
    ['a b c d e', 'is not a cron expression'],
    ['0 0 31 2 *', 'does not exist'],
    ['* * 31 2,4,6,9,11 *', 'does not exist'],
    [`${'0,'.repeat(100_000)}1 * * * *`, '200 characters'],
    ['0 0 1 1 * '.repeat(50), '200 characters'],
  ])('%.30s', (cron, message) => {
    expect(findCronError(cron)).toContain(message)
  })

  test('is none of these', () => {
    for (const cron of ['*/5 * * * *', '0 9 * * MON-FRI', '0 0 L * *', '0 0 29 2 *', '0 12 * * 1#2'])
      expect([cron, findCronError(cron)]).toEqual([cron, null])
    expect(['UTC', 'Europe/Berlin', 'Mars/Base', '', 'x'.repeat(99)].map(isTimeZone)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ])
  })
})
