import type { Case, Variant } from '../case.ts'
import { connect, query } from '../support/database.ts'
import { actionsOf, allEnded, openNoOpRuntime, submitRuns } from '../support/no-op-runs.ts'
import type { Place } from '../support/place.ts'
import { walkPlainly } from '../support/plain-loop.ts'
import { type RawAction, rawAppend } from '../support/raw-append.ts'

const runs = 1000
const warmUp = 500
const actions = actionsOf(1)

/** One worker works off queued runs one at a time. By the clock of the database, from claim to end, all included. */
const work =
  (change: (runtime: Awaited<ReturnType<typeof openNoOpRuntime>>) => void): Variant =>
  async (place) => {
    const runtime = await openNoOpRuntime(place)
    change(runtime)
    const total = place.count(runs) + place.count(warmUp)
    await submitRuns(runtime, total)
    const before = process.cpuUsage()
    await runtime.startWorker({ concurrency: 1 })
    await allEnded(place)
    const { user, system } = process.cpuUsage(before)
    const [row] = await query<{ ms: number }>(
      place,
      `SELECT extract(epoch FROM max(ended_at) - min(started_at))::float8 * 1000 AS ms
       FROM (SELECT * FROM runs ORDER BY started_at OFFSET $1) measured`,
      [place.count(warmUp)],
    )
    await runtime.close()
    return {
      'ms per action': (row?.ms ?? Number.NaN) / (place.count(runs) * actions),
      'CPU ms per action': (user + system) / 1000 / (total * actions),
    }
  }

/** The rows of a real run of this build. */
const actionsOfOneRun = async (place: Place): Promise<RawAction[]> => {
  const runtime = await openNoOpRuntime(place)
  const [runId] = await submitRuns(runtime, 1)
  await runtime.startWorker({ concurrency: 1 })
  await allEnded(place)
  await runtime.close()
  return query<RawAction>(
    place,
    'SELECT seq, body::text, patch::text FROM actions WHERE run_id = $1 ORDER BY seq',
    [runId],
  )
}

/** The same bytes through one connection: no node, no state, no claim. One commit at a time. */
const raw: Variant = async (place) => {
  const rows = await actionsOfOneRun(place)
  if (rows.length !== actions) throw new Error(`a no-op run appended ${rows.length} actions, not ${actions}`)
  const runtime = await openNoOpRuntime(place)
  const ids = await submitRuns(runtime, place.count(runs) + place.count(warmUp))
  await runtime.close()
  await query(place, `UPDATE runs SET status = 'running', epoch = 1, next_seq = 1 WHERE status = 'queued'`)
  const client = await connect(place)
  const append = async (runIds: readonly string[]): Promise<void> => {
    for (const runId of runIds)
      for (const row of rows) await rawAppend(client, runId, `${runId}_${row.seq}`, row)
  }
  await append(ids.slice(0, place.count(warmUp)))
  const before = process.cpuUsage()
  const since = performance.now()
  await append(ids.slice(place.count(warmUp)))
  const ms = performance.now() - since
  const { user, system } = process.cpuUsage(before)
  await client.end()
  const total = place.count(runs) * actions
  return { 'ms per action': ms / total, 'CPU ms per action': (user + system) / 1000 / total }
}

const appendCase: Case = {
  about: 'what one durable action costs, the whole loop included, against the bare statement that stores it',
  ours: {
    Mason: work(() => {}),
    'plain loop': work(({ graph }) => walkPlainly(graph)),
  },
  beside: { 'one connection, one row a commit': raw },
}

export default appendCase
