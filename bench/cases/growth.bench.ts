import type { Case, Figures, Variant } from '../case.ts'
import { query } from '../support/database.ts'
import { type LongRun, longRun, storedBytes } from '../support/long-run.ts'
import type { Place } from '../support/place.ts'

/** The mean of the actions around one, over runs, by the times at which the database stored them. */
const msAt = async (place: Place, runIds: readonly string[], action: number): Promise<number> => {
  const around = Math.min(action / 2, Math.max(50, action / 20))
  const [row] = await query<{ ms: number }>(
    place,
    `SELECT avg(ms)::float8 AS ms FROM (
       SELECT extract(epoch FROM max(created_at) - min(created_at)) * 1000 / (count(*) - 1) AS ms
       FROM actions WHERE run_id = ANY($1) AND seq BETWEEN $2 AND $3 GROUP BY run_id) windows`,
    [runIds, Math.ceil(action - around), Math.floor(action + around)],
  )
  return row?.ms ?? Number.NaN
}

/** A long run comes first: the early actions of a young process, and the first pages of a table, cost more for other reasons. */
const growth =
  (runs: number, points: readonly number[]): Variant =>
  async (place) => {
    const last = Math.max(...points)
    await longRun(place, 1100)
    const before = await storedBytes(place, 'mason')
    const measured: LongRun[] = []
    for (let n = 0; n < runs; n++) measured.push(await longRun(place, place.count(last * 1.06) + 5))
    const stored = (await storedBytes(place, 'mason')) - before
    const ids = measured.map(({ runId }) => runId)
    const found: Figures = {}
    for (const point of points) found[`ms at ${point}`] = await msAt(place, ids, place.count(point))
    found[`${last} / 100`] = (found[`ms at ${last}`] ?? 0) / (found['ms at 100'] ?? 0)
    found['stored / payload'] = stored / measured.reduce((sum, { payload }) => sum + payload, 0)
    return found
  }

const growthCase: Case = {
  about: 'what action 1000 and action 10,000 of a run cost against action 100, at 2 KB an action',
  ours: {
    'to 1000': growth(4, [100, 300, 1000]),
    'to 10000': growth(2, [100, 1000, 3000, 10_000]),
  },
}

export default growthCase
