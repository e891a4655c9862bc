import { copyBlobHolds } from '../../files/blobs/blobs.ts'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { newAttemptId, newRunId, newSessionId } from '../../infra/lib/ids.ts'
import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createFieldsError } from '../../state/resource-schema.ts'
import { openStatuses, toPublicStatusSql } from '../../state/run-status.ts'
import type { SessionView } from '../../state/run-view.ts'
import type { ActionBody, Usage } from '../../state/runtime-state.ts'
import { sumUsage } from '../../state/token-usage.ts'
import { writeRunEnd } from '../runs/settlement.ts'
import { readSession } from './session-queries.ts'

/** A run and its copy in the fork. `cut`: it goes on after the action, so its copy ends there. */
type ForkedRun = Usage & { old_id: string; new_id: string; cut: boolean }

type RunRow = Usage & { run_id: string; status: string; first_seq: number | null; next_seq: number | null }

/**
 * Copies a session through an action into a new one of the same user; a run that goes on after the action ends there as
 * cancelled. Null: no such session. `invalid_request`: it has no such action; `in_use`: the run of the action has not ended.
 */
export const forkSession = (
  database: Database,
  businessId: string,
  sessionId: string,
  actionId: number,
): Promise<SessionView | null> =>
  database.asBusiness(businessId, async (sql) => {
    // locked, so that it is not deleted while it is copied
    const session = await queryOne<{ actions: number }>(
      sql,
      `SELECT (SELECT COALESCE(max(seq), 0) FROM actions a WHERE a.tenant = s.tenant AND a.session_id = s.session_id) AS actions
       FROM sessions s WHERE tenant = $1 AND session_id = $2 FOR SHARE`,
      [businessId, sessionId],
    )
    if (!session) return null
    const at = await queryOne<{ turn: number; run_id: string; status: string }>(
      sql,
      `SELECT a.turn, a.run_id, ${toPublicStatusSql('r.status')} AS status FROM actions a JOIN runs r USING (tenant, run_id)
       WHERE a.tenant = $1 AND a.session_id = $2 AND a.seq = $3::bigint`,
      [businessId, sessionId, actionId],
    )
    if (!at) throw createNoActionError(sessionId, session.actions)
    if (isOpen(at.status)) throw createInUseError(at, actionId)
    const { id: forkId, cut } = await copySession(sql, businessId, sessionId, { turn: at.turn, actionId })
    const end = { tenant: businessId, session_id: forkId, turn: at.turn, epoch: 0, seq: actionId + 1 }
    const reason = `forked at action ${actionId}`
    if (cut) await writeRunEnd(sql, { ...end, run_id: cut.new_id }, { status: 'cancelled', reason })
    const fork = await readSession(sql, businessId, forkId)
    if (!fork) throw new MasonError('internal', 'the fork was not written')
    return fork
  })

/** Copies a session through a turn and an action of it into a new one. `cut`: a run that goes on after it, without its end. */
export const copySession = async (
  sql: Sql,
  businessId: string,
  sessionId: string,
  { turn, actionId }: { turn: number; actionId: number },
): Promise<{ id: string; cut: ForkedRun | undefined }> => {
  const parts = await readForkedRuns(sql, businessId, sessionId, turn, actionId)
  const id = newSessionId()
  const cut = parts.find((part) => part.cut)
  const json = JSON.stringify(parts)
  await sql.query(copySessionRow, [businessId, sessionId, id, turn, cut ? turn - 1 : turn])
  await sql.query(copyRuns, [businessId, sessionId, id, json, actionId])
  for (const statement of [copyRequests, copyMetadata, copyResults, copyFailures, copyModels])
    await sql.query(statement, [businessId, json])
  await copyActions(sql, businessId, { from: sessionId, to: id }, parts, actionId)
  await copyBlobHolds(sql, businessId, sessionId, id)
  return { id, cut }
}

/** Copies the actions of some runs, through an action, into a session that has the new ones. */
export const copyActions = (
  sql: Sql,
  businessId: string,
  { from, to }: { from: string; to: string },
  runs: readonly Pick<ForkedRun, 'old_id' | 'new_id'>[],
  actionId: number,
): Promise<unknown> =>
  sql.query(copyActionsStatement, [businessId, from, to, actionId, newAttemptId(), JSON.stringify(runs)])

const createNoActionError = (sessionId: string, actions: number): MasonError => {
  const range = actions === 0 ? 'it has none yet' : `its actions are 1 to ${actions}`
  return createFieldsError({
    pointer: '/action_id',
    detail: `is not an action of session "${sessionId}"; ${range}`,
  })
}

const isOpen = (status: string): boolean => openStatuses.some((open) => open === status)

const createInUseError = (
  at: { turn: number; run_id: string; status: string },
  actionId: number,
): MasonError =>
  new MasonError('in_use', `action ${actionId} belongs to turn ${at.turn}, whose run has not ended`, {
    remedy: `wait for run "${at.run_id}" to end, or cancel it; or fork at an action of an earlier turn`,
    detail: { users: [{ kind: 'run', id: at.run_id, name: `turn ${at.turn}, ${at.status}` }] },
  })

