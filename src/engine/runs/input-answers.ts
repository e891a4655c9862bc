import { z } from 'zod'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createInvalidRequest, toFieldErrors } from '../../state/resource-schema.ts'
import { openStatusesSql, parkedStatusesSql } from '../../state/run-status.ts'
import type { Json } from '../../state/runtime-state.ts'
import { noSecretAnswers, type SecretAnswers } from './secret-answers.ts'

type InputRow = {
  schema: Record<string, unknown>
  secret: boolean
  payment_id: string | null
  plan_seq: number
  call_index: number
  user_id: string
  answered: boolean
  expired: boolean
  open: boolean
}

/** The row of the run is locked first, as in parking, ending a wait and cancelling: the later one sees the other. */
const questionStatement = `
  SELECT i.schema, i.secret, i.payment_id, i.plan_seq, i.call_index, q.user_id, i.answered_at IS NOT NULL AS answered, i.expires_at <= clock_timestamp() AS expired, r.status IN ${openStatusesSql} AS open
  FROM runs r JOIN input_requests i USING (tenant, run_id) JOIN run_requests q USING (tenant, run_id)
  WHERE r.tenant = $1 AND r.run_id = $2 AND i.request_id = $3
  FOR NO KEY UPDATE OF r`

/** Whether the message of this key has answered a question of the run. The lock is that of an answer, so none is under way. */
const replayStatement = `
  SELECT EXISTS (SELECT FROM input_requests i WHERE i.tenant = $1 AND i.run_id = $2 AND i.answer_key = $3) AS replayed
  FROM runs WHERE tenant = $1 AND run_id = $2 FOR NO KEY UPDATE`

/** Stores the answer, and wakes the run where it is parked; of two answers the first counts. */
const answerStatement = `
  WITH answered AS (
    UPDATE input_requests i SET answered_at = clock_timestamp(), answer = $4::json, sealed = $5, answer_key = $6
    WHERE i.tenant = $1 AND i.run_id = $2 AND i.request_id = $3 AND i.answered_at IS NULL RETURNING i.run_id
  ), run AS (
    UPDATE runs r SET status = 'queued' FROM answered
    WHERE r.tenant = $1 AND r.run_id = answered.run_id AND r.status IN ${parkedStatusesSql} RETURNING r.run_id
  ), wake_up AS (INSERT INTO outbox (tenant, run_id) SELECT $1, run_id FROM run)
  SELECT run_id FROM answered`

/** A secret answer, whatever the schema says. */
const secretSchema = z.string().min(1).max(200)

/**
 * Answers an open question of a run; a secret answer is encrypted before it is stored. An answer whose `key` has answered one of its
 * questions before changes nothing. Throws `not_found`, `input_answered`, and `invalid_request`, which leaves it open.
 */
export const answerInput = (
  database: Database,
  businessId: string,
  runId: string,
  requestId: string,
  answer: Json,
  key: string | null = null,
  secretAnswers: SecretAnswers = noSecretAnswers,
): Promise<void> =>
  database.asBusiness(businessId, async (sql) => {
    if (key !== null) {
      const earlier = await queryOne<{ replayed: boolean }>(sql, replayStatement, [businessId, runId, key])
      if (earlier?.replayed) return
    }
    const row = await queryOne<InputRow>(sql, questionStatement, [businessId, runId, requestId])
    if (!row) throw new MasonError('not_found', `run "${runId}" has no input request "${requestId}"`)
    if (row.answered || row.expired || !row.open) throw createAnsweredError(requestId)
    checkAnswer(z.fromJSONSchema(row.schema as never), answer)
    if (row.secret) checkAnswer(secretSchema, answer)
    const { user_id, payment_id, plan_seq, call_index: index } = row
    const use = {
      business_id: businessId,
      user_id,
      run_id: runId,
      plan_seq,
      index,
      payment_id: payment_id ?? '',
    }
    const sealed = row.secret ? await secretAnswers.seal(sql, String(answer), use) : null
    const stored = JSON.stringify({ kind: 'answered', answer: sealed === null ? answer : '' })
    if (!(await queryOne(sql, answerStatement, [businessId, runId, requestId, stored, sealed, key])))
      throw createAnsweredError(requestId)
  })

const checkAnswer = (schema: z.ZodType, answer: Json): void => {
  const parsed = schema.safeParse(answer)
  if (parsed.success) return
  throw createInvalidRequest(
    toFieldErrors(parsed.error).map((one) => ({ ...one, pointer: `/answer${one.pointer}` })),
    'send an answer that matches the schema of the input request',
  )
}

const createAnsweredError = (requestId: string): MasonError =>
  new MasonError('input_answered', `input request "${requestId}" was already answered or has expired`)

/** A one-time password is of no use any more, and neither is an answer to a run that has ended. */
const forgetStatement = `
  UPDATE input_requests i SET sealed = NULL, answer = '{"kind":"expired"}' FROM runs r
  WHERE i.sealed IS NOT NULL AND r.tenant = i.tenant AND r.run_id = i.run_id
    AND (r.ended_at IS NOT NULL OR i.answered_at < clock_timestamp() - interval '15 minutes')`

/** Answers overdue questions with `expired`, so that their runs go on, and forgets secret answers that nothing used; returns how many expired. */
export const expireInputs = async (database: Database): Promise<number> => {
  await database.query(forgetStatement)
  const { rows } = await database.query(
    `WITH late AS (
       SELECT r.tenant, r.run_id, i.request_id FROM input_requests i JOIN runs r USING (tenant, run_id)
       WHERE i.answered_at IS NULL AND i.expires_at <= clock_timestamp() AND r.status IN ${openStatusesSql}
       ORDER BY i.expires_at LIMIT 100 FOR NO KEY UPDATE OF r SKIP LOCKED
     ), run AS (
       UPDATE runs r SET status = 'queued' FROM late
       WHERE r.tenant = late.tenant AND r.run_id = late.run_id AND r.status IN ${parkedStatusesSql} RETURNING r.tenant, r.run_id
     ), answered AS (
       UPDATE input_requests i SET answered_at = clock_timestamp(), answer = '{"kind":"expired"}' FROM late
       WHERE i.tenant = late.tenant AND i.request_id = late.request_id AND i.answered_at IS NULL RETURNING i.run_id
     ), wake_up AS (INSERT INTO outbox (tenant, run_id) SELECT tenant, run_id FROM run)
     SELECT run_id FROM answered`,
  )
  return rows.length
}

/** Removes what was answered to the secret question of a call. */
export const forgetAnswer = async (
  sql: Sql,
  tenant: string,
  runId: string,
  planSeq: number,
  callIndex: number,
): Promise<void> => {
  await sql.query(
    `UPDATE input_requests SET sealed = NULL, answer = '{"kind":"answered","answer":""}'
     WHERE tenant = $1 AND run_id = $2 AND plan_seq = $3 AND call_index = $4 AND secret`,
    [tenant, runId, planSeq, callIndex],
  )
}
