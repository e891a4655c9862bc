import type pg from 'pg'

/** The append that src/engine/runs/append-statements.ts does, without what surrounds it: the least that a durable action costs. */
const statement = `
  WITH mine AS (
    UPDATE runs SET next_seq = next_seq + 1, stalls = 0, worked_ms = $8, prompt_tokens = prompt_tokens + $9,
      completion_tokens = completion_tokens + $10, total_tokens = total_tokens + $11
    WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND next_seq = $4 AND status = 'running'
    RETURNING session_id, turn
  )
  INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, body, patch)
  SELECT $1, session_id, $4, $2, turn, $3, $5, $6::json, $7::json FROM mine RETURNING seq`

export type RawAction = { seq: number; body: string; patch: string }

/** One connection, one statement after the other, each committed before the next. */
export const rawAppend = async (
  client: pg.Client,
  runId: string,
  attemptId: string,
  { seq, body, patch }: RawAction,
): Promise<void> => {
  const values = ['default', runId, 1, seq, attemptId, body, patch, seq, 0, 0, 0]
  const { rowCount } = await client.query({ name: 'append', text: statement, values })
  if (rowCount !== 1) throw new Error(`the raw append of ${runId} ${seq} did nothing`)
}