const readForkedRuns = async (
  sql: Sql,
  businessId: string,
  sessionId: string,
  turn: number,
  actionId: number,
): Promise<ForkedRun[]> => {
  const runs = await sql.query<RunRow>(
    `SELECT run_id, status, first_seq, next_seq, prompt_tokens, completion_tokens, total_tokens
     FROM runs WHERE tenant = $1 AND session_id = $2 AND turn <= $3 ORDER BY turn`,
    [businessId, sessionId, turn],
  )
  const parts: ForkedRun[] = []
  for (const { run_id, status, first_seq, next_seq, ...usage } of runs.rows) {
    const cut = next_seq !== null && (isOpen(status) || next_seq - 1 > actionId)
    const used = cut ? await usageUpTo(sql, businessId, sessionId, first_seq ?? 1, actionId) : usage
    parts.push({ ...used, old_id: run_id, new_id: newRunId(), cut })
  }
  return parts
}

/** What the actions of a session in a range used. */
export const usageUpTo = async (
  sql: Sql,
  businessId: string,
  sessionId: string,
  first: number,
  last: number,
): Promise<Usage> => {
  const { rows } = await sql.query<{ body: ActionBody }>(
    'SELECT body FROM actions WHERE tenant = $1 AND session_id = $2 AND seq BETWEEN $3 AND $4',
    [businessId, sessionId, first, last],
  )
  return sumUsage(rows.map(({ body }) => body.usage))
}

/** A summary that covers more than the fork is written again. */
const copySessionRow = `
  INSERT INTO sessions (tenant, session_id, user_id, turns, summary, summary_turn)
  SELECT tenant, $3, user_id, $4, CASE WHEN fits THEN summary ELSE '' END, CASE WHEN fits THEN summary_turn ELSE 0 END
  FROM (SELECT *, summary_turn <= $5::int AS fits FROM sessions WHERE tenant = $1 AND session_id = $2) s`

const forkedRunsSql = `json_to_recordset($2::json) AS p(old_id text, new_id text, cut boolean)`

const copyRuns = `
  INSERT INTO runs (tenant, run_id, session_id, turn, parent_run_id, graph_version, status, finish_reason, created_at, expires_at,
    started_at, ended_at, first_seq, next_seq, worked_ms, prompt_tokens, completion_tokens, total_tokens)
  SELECT r.tenant, p.new_id, $3, r.turn, r.run_id, r.graph_version, CASE WHEN p.cut THEN 'cancelled' ELSE r.status END,
    CASE WHEN NOT p.cut THEN r.finish_reason END, r.created_at, r.expires_at, r.started_at,
    CASE WHEN p.cut THEN clock_timestamp() ELSE r.ended_at END, r.first_seq, CASE WHEN p.cut THEN $5::int + 2 ELSE r.next_seq END,
    r.worked_ms, p.prompt_tokens, p.completion_tokens, p.total_tokens
  FROM runs r JOIN json_to_recordset($4::json) AS p(old_id text, new_id text, cut boolean, prompt_tokens bigint, completion_tokens bigint, total_tokens bigint)
    ON p.old_id = r.run_id WHERE r.tenant = $1 AND r.session_id = $2`

const copyRequests = `
  INSERT INTO run_requests (tenant, run_id, user_id, request, metadata)
  SELECT q.tenant, p.new_id, q.user_id, q.request, q.metadata FROM run_requests q JOIN ${forkedRunsSql} ON p.old_id = q.run_id WHERE q.tenant = $1`

const copyMetadata = `
  INSERT INTO run_metadata (tenant, run_id, entry, created_at)
  SELECT m.tenant, p.new_id, m.entry, m.created_at FROM run_metadata m JOIN ${forkedRunsSql} ON p.old_id = m.run_id WHERE m.tenant = $1`

const copyResults = `
  INSERT INTO run_results (tenant, run_id, result)
  SELECT o.tenant, p.new_id, o.result FROM run_results o JOIN ${forkedRunsSql} ON p.old_id = o.run_id WHERE o.tenant = $1 AND NOT p.cut`

const copyFailures = `
  INSERT INTO run_failures (tenant, run_id, error, node, created_at)
  SELECT f.tenant, p.new_id, f.error, f.node, f.created_at FROM run_failures f JOIN ${forkedRunsSql} ON p.old_id = f.run_id WHERE f.tenant = $1 AND NOT p.cut`

const copyModels = `
  INSERT INTO run_models (tenant, run_id, model, created_at)
  SELECT m.tenant, p.new_id, m.model, m.created_at FROM run_models m JOIN ${forkedRunsSql} ON p.old_id = m.run_id WHERE m.tenant = $1`

const copyActionsStatement = `
  INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, created_at, body, patch, ms, worker, prompt_sha256)
  SELECT a.tenant, $3, a.seq, p.new_id, a.turn, 0, $5 || '-' || a.seq, a.created_at, a.body, a.patch, a.ms, a.worker, a.prompt_sha256
  FROM actions a JOIN json_to_recordset($6::json) AS p(old_id text, new_id text) ON p.old_id = a.run_id
  WHERE a.tenant = $1 AND a.session_id = $2 AND a.seq <= $4`
