import { describe, expect, test } from 'vitest'
import { computeOutageDelayMs, recordOutageTry } from '../../../src/engine/runs/model-outage.ts'
import type { OutageRecord } from '../../../src/state/outage.ts'

const long = 3_600_000
const [least, most] = [() => 0, () => 1]

describe('the wait for a model', () => {
  test('doubles from a second to half a minute, with half of it as jitter', () => {
    const seconds = (random: () => number) =>
      [0, 1, 2, 3, 4, 5, 6, 1000].map((tries) => computeOutageDelayMs(tries, 0, long, random) / 1000)
    expect(seconds(most)).toEqual([1, 2, 4, 8, 16, 30, 30, 30])
    expect(seconds(least)).toEqual([0.5, 1, 2, 4, 8, 15, 15, 15])
  })

  test('is never shorter than the time that the vendor names, and spreads the runs behind it', () => {
    expect(computeOutageDelayMs(0, 60_000, long, least)).toBe(60_000)
    expect(computeOutageDelayMs(3, 60_000, long, most)).toBe(64_000)
  })

  test('ends when the time of the run is up, also where less than a second would be left', () => {
    expect(computeOutageDelayMs(0, 60_000, 5000, least)).toBe(5000)
    expect(computeOutageDelayMs(0, 0, 1200, least)).toBe(1200)
    expect(computeOutageDelayMs(0, 0, 1600, least)).toBe(500)
    expect(computeOutageDelayMs(0, 0, 0, most)).toBe(0)
  })
})

test('the record of an outage keeps its first and last tries and counts those between', () => {
  let record: OutageRecord = { first: [], omitted: 0, last: [] }
  for (let nr = 1; nr <= 25; nr++)
    record = recordOutageTry(record, {
      at: `${nr}`,
      node: 'planner',
      code: 'x',
      message: 'down',
      delay_ms: 1,
    })
  const times = (tries: OutageRecord['first']) => tries.map(({ at }) => Number(at))
  expect(times(record.first)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  expect(times(record.last)).toEqual([16, 17, 18, 19, 20, 21, 22, 23, 24, 25])
  expect(record.omitted).toBe(5)
})
