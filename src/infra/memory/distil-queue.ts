import type { PersonAnswer, Sql } from '../../state/ports.ts'
import { one } from '../database/database.ts'
import type { Who } from './scope.ts'

/** A right to learn from one run; `tries` is its fence: it counts the takings. */
export type DistilClaim = { tenant: string; run_id: string; tries: number }

/** Takings of one run, after which it is given up. */
export const maxTries = 4

/** Of a run that has not ended. */
const open = `'queued', 'running', 'input_required'`

/** The oldest that is due; of a session the turns one after the other, so that what is newer is learned later. */
const takeStatement = `
  UPDATE distillations d SET tries = tries + 1, due_at = clock_timestamp() + $1::int * interval '1 millisecond'
  FROM (
    SELECT q.tenant, q.run_id FROM distillations q JOIN runs r USING (tenant, run_id)
    WHERE q.failed_at IS NULL AND q.due_at <= clock_timestamp() AND q.tries < ${maxTries}
      AND NOT EXISTS (SELECT FROM runs e JOIN distillations p USING (tenant, run_id)
        WHERE e.tenant = r.tenant AND e.session_id = r.session_id AND e.turn < r.turn AND p.failed_at IS NULL)
    ORDER BY q.due_at LIMIT 1 FOR UPDATE OF q SKIP LOCKED
  ) due
  WHERE d.tenant = due.tenant AND d.run_id = due.run_id AND d.due_at <= clock_timestamp()
  RETURNING d.tenant, d.run_id, d.tries`

/** Takes a run that nobody learns from just now, for `leaseMs`; null when none is due. */
export const takeDistillation = (sql: Sql, leaseMs: number): Promise<DistilClaim | null> =>
  one<DistilClaim>(sql, takeStatement, [leaseMs])

/** It is learned from, unless another has taken it since, or it may not be: then false. In the transaction that writes what was learned. */
export const endDistillation = async (sql: Sql, { tenant, run_id, tries }: DistilClaim): Promise<boolean> => {
  const ended = await one(
    sql,
    'DELETE FROM distillations WHERE tenant = $1 AND run_id = $2 AND tries = $3 AND failed_at IS NULL RETURNING run_id',
    [tenant, run_id, tries],
  )
  return ended !== null
}

/** One that ends in this moment has its row already: then that one is given up. */
const giveUpStatement = `
  INSERT INTO distillations (tenant, run_id, failed_at, error)
  SELECT s.tenant, r.run_id, clock_timestamp(), 'given up: its user had something forgotten while it was open'
  FROM sessions s JOIN runs r USING (tenant, session_id)
  WHERE s.tenant = $1 AND s.user_id = $2 AND r.status IN (${open}) ORDER BY r.session_id, r.turn
  ON CONFLICT (tenant, run_id) DO UPDATE SET failed_at = excluded.failed_at, error = excluded.error`

/** After it, or one that ends in between would be missed. Who is learning finds his claim gone and writes nothing. */
const dropStatement = `
  DELETE FROM distillations WHERE tenant = $1 AND run_id IN (
    SELECT d.run_id FROM sessions s JOIN runs r USING (tenant, session_id) JOIN distillations d USING (tenant, run_id)
    WHERE s.tenant = $1 AND s.user_id = $2 AND r.status NOT IN (${open}) ORDER BY d.run_id FOR UPDATE OF d)`

/**
 * From here on nothing is learned of what a user has said so far, in ended and in open runs. An open run is given up before
 * it ends: the row is there already when its end would make one. Nothing of what is forgotten has to be kept for that.
 */
export const giveUpUser = async (sql: Sql, { tenant, user_id }: Who): Promise<void> => {
  await sql.query(giveUpStatement, [tenant, user_id])
  await sql.query(dropStatement, [tenant, user_id])
}

type GivenUp = { said: (PersonAnswer | null)[] | null }

/** What its user has said in an open run since it was given up; null: it was not. */
export const saidSinceGivenUp = async (sql: Sql, tenant: string, runId: string): Promise<string[] | null> => {
  const found = await one<GivenUp>(
    sql,
    `SELECT (SELECT json_agg(i.answer) FROM input_requests i
       WHERE i.tenant = d.tenant AND i.run_id = d.run_id AND i.answered_at > d.failed_at) AS said
     FROM distillations d WHERE d.tenant = $1 AND d.run_id = $2 AND d.failed_at IS NOT NULL`,
    [tenant, runId],
  )
  return (
    found &&
    (found.said ?? []).flatMap((one) =>
      one?.kind === 'answered'
        ? [typeof one.answer === 'string' ? one.answer : JSON.stringify(one.answer)]
        : [],
    )
  )
}

/** It did not work: again later, or no more after the last try. */
export const failDistillation = async (sql: Sql, claim: DistilClaim, error: string): Promise<void> => {
  await sql.query(
    `UPDATE distillations SET error = $4, due_at = clock_timestamp() + (2 ^ tries) * interval '1 second',
       failed_at = CASE WHEN tries >= $5 THEN clock_timestamp() END
     WHERE tenant = $1 AND run_id = $2 AND tries = $3 AND failed_at IS NULL`,
    [claim.tenant, claim.run_id, claim.tries, error.slice(0, 2000), maxTries],
  )
}

/** Gives up those whose last taker has said nothing; those that were given up are kept for a week, and while they are open. */
export const dropFailed = async (sql: Sql): Promise<void> => {
  await sql.query(
    `UPDATE distillations SET failed_at = clock_timestamp(), error = COALESCE(error, 'whoever took it fell silent each time')
     WHERE failed_at IS NULL AND tries >= $1 AND due_at <= clock_timestamp()`,
    [maxTries],
  )
  await sql.query(
    `DELETE FROM distillations d WHERE failed_at < clock_timestamp() - interval '7 days' AND NOT EXISTS (
       SELECT FROM runs r WHERE r.tenant = d.tenant AND r.run_id = d.run_id AND r.status IN (${open}))`,
  )
}
