import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { Place } from './place.ts'

/** The admission that src/engine/runs/admission.ts does, as one bare statement: no HTTP, no checks, no row-level security. */
const statement = `
  WITH session AS (
    INSERT INTO sessions AS s (tenant, session_id, user_id, turns) VALUES ('default', $1, 'u1', 1)
    ON CONFLICT (tenant, session_id) DO UPDATE SET turns = s.turns + 1 RETURNING turns
  ), run AS (
    INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at)
    SELECT 'default', $2, $1, turns, 'queued', clock_timestamp() + interval '1 day' FROM session RETURNING turn
  ), request AS (
    INSERT INTO run_requests (tenant, run_id, user_id, request, metadata) SELECT 'default', $2, 'u1', $3::json, '{}' FROM run
  ), wake_up AS (
    INSERT INTO outbox (tenant, run_id) SELECT 'default', $2 FROM run
  )
  SELECT turn FROM run`

/** So many admissions over so many connections, each waiting for its commit; how many a second. */
export const rawAdmissions = async (
  { databaseUrl }: Place,
  request: string,
  { connections, count }: { connections: number; count: number },
): Promise<number> => {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: connections,
    options: '-c search_path=mason,public -c role=mason_worker',
  })
  await pool.query(`INSERT INTO businesses (tenant) VALUES ('default') ON CONFLICT DO NOTHING`)
  let sent = 0
  const admit = async (until: number): Promise<void> => {
    while (sent++ < until) {
      const id = randomBytes(16).toString('hex')
      await pool.query({ name: 'admit', text: statement, values: [`ses_${id}`, `run_${id}`, request] })
    }
  }
  const all = (until: number) => Promise.all(Array.from({ length: connections }, () => admit(until)))
  await all(count / 5)
  sent = 0
  const since = performance.now()
  await all(count)
  const perSecond = (count / (performance.now() - since)) * 1000
  await pool.end()
  return perSecond
}
