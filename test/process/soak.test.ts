import { describe, expect, test } from 'vitest'
import { growthFault, slopeOf } from '../chaos/soak/slope.ts'
import { soak } from '../chaos/soak/soak.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

const slice = () => ({ seed: 7, scale: 0.0125, say() {}, signal: AbortSignal.timeout(280_000) })

describe.skipIf(serversMissing !== null)(onServers('a short soak'), () => {
  test('finds memory flat and every job done once', async () => {
    const { figures, failures } = await soak(slice())
    expect(failures).toEqual([])
    expect(figures).toMatchObject({ lost: 0, doubled: 0 })
  }, 300_000)

  test('finds a worker that forgets to let go of 64 KB with every run', async () => {
    const { failures } = await soak(slice(), { leakBytes: 65_536 })
    expect(failures).toEqual([expect.stringMatching(/^worker_heap_mb grows by/)])
  }, 300_000)
})

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

  test('knows the slope, and how sure it is of it', () => {
    const { perHour, error } = slopeOf(series(6).points)
    expect(Math.abs(perHour - 6)).toBeLessThan(2 * error)
  })

  test.each([0, 0.2, -3])('%d MB an hour over 45 minutes are flat', (perHour) => {
    expect(growthFault(series(perHour))).toBeNull()
  })

  test('2 MB an hour over 45 minutes are not', () => {
    expect(growthFault(series(2))).toMatch(/^heap grows by 2.* MB an hour, 1.5/)
  })

  test('a handful of samples is no verdict', () => {
    expect(growthFault({ ...series(0), points: series(0).points.slice(0, 5) })).toMatch(/say nothing/)
  })
})
