import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'

/** Gives a run that has ended so many actions: copies of one of its own follow, 100 ms apart. */
export const addActions = async (url: string, runId: string, count: number): Promise<void> => {
  const database = openPostgresDatabase({ url })
  const added = database.query(
    `INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, created_at, body, patch, ms, worker)
     SELECT tenant, session_id, n, run_id, turn, epoch, 'copy ' || n, created_at + n * interval '100 ms', body, patch, 80, worker
     FROM actions, generate_series((SELECT max(seq) + 1 FROM actions WHERE run_id = $1), $2::int) n WHERE run_id = $1 AND seq = 2`,
    [runId, count],
  )
  await added.finally(() => database.close())
}
