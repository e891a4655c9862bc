// tier: all
import { describe, expect, test } from 'vitest'
import { findGrowth, slopeOf } from '../../chaos/soak/slope.ts'

describe('the verdict on a series', () => {
  const noise = [0.3, -0.2, 0.1, -0.4, 0.2, 0.4, -0.3, -0.1]
  const series = (perHour: number) => ({
    name: 'heap',
    unit: 'MB',
    bound: 0.75,
    points: Array.from({ length: 270 }, (_, at) => ({
      at: at / 360,
      value: 50 + (perHour * at) / 360 + (noise[at % 8] ?? 0),
    })),
  })

  test('gives the slope and its uncertainty', () => {
    const { perHour, error } = slopeOf(series(6).points)
    expect(Math.abs(perHour - 6)).toBeLessThan(2 * error)
  })

  test.each([0, 0.2, -3])('calls %d MB an hour over 45 minutes flat', (perHour) => {
    expect(findGrowth(series(perHour))).toBeNull()
  })

  test('does not call 2 MB an hour over 45 minutes flat', () => {
    expect(findGrowth(series(2))).toMatch(/^heap grows by 2.* MB an hour, 1.5/)
  })

  test('gives no verdict for a handful of samples', () => {
    expect(findGrowth({ ...series(0), points: series(0).points.slice(0, 5) })).toMatch(/say nothing/)
  })
})
