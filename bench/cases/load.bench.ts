import { readActionRows } from '../../src/engine/runs/run-queries.ts'
import { openDatabase } from '../../src/infra/database/open-database.ts'
import { foldActions } from '../../src/state/fold.ts'
import type { Case, Variant } from '../case.ts'
import { query } from '../support/database.ts'
import { longRun } from '../support/long-run.ts'
import { openNoOpRuntime } from '../support/no-op-runs.ts'
import type { Place } from '../support/place.ts'
import { median } from '../support/statistics.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }

/** Loads it again and again: the first time in a process that has loaded none, and the median of the others. */
const timed = async (place: Place, load: () => Promise<unknown>) => {
  const ms: number[] = []
  for (let n = 0; n < place.count(60); n++) {
    const since = performance.now()
    await load()
    ms.push(performance.now() - since)
  }
  return { ms: median(ms.slice(ms.length / 2)), 'ms the first time': ms[0] ?? Number.NaN }
}

/** As a worker takes a run up: the rows of the session, folded. */
const asWorker: Variant = async (place) => {
  const { runId } = await longRun(place, place.count(1000))
  const [run] = await query<{ session_id: string; turn: number }>(
    place,
    'SELECT session_id, turn FROM runs WHERE run_id = $1',
    [runId],
  )
  if (!run) throw new Error('the run is gone')
  const database = await openDatabase(place.config, log)
  const found = await timed(place, async () =>
    foldActions(await readActionRows(database, 'default', run.session_id, run.turn)),
  )
  await database.close()
  return found
}

/** As `GET /v1/runs/{id}/state` reads it, bound by row-level security. */
const asBusiness: Variant = async (place) => {
  const { runId } = await longRun(place, place.count(1000))
  const runtime = await openNoOpRuntime(place)
  const api = runtime.of('default')
  const found = await timed(place, () => api.state(runId, false))
  await runtime.close()
  return found
}

const load: Case = {
  about: 'reading a state of 1000 actions of 2 KB back from its rows',
  ours: { 'as a worker': asWorker, 'as a business': asBusiness },
}

export default load
