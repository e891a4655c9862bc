import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '../../src/infra/database/database.ts'
import type { FuzzFindings } from './http.ts'
import type { FuzzJob } from './jobs.ts'

export type SentJob = { job: FuzzJob; id: string; at: number }

type Rejected = { job_id: string; faults: { pointer: string; detail: string }[] }
type Admitted = { key: string; run_id: string; status: string | null }

/** What became of every job that was sent to the intake, by the database alone. */
export const checkJobs = async (database: Database, sent: readonly SentJob[]): Promise<FuzzFindings> => {
  await neighboursDone(database)
  const rejected = new Map(
    (await database.query<Rejected>('SELECT job_id, faults FROM rejected_jobs')).rows.map((row) => [
      row.job_id,
      row,
    ]),
  )
  const admitted = new Map<string, Admitted[]>()
  for (const row of (await database.query<Admitted>(admittedStatement)).rows)
    admitted.set(row.key, [...(admitted.get(row.key) ?? []), row])
  const failures: string[] = []
  const figures = {
    'jobs admitted': 0,
    'jobs rejected with a reason': 0,
    wakeUps: 0,
    'valid jobs in between': 0,
  }
  for (const { job, id, at } of sent) {
    if (job.queue === 'wake-ups') {
      figures.wakeUps++
      continue
    }
    const key = storedId(id)
    const refusal = rejected.get(key)
    const runs = admitted.get(key) ?? []
    figures['jobs admitted'] += runs.length
    if (refusal) figures['jobs rejected with a reason']++
    if (job.what === 'a neighbour') figures['valid jobs in between']++
    const fault = faultOf(job, refusal, runs)
    if (fault) failures.push(`job ${at}, ${job.what}: ${fault}`)
  }
  return { figures, failures }
}

/** As Postgres can hold it: without NUL. */
const storedId = (id: string): string => id.replaceAll('\u0000', '\ufffd')

const faultOf = (
  { fate, at, what }: FuzzJob,
  refusal: Rejected | undefined,
  runs: Admitted[],
): string | null => {
  if (!refusal && runs.length === 0) return 'is lost: neither admitted nor rejected'
  if (runs.length > 1) return `became ${runs.length} runs`
  if (refusal && runs.length > 0) return `is both a run and rejected: ${JSON.stringify(refusal.faults)}`
  if (refusal && fate === 'admitted') return `is valid, but was rejected: ${JSON.stringify(refusal.faults)}`
  if (!refusal && fate === 'rejected') return 'is malformed, but was admitted'
  if (refusal && (refusal.faults.length === 0 || refusal.faults.some(({ detail }) => !detail)))
    return `was rejected without a reason: ${JSON.stringify(refusal.faults)}`
  if (refusal && at !== undefined && !refusal.faults.some(({ pointer }) => pointer.startsWith(at)))
    return `was rejected without naming ${at}: ${JSON.stringify(refusal.faults).slice(0, 300)}`
  if (what === 'a neighbour' && runs[0]?.status !== 'completed') return `its run is ${runs[0]?.status}`
  return null
}

const admittedStatement = `
  SELECT i.key, i.response->>'id' AS run_id, r.status
  FROM idempotency i LEFT JOIN runs r ON r.tenant = i.tenant AND r.run_id = i.response->>'id'`

/** Waits until no run of the neighbours is open, a minute at the most. */
const neighboursDone = async (database: Database): Promise<void> => {
  const until = performance.now() + 60_000
  for (;;) {
    const { rows } = await database.query(
      `SELECT FROM runs WHERE tenant = 'neighbours' AND status IN ('queued', 'running') LIMIT 1`,
    )
    if (rows.length === 0 || performance.now() > until) return
    await pause(200)
  }
}
