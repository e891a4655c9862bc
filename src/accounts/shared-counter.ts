import type { Clock } from '../state/ports/clock.ts'

const recountEveryMs = 1000

/** What all processes counted, and how many seconds it counts for. `max` null: no limit. */
export type SharedCount = { max: number | null; used: number; left_s: number }
/** What all processes counted, and what this one has since. */
type Count = SharedCount & { own: number; at: number }

/**
 * Counts together with all other processes: each reads the count of all once a second, in which it reports its `own` since
 * then, and adds what it admits itself. With n processes a limit may be exceeded by what n - 1 of them admit in a second.
 * The counter adds `more` where the limit allows it; the count is null then.
 */
export const createSharedCounter = (
  clock: Clock,
  recount: (name: string, own: number) => Promise<SharedCount | null>,
) => {
  const counts = new Map<string, Count>()
  const recounts = new Map<string, Promise<void>>()
  const refresh = async (name: string): Promise<void> => {
    const known = counts.get(name)
    const own = known?.own ?? 0
    if (known) known.own = 0
    try {
      const counted = await recount(name, own)
      const admitted = counts.get(name)?.own ?? 0
      if (counted) counts.set(name, { ...counted, own: admitted, at: clock.monotonicMs() })
      else counts.delete(name)
    } catch (error) {
      if (known) known.own += own
      throw error
    }
  }
  return async (name: string, more: number): Promise<Count | null> => {
    const known = counts.get(name)
    if (!known || clock.monotonicMs() - known.at >= recountEveryMs) {
      const recounting = recounts.get(name) ?? refresh(name).finally(() => recounts.delete(name))
      recounts.set(name, recounting)
      await recounting
    }
    const count = counts.get(name)
    if (!count) return null
    if (count.max !== null && count.used + count.own + more > count.max) return count
    count.own += more
    return null
  }
}

/**
 * Counts $3 more requests in this minute of the database's clock, for `limits`: a query of the key's columns and `max`, its
 * limit a minute. What has no limit is not counted.
 */
export const toMinuteStatement = (table: string, key: string, columns: string, limits: string): string => `
  WITH limits AS (${limits}), counted AS (
    INSERT INTO ${table} AS c (${columns}, minute, requests)
    SELECT ${columns}, date_trunc('minute', clock_timestamp()), $3::bigint FROM limits WHERE max IS NOT NULL
    ON CONFLICT (${key}) DO UPDATE SET minute = EXCLUDED.minute,
      requests = CASE WHEN c.minute = EXCLUDED.minute THEN c.requests ELSE 0 END + EXCLUDED.requests
    RETURNING requests
  )
  SELECT max::float8, COALESCE((SELECT requests FROM counted), 0)::float8 AS used,
    (60 - extract(second FROM clock_timestamp()))::float8 AS left_s FROM limits`
