import { z } from 'zod'
import { MasonError } from '../../state/errors.ts'
import type { Json } from '../../state/runtime-state.ts'
import { type Database, one } from '../database/database.ts'

type Row = { schema: Record<string, unknown>; answered: boolean; expired: boolean }

/**
 * The answer and the bell are one transaction; of two answers the first counts. The run's row is locked first, as
 * cancelling does, so that the two never wait for each other in a circle.
 */
const answerStatement = `
  WITH run AS (
    UPDATE runs r SET status = 'queued' WHERE r.tenant = $1 AND r.run_id = $2 AND r.status = 'input_required'
      AND EXISTS (SELECT FROM input_requests i WHERE i.tenant = $1 AND i.run_id = $2 AND i.request_id = $3 AND i.answered_at IS NULL)
    RETURNING r.run_id
  ), answered AS (
    UPDATE input_requests i SET answered_at = clock_timestamp(), answer = $4::json FROM run
    WHERE i.tenant = $1 AND i.run_id = run.run_id AND i.request_id = $3 AND i.answered_at IS NULL
  ), bell AS (INSERT INTO outbox (tenant, run_id) SELECT $1, run_id FROM run)
  SELECT run_id FROM run`

/** Answers a run's open question. Throws `not_found`, `input_answered`, and `invalid_request` while it stays open. */
export const answerInput = (
  database: Database,
  tenant: string,
  runId: string,
  requestId: string,
  answer: Json,
): Promise<void> =>
  database.asBusiness(tenant, async (sql) => {
    const row = await one<Row>(
      sql,
      `SELECT schema, answered_at IS NOT NULL AS answered, expires_at <= clock_timestamp() AS expired
       FROM input_requests WHERE tenant = $1 AND run_id = $2 AND request_id = $3`,
      [tenant, runId, requestId],
    )
    if (!row) throw new MasonError('not_found', `run "${runId}" has no input request "${requestId}"`)
    if (row.answered || row.expired) throw alreadyAnswered(requestId)
    checkAnswer(row.schema, answer)
    const given = JSON.stringify({ kind: 'answered', answer })
    if (!(await one(sql, answerStatement, [tenant, runId, requestId, given])))
      throw alreadyAnswered(requestId)
  })

const checkAnswer = (schema: Record<string, unknown>, answer: Json): void => {
  const parsed = z.fromJSONSchema(schema as never).safeParse(answer)
  if (parsed.success) return
  throw new MasonError('invalid_request', 'the answer does not fit the question', {
    remedy: 'answer as the schema of the input request says',
    detail: {
      errors: parsed.error.issues.map(({ path, message }) => ({
        pointer: ['/answer', ...path.map(String)].join('/'),
        detail: message,
      })),
    },
  })
}

const alreadyAnswered = (requestId: string): MasonError =>
  new MasonError('input_answered', `input request "${requestId}" was answered already or has expired`)

/** Answers questions nobody answered in time with `expired`, so that their runs go on; gives how many. */
export const expireInputs = async (database: Database): Promise<number> => {
  const { rows } = await database.query(
    `WITH late AS (
       SELECT r.tenant, r.run_id, i.request_id FROM input_requests i JOIN runs r USING (tenant, run_id)
       WHERE i.answered_at IS NULL AND i.expires_at <= clock_timestamp() AND r.status = 'input_required'
       ORDER BY i.expires_at LIMIT 100 FOR NO KEY UPDATE OF r SKIP LOCKED
     ), run AS (
       UPDATE runs r SET status = 'queued' FROM late
       WHERE r.tenant = late.tenant AND r.run_id = late.run_id AND r.status = 'input_required' RETURNING r.tenant, r.run_id
     ), answered AS (
       UPDATE input_requests i SET answered_at = clock_timestamp(), answer = '{"kind":"expired"}' FROM late
       WHERE i.tenant = late.tenant AND i.request_id = late.request_id AND i.answered_at IS NULL
     ) INSERT INTO outbox (tenant, run_id) SELECT tenant, run_id FROM run RETURNING run_id`,
  )
  return rows.length
}
