import { createAppendBatches } from '../../src/engine/runs/append-batches.ts'
import { createRetryingSql } from '../../src/engine/runs/leases.ts'
import { createRunLog } from '../../src/engine/runs/run-log.ts'
import { openDatabase } from '../../src/infra/database/open-database.ts'
import { newAttemptId } from '../../src/infra/lib/ids.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import type { LogEntry } from '../../src/state/ports/run-log.ts'
import { noUsage } from '../../src/state/token-usage.ts'
import type { Case, Figures, Variant } from '../case.ts'
import { connect, query } from '../support/database.ts'
import type { Place } from '../support/place.ts'

/** Runs that append at once, and actions of each. */
const sizes = [
  { runs: 1, each: 1000 },
  { runs: 16, each: 400 },
  { runs: 64, each: 150 },
]
const leaseMs = 30_000
/** An action of about 1 KB. */
const body = JSON.stringify({
  node: 'planner',
  result: { text: 'some "quoted" text '.repeat(45) },
  next: ['answer'],
})
const someEntry = (seq: number): LogEntry => ({
  ...{ seq, attempt_id: newAttemptId(), visit: { id: newAttemptId(), ms: 1, prompt_sha256: null } },
  ...{ body, patch: '{}', usage: noUsage, worked_ms: seq, effect: null },
})

/** Runs that one worker has, before their first action. */
const makeRuns = async (place: Place, label: string, runs: number): Promise<string[]> => {
  const ids = Array.from({ length: runs }, (_, n) => `${label}_${n}`)
  await query(place, "INSERT INTO businesses (tenant) VALUES ('default') ON CONFLICT DO NOTHING")
  await query(
    place,
    `WITH made AS (SELECT unnest($1::text[]) AS id), session AS (
       INSERT INTO sessions (tenant, session_id, user_id, turns) SELECT 'default', id, 'u1', 1 FROM made)
     INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at, epoch, first_seq, next_seq)
     SELECT 'default', id, id, 1, 'running', now() + interval '1 hour', 1, 1, 1 FROM made`,
    [ids],
  )
  return ids
}

const measure = async (
  place: Place,
  appendAll: (ids: readonly string[], each: number) => Promise<void>,
): Promise<Figures> => {
  const figures: Figures = {}
  for (const { runs, each } of sizes) {
    await appendAll(await makeRuns(place, `warm${runs}`, runs), place.count(each / 10))
    const ids = await makeRuns(place, `measured${runs}`, runs)
    const count = place.count(each)
    const before = process.cpuUsage()
    const since = performance.now()
    await appendAll(ids, count)
    const seconds = (performance.now() - since) / 1000
    const { user, system } = process.cpuUsage(before)
    figures[`${runs}: appends/s`] = (runs * count) / seconds
    figures[`${runs}: CPU ms per append`] = (user + system) / 1000 / runs / count
  }
  return figures
}

const ours =
  (isTogether: boolean): Variant =>
  async (place) => {
    const database = await openDatabase(place.config, silentLog)
    const batches = createAppendBatches(database, leaseMs)
    const lease = { signal: new AbortController().signal, check() {} }
    const appendTogether = isTogether ? batches : async () => false
    const figures = await measure(place, async (ids, each) => {
      await Promise.all(
        ids.map(async (run_id) => {
          const fence = { tenant: 'default', run_id, epoch: 1, worker_id: 'w1' }
          const log = createRunLog(createRetryingSql(database, systemClock, lease), fence, {
            lease,
            appendTogether,
          })
          for (let seq = 1; seq <= each; seq++) await log.append(someEntry(seq))
        }),
      )
    })
    await database.close()
    return figures
  }

/** The least that rows of many runs cost: one statement and one commit for each round of all runs, on one connection. */
const combined: Variant = async (place) => {
  const client = await connect(place)
  const text = `
    WITH item AS (SELECT * FROM json_to_recordset($1::json) AS item (run_id text, seq int, attempt_id text, body text, patch text)
      WHERE item.seq % 1 = 0), mine AS (
      UPDATE runs r SET next_seq = next_seq + 1, stalls = 0 FROM item
      WHERE r.tenant = 'default' AND r.run_id = item.run_id AND r.epoch = 1 AND r.next_seq = item.seq AND r.status = 'running'
      RETURNING item.*, r.session_id, r.turn)
    INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, body, patch)
    SELECT 'default', session_id, seq, run_id, turn, 1, attempt_id, body::json, patch::json FROM mine`
  const figures = await measure(place, async (ids, each) => {
    for (let seq = 1; seq <= each; seq++) {
      const rows = ids.map((run_id) => ({ run_id, seq, attempt_id: newAttemptId(), body, patch: '{}' }))
      const { rowCount } = await client.query({ name: 'combined', text, values: [JSON.stringify(rows)] })
      if (rowCount !== ids.length) throw new Error(`${rowCount} of ${ids.length} rows were written`)
    }
  })
  await client.end()
  return figures
}

const runLog: Case = {
  about:
    'appends of 1, 16 and 64 runs of one worker at once, against the bare statement that stores a round of them',
  ours: { together: ours(true), 'each alone': ours(false) },
  beside: { 'one connection, all runs a commit': combined },
}

export default runLog
