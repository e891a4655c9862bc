import { queryOne, type RunKey } from '../../../infra/database/database.ts'
import type { PersonAnswer } from '../../../state/ports/questions.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import type { AdmittedRequest } from '../../../state/run-request.ts'
import { openStatusesSql } from '../../../state/run-status.ts'
import { isRepetitionSql } from './turn-backlog.ts'
import { cutOffTurns } from './turns.ts'
import type { MemoryOwner } from './user-scope.ts'

/** A claim to learn from one run, as its row names it. `tries` is its fence: the number of claims so far. */
type DistillationClaim = RunKey & { tries: number }

/** Claims of one run before it is given up. */
export const maxDistillationTries = 4

/** A run to learn from, with what is learned from. */
export type RunToDistill = DistillationClaim & {
  session_id: string
  user_id: string
  turn: number
  first_seq: number | null
  request: AdmittedRequest
  result: { answer: string | null } | null
  summary: string
  learning: boolean
  recall: boolean
  ended_at: Date
  is_repetition: boolean
  finish_reason: string | null
}

const maxDueRows = 20

/**
 * The oldest that are due: of a session only the earliest turn, so that newer statements are learned later. Both parts look row by row:
 * joined as a whole, PostgreSQL compares all runs of a business with all that wait.
 */
const dueStatement = `
  WITH due AS MATERIALIZED (
    SELECT q.*, r.* FROM (SELECT tenant, run_id, tries, due_at FROM distillations
      WHERE failed_at IS NULL AND due_at <= clock_timestamp() AND tries < ${maxDistillationTries} ORDER BY due_at OFFSET 0) q
    CROSS JOIN LATERAL (SELECT session_id, turn, first_seq, ended_at, finish_reason, parent_run_id FROM runs WHERE tenant = q.tenant AND run_id = q.run_id OFFSET 0) r
    WHERE (SELECT true FROM runs e JOIN distillations p USING (tenant, run_id) WHERE e.tenant = q.tenant
      AND e.session_id = r.session_id AND e.turn < r.turn AND p.failed_at IS NULL ORDER BY e.turn LIMIT 1) IS NULL
    ORDER BY q.due_at LIMIT ${maxDueRows}
  )
  SELECT r.tenant, r.run_id, r.tries, r.session_id, r.turn, r.first_seq, r.ended_at, r.finish_reason, run.* FROM due r
  CROSS JOIN LATERAL (
    SELECT s.user_id, n.request, o.result, s.summary, b.learning, b.recall, ${isRepetitionSql} AS is_repetition
    FROM businesses b JOIN run_requests n USING (tenant) JOIN sessions s USING (tenant) LEFT JOIN run_results o USING (tenant, run_id)
    WHERE b.tenant = r.tenant AND n.run_id = r.run_id AND s.session_id = r.session_id OFFSET 0
  ) run
  ORDER BY r.due_at`

/** The count of tries is the fence: who read the same rows and comes second claims none. */
const claimStatement = `
  WITH mine AS MATERIALIZED (
    SELECT d.tenant, d.run_id FROM json_to_recordset($1::json) AS c(tenant text, run_id text, tries int)
      JOIN distillations d ON d.tenant = c.tenant AND d.run_id = c.run_id AND d.tries = c.tries
    WHERE c.tries % 1 = 0 AND d.failed_at IS NULL AND d.due_at <= clock_timestamp()
    ORDER BY d.tenant, d.run_id FOR UPDATE OF d SKIP LOCKED
  )
  UPDATE distillations d SET tries = tries + 1, due_at = clock_timestamp() + $2::int * interval '1 millisecond'
  FROM mine WHERE d.tenant = mine.tenant AND d.run_id = mine.run_id
  RETURNING d.tenant, d.run_id`

const toKey = ({ tenant, run_id }: RunKey): string => `${tenant}/${run_id}`
const toClaims = (claims: readonly DistillationClaim[]): string =>
  JSON.stringify(claims.map(({ tenant, run_id, tries }) => ({ tenant, run_id, tries })))

/**
 * Claims runs that no worker learns from at present, for `leaseMs`: of the twenty that are due first those that `choose`
 * returns. None: nothing is due, or other workers have it.
 */
export const claimDistillations = async (
  sql: Sql,
  leaseMs: number,
  choose: (due: readonly RunToDistill[]) => readonly RunToDistill[],
): Promise<RunToDistill[]> => {
  const chosen = choose((await sql.query<RunToDistill>(dueStatement)).rows)
  if (chosen.length === 0) return []
  const claimed = await sql.query<RunKey>(claimStatement, [toClaims(chosen), leaseMs])
  const keys = new Set(claimed.rows.map(toKey))
  return chosen.flatMap((run) => (keys.has(toKey(run)) ? [{ ...run, tries: run.tries + 1 }] : []))
}

/**
 * Removes claimed runs of a business from the queue, inside the transaction that writes what was learned. Returns the ids of
 * those that were there: others were claimed by another worker since, or discarded.
 */
