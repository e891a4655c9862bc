import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import type { Member } from '../fleet/members.ts'
import type { QueueClient } from '../fleet/queue-client.ts'
import type { Series } from './slope.ts'

/** One look at everything; times in seconds since the soak began. */
export type Sample = { at_s: number } & Record<string, number>

/** Looks every `everyMs`, always after a whole garbage collection, until it is stopped. */
export const startSampling = (
  members: readonly Member[],
  witness: pg.Client,
  queue: QueueClient,
  everyMs: number,
) => {
  const samples: Sample[] = []
  const since = performance.now()
  const over = new AbortController()

  const look = async (): Promise<void> => {
    const sample: Sample = { at_s: Math.round((performance.now() - since) / 100) / 10 }
    for (const member of members) {
      const kind = member.name.split(' ')[0] ?? ''
      const found = await member.probe({ collect: true })
      sample[`${kind}_heap_mb`] = found.heap_mb
      sample[`${kind}_external_mb`] = found.external_mb
      sample[`${kind}_rss_mb`] = found.rss_mb
      sample[`${kind}_handles`] = Object.values(found.handles).reduce((sum, count) => sum + count, 0)
    }
    const { rows } = await witness.query<{ n: number }>(
      'SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database()',
    )
    sample.pg_connections = rows[0]?.n ?? 0
    sample.redis_mb = Math.round((await queue.memory()) / 1024 / 10.24) / 100
    sample.wake_ups_waiting = await queue.countWakeUps()
    samples.push(sample)
  }
  const run = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const next = performance.now() + everyMs
      await look()
      await pause(Math.max(0, next - performance.now()), undefined, { signal: over.signal }).catch(() => {})
    }
  }
  const running = run()
  // a process that is gone cannot be probed: reported by `stop`
  running.catch(() => over.abort())
  return {
    samples,
    async stop(): Promise<void> {
      over.abort()
      await running
    },
    [Symbol.dispose]: () => over.abort(),
  }
}

/**
 * How much each quantity may grow over the window and still count as flat. Of a heap 0.75 MB, which over 45 minutes is
 * 1 MB an hour, less than a full collection differs from the next. In its first minutes a process still compiles.
 */
const boundsOf = (hours: number) =>
  [
    [/_heap_mb$/, 'MB', hours < 0.5 ? 4 : 0.75],
    [/_handles$/, 'handles', 40],
    [/^pg_connections$/, 'connections', 5],
    [/^redis_mb$/, 'MB', 1],
  ] as const

/** The series that must be flat, over the last three quarters of the time. */
export const judgedSeries = (samples: readonly Sample[]): Series[] => {
  const last = samples.at(-1)?.at_s ?? 0
  const from = last / 4
  const window = samples.filter(({ at_s }) => at_s >= from)
  return Object.keys(samples[0] ?? {}).flatMap((name) => {
    const [, unit, bound] = boundsOf((last - from) / 3600).find(([pattern]) => pattern.test(name)) ?? []
    if (unit === undefined || bound === undefined) return []
    const points = window.map((sample) => ({ at: sample.at_s / 3600, value: sample[name] ?? 0 }))
    return [{ name, unit, bound, points }]
  })
}

export const csvOf = (samples: readonly Sample[]): string => {
  const names = Object.keys(samples[0] ?? {})
  return [names, ...samples.map((sample) => names.map((name) => sample[name]))]
    .map((row) => `${row.join(',')}\n`)
    .join('')
}
