import type { Sql } from '../../state/ports.ts'
import { one } from '../database/database.ts'

/** A right to learn from one run; `tries` is its fence: it counts the takings. */
export type DistilClaim = { tenant: string; run_id: string; tries: number }

/** Takings of one run, after which it is given up. */
export const maxTries = 4

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

/** It is learned from, unless another has taken it since: then false. In the transaction that writes what was learned. */
export const endDistillation = async (sql: Sql, { tenant, run_id, tries }: DistilClaim): Promise<boolean> => {
  const ended = await one(
    sql,
    'DELETE FROM distillations WHERE tenant = $1 AND run_id = $2 AND tries = $3 RETURNING run_id',
    [tenant, run_id, tries],
  )
  return ended !== null
}

const dropStatement = (column: 'user_id' | 'session_id'): string => `
  DELETE FROM distillations WHERE tenant = $1 AND run_id IN (
    SELECT d.run_id FROM sessions s JOIN runs r USING (tenant, session_id) JOIN distillations d USING (tenant, run_id)
    WHERE s.tenant = $1 AND s.${column} = $2 ORDER BY d.run_id FOR UPDATE OF d)`
const drops = { user_id: dropStatement('user_id'), session_id: dropStatement('session_id') }

/**
 * Nothing is learned any more of the ended runs of a user or a session: whoever is learning finds his claim gone and writes
 * nothing. Before the lock on the user, as who learns takes them.
 */
export const dropDistillations = (
  sql: Sql,
  tenant: string,
  of: keyof typeof drops,
  id: string,
): Promise<unknown> => sql.query(drops[of], [tenant, id])

/** The same of some runs. */
export const dropRuns = (sql: Sql, tenant: string, runIds: readonly string[]): Promise<unknown> =>
  sql.query(
    `DELETE FROM distillations WHERE tenant = $1 AND run_id IN (
       SELECT run_id FROM distillations WHERE tenant = $1 AND run_id IN (SELECT json_array_elements_text($2::json))
       ORDER BY run_id FOR UPDATE)`,
    [tenant, JSON.stringify(runIds)],
  )

/** It did not work: again later, or no more after the last try. */
export const failDistillation = async (sql: Sql, claim: DistilClaim, error: string): Promise<void> => {
  await sql.query(
    `UPDATE distillations SET error = $4, due_at = clock_timestamp() + (2 ^ tries) * interval '1 second',
       failed_at = CASE WHEN tries >= $5 THEN clock_timestamp() END
     WHERE tenant = $1 AND run_id = $2 AND tries = $3`,
    [claim.tenant, claim.run_id, claim.tries, error.slice(0, 2000), maxTries],
  )
}

/** Gives up those whose last taker has said nothing; those that were given up are looked at for a week. */
export const dropFailed = async (sql: Sql): Promise<void> => {
  await sql.query(
    `UPDATE distillations SET failed_at = clock_timestamp(), error = COALESCE(error, 'whoever took it fell silent each time')
     WHERE failed_at IS NULL AND tries >= $1 AND due_at <= clock_timestamp()`,
    [maxTries],
  )
  await sql.query(`DELETE FROM distillations WHERE failed_at < clock_timestamp() - interval '7 days'`)
}