export const completeDistillations = async (
  sql: Sql,
  claims: readonly DistillationClaim[],
): Promise<Set<string>> => {
  const { rows } = await sql.query<RunKey>(
    `DELETE FROM distillations d USING json_to_recordset($1::json) AS c(tenant text, run_id text, tries int)
     WHERE c.tries % 1 = 0 AND d.tenant = c.tenant AND d.run_id = c.run_id AND d.tries = c.tries AND d.failed_at IS NULL RETURNING d.run_id`,
    [toClaims(claims)],
  )
  return new Set(rows.map(({ run_id }) => run_id))
}

/** A user's runs, session by session: joined as a whole, a plan from when there were none reads all sessions for each run. */
const runsOfUser = (condition: string): string => `FROM sessions s
  CROSS JOIN LATERAL (SELECT * FROM runs WHERE tenant = $1 AND session_id = s.session_id AND ${condition} ORDER BY turn OFFSET 0) r
  WHERE s.tenant = $1 AND s.user_id = $2`

/** Marks open runs as given up. A run that ends at this moment has its row already: then that one is marked. */
const discardStatement = `
  INSERT INTO distillations (tenant, run_id, failed_at, error)
  SELECT s.tenant, r.run_id, clock_timestamp(), 'given up: its user had something forgotten while it was open'
  ${runsOfUser(`status IN ${openStatusesSql}`)} ORDER BY r.session_id, r.turn
  ON CONFLICT (tenant, run_id) DO UPDATE SET failed_at = excluded.failed_at, error = excluded.error`

/** Runs second, or it would miss a run that ends in between. A worker that is learning finds its claim gone and writes nothing. */
const dropStatement = `
  DELETE FROM distillations WHERE tenant = $1 AND run_id = ANY(ARRAY(
    SELECT run_id FROM distillations WHERE tenant = $1 AND run_id = ANY(ARRAY(
      SELECT r.run_id ${runsOfUser(`status NOT IN ${openStatusesSql}`)})) ORDER BY run_id FOR UPDATE))`

/**
 * From here on nothing is learned from what a user has said so far, in ended and in open runs. The row of an open run
 * exists before its end would insert it. None of the forgotten content is stored for this.
 */
export const discardUserDistillations = async (
  sql: Sql,
  { business, user_id }: MemoryOwner,
): Promise<void> => {
  await sql.query(discardStatement, [business, user_id])
  await sql.query(dropStatement, [business, user_id])
  await cutOffTurns(sql, { business, user_id })
}

/** Nothing is learned from a run that was given up before its end. */
export const skipLearning = (sql: Sql, businessId: string, runId: string): Promise<unknown> =>
  sql.query(
    `INSERT INTO distillations (tenant, run_id, failed_at, error)
     VALUES ($1, $2, clock_timestamp(), 'given up: nothing is learned from what is run again')`,
    [businessId, runId],
  )

type DiscardedRow = { answers: (PersonAnswer | null)[] | null }

/** The user's answers in an open run since it was discarded; null: it was not. */
export const readAnswersSinceDiscard = async (
  sql: Sql,
  business: string,
  runId: string,
): Promise<string[] | null> => {
  const row = await queryOne<DiscardedRow>(
    sql,
    `SELECT (SELECT json_agg(i.answer) FROM input_requests i
       WHERE i.tenant = d.tenant AND i.run_id = d.run_id AND i.answered_at > d.failed_at AND NOT i.secret) AS answers
     FROM distillations d WHERE d.tenant = $1 AND d.run_id = $2 AND d.failed_at IS NOT NULL`,
    [business, runId],
  )
  return (
    row &&
    (row.answers ?? []).flatMap((one) =>
      one?.kind === 'answered'
        ? [typeof one.answer === 'string' ? one.answer : JSON.stringify(one.answer)]
        : [],
    )
  )
}

/** Records a failed attempt: due again later, or given up after the last one. */
export const failDistillation = async (sql: Sql, claim: DistillationClaim, error: string): Promise<void> => {
  await sql.query(
    `UPDATE distillations SET error = $4, due_at = clock_timestamp() + (2 ^ tries) * interval '1 second',
       failed_at = CASE WHEN tries >= $5 THEN clock_timestamp() END
     WHERE tenant = $1 AND run_id = $2 AND tries = $3 AND failed_at IS NULL`,
    [claim.tenant, claim.run_id, claim.tries, error.slice(0, 2000), maxDistillationTries],
  )
}

/** Gives up the runs whose last worker did not report. Deletes given-up rows after a week, but not those of open runs. */
export const dropFailedDistillations = async (sql: Sql): Promise<void> => {
  await sql.query(
    `UPDATE distillations SET failed_at = clock_timestamp(), error = COALESCE(error, 'each worker that claimed it stopped reporting')
     WHERE failed_at IS NULL AND tries >= $1 AND due_at <= clock_timestamp()`,
    [maxDistillationTries],
  )
  await sql.query(
    `DELETE FROM distillations d WHERE failed_at < clock_timestamp() - interval '7 days' AND NOT EXISTS (
       SELECT FROM runs r WHERE r.tenant = d.tenant AND r.run_id = d.run_id AND r.status IN ${openStatusesSql})`,
  )
}
