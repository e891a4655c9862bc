import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports.ts'
import type { SessionView } from '../../state/run-view.ts'
import type { ActionBody, Usage } from '../../state/runtime-state.ts'
import { sumUsage } from '../../state/usage.ts'
import { type Database, one } from '../database/database.ts'
import { newAttemptId, newRunId, newSessionId } from '../ids.ts'
import { endRun } from '../runs/settle.ts'
import { copyHolds } from './blobs.ts'
import { readSession } from './views.ts'

/** A run and what becomes of it in the fork. `cut`: it goes on after the action, so the fork ends it there. */
type Part = Usage & { old_id: string; new_id: string; cut: boolean }

type RunRow = Usage & { run_id: string; status: string; first_seq: number | null; next_seq: number | null }

/**
 * A new session of the same user that holds everything up to an action; a run that the action cuts ends there as
 * cancelled. Null: no such session. `invalid_request`: it has no such action; `in_use`: the action's run has not ended.
 */
export const forkSession = (
  database: Database,
  tenant: string,
  sessionId: string,
  actionId: number,
): Promise<SessionView | null> =>
  database.asBusiness(tenant, async (sql) => {
    // nobody deletes it while it is copied
    const found = await one<{ actions: number }>(
      sql,
      `SELECT (SELECT COALESCE(max(seq), 0) FROM actions a WHERE a.tenant = s.tenant AND a.session_id = s.session_id) AS actions
       FROM sessions s WHERE tenant = $1 AND session_id = $2 FOR SHARE`,
      [tenant, sessionId],
    )
    if (!found) return null
    const at = await one<{ turn: number; run_id: string; status: string }>(
      sql,
      `SELECT a.turn, a.run_id, r.status FROM actions a JOIN runs r USING (tenant, run_id)
       WHERE a.tenant = $1 AND a.session_id = $2 AND a.seq = $3::bigint`,
      [tenant, sessionId, actionId],
    )
    if (!at) throw noSuchAction(sessionId, actionId, found.actions)
    if (isOpen(at.status)) throw stillOpen(at, actionId)
    const parts = await readParts(sql, tenant, sessionId, at.turn, actionId)
    const forkId = newSessionId()
    await copy(sql, { tenant, sessionId, forkId, actionId, turn: at.turn, parts })
    const cut = parts.find((part) => part.cut)
    if (cut)
      await endRun(
        sql,
        { tenant, run_id: cut.new_id, session_id: forkId, turn: at.turn, epoch: 0, seq: actionId + 1 },
        { status: 'cancelled', reason: `the fork was made at action ${actionId}` },
      )
    const fork = await readSession(sql, tenant, forkId)
    if (!fork) throw new MasonError('internal', 'the fork was not written')
    return fork
  })

const noSuchAction = (sessionId: string, actionId: number, actions: number): MasonError => {
  const there = actions === 0 ? 'it has none yet' : `its actions are 1 to ${actions}`
  return new MasonError(
    'invalid_request',
    `/action_id: session "${sessionId}" has no action ${actionId}; ${there}`,
    {
      detail: {
        errors: [{ pointer: '/action_id', detail: `is no action of the session; ${there}` }],
      },
    },
  )
}

const isOpen = (status: string): boolean =>
  status === 'queued' || status === 'running' || status === 'input_required'

const stillOpen = (at: { turn: number; run_id: string; status: string }, actionId: number): MasonError =>
  new MasonError('in_use', `action ${actionId} belongs to turn ${at.turn}, whose run has not ended`, {
    remedy: `wait for run "${at.run_id}" to end, or cancel it; or fork at an action of an earlier turn`,
    detail: { users: [{ kind: 'run', id: at.run_id, name: `turn ${at.turn}, ${at.status}` }] },
  })

const readParts = async (
  sql: Sql,
  tenant: string,
  sessionId: string,
  turn: number,
  actionId: number,
): Promise<Part[]> => {
  const runs = await sql.query<RunRow>(
    `SELECT run_id, status, first_seq, next_seq, prompt_tokens, completion_tokens, total_tokens
     FROM runs WHERE tenant = $1 AND session_id = $2 AND turn <= $3 ORDER BY turn`,
    [tenant, sessionId, turn],
  )
  const parts: Part[] = []
  for (const { run_id, status, first_seq, next_seq, ...usage } of runs.rows) {
    const cut = next_seq !== null && (isOpen(status) || next_seq - 1 > actionId)
    const used = cut ? await usageUpTo(sql, tenant, sessionId, first_seq ?? 1, actionId) : usage
    parts.push({ ...used, old_id: run_id, new_id: newRunId(), cut })
  }
  return parts
}

const usageUpTo = async (
  sql: Sql,
  tenant: string,
  sessionId: string,
  first: number,
  last: number,
): Promise<Usage> => {
  const { rows } = await sql.query<{ body: ActionBody }>(
    'SELECT body FROM actions WHERE tenant = $1 AND session_id = $2 AND seq BETWEEN $3 AND $4',
    [tenant, sessionId, first, last],
  )
  return sumUsage(rows.map(({ body }) => body.usage))
}

type Copy = {
  tenant: string
  sessionId: string
  forkId: string
  actionId: number
  turn: number
  parts: Part[]
}

const copy = async (sql: Sql, { tenant, sessionId, forkId, actionId, turn, parts }: Copy): Promise<void> => {
  const json = JSON.stringify(parts)
  await sql.query(
    `INSERT INTO sessions (tenant, session_id, user_id, turns, summary, summary_turn)
     SELECT tenant, $3, user_id, $4, CASE WHEN fits THEN summary ELSE '' END, CASE WHEN fits THEN summary_turn ELSE 0 END
     FROM (SELECT *, summary_turn <= $5::int AS fits FROM sessions WHERE tenant = $1 AND session_id = $2) s`,
    // a summary that tells of more than the fork holds is made anew
    [tenant, sessionId, forkId, turn, parts.some(({ cut }) => cut) ? turn - 1 : turn],
  )
  await sql.query(copyRuns, [tenant, sessionId, forkId, json, actionId])
  await sql.query(copyRequests, [tenant, json])
  await sql.query(copyResults, [tenant, json])
  await sql.query(copyActions, [tenant, sessionId, forkId, actionId, newAttemptId(), json])
  await copyHolds(sql, tenant, sessionId, forkId)
}

const partRows = `json_to_recordset($2::json) AS p(old_id text, new_id text, cut boolean)`

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
  SELECT q.tenant, p.new_id, q.user_id, q.request, q.metadata FROM run_requests q JOIN ${partRows} ON p.old_id = q.run_id WHERE q.tenant = $1`

const copyResults = `
  INSERT INTO run_results (tenant, run_id, result)
  SELECT o.tenant, p.new_id, o.result FROM run_results o JOIN ${partRows} ON p.old_id = o.run_id WHERE o.tenant = $1 AND NOT p.cut`

const copyActions = `
  INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, created_at, body, patch)
  SELECT a.tenant, $3, a.seq, p.new_id, a.turn, 0, $5 || '-' || a.seq, a.created_at, a.body, a.patch
  FROM actions a JOIN json_to_recordset($6::json) AS p(old_id text, new_id text) ON p.old_id = a.run_id
  WHERE a.tenant = $1 AND a.session_id = $2 AND a.seq <= $4`
