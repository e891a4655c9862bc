import {
  advanceTurnsRead,
  endTurnsRead,
  findUnreadTurns,
  type TurnsRead,
} from '../../../accounts/turns-read.ts'
import type { Database } from '../../../infra/database/database.ts'
import { readableJson } from '../../../infra/database/pagination.ts'
import { isMasonError } from '../../../state/errors.ts'
import { estimateTokens } from '../../../state/text/tokens.ts'
import { hashSpace } from '../policy/hash-embedding.ts'
import { holdSession, lockUser } from './remember.ts'
import { type TurnRecord, writeTurns } from './turns.ts'
import { asUser } from './user-scope.ts'

/** Whether a run repeats one that completed, as those of a fork and retries do: their turn counts once. */
export const isRepetitionSql = `EXISTS (SELECT FROM runs p WHERE p.tenant = r.tenant AND p.run_id = r.parent_run_id AND p.status = 'completed')`

/** The completed turns of a session that were begun since its user last had something forgotten. */
const turnsStatement = `
  SELECT r.session_id, r.turn, ${readableJson('q.request')}->>'prompt' AS prompt,
    ${readableJson('o.result')}->>'answer' AS answer, r.ended_at AS said_at
  FROM runs r JOIN run_requests q USING (tenant, run_id) LEFT JOIN run_results o USING (tenant, run_id)
  WHERE r.tenant = $1 AND r.session_id = $2 AND r.status = 'completed' AND COALESCE(r.finish_reason, '') NOT IN ('length', 'content_filter')
    AND NOT ${isRepetitionSql}
    AND NOT EXISTS (SELECT FROM distillations d WHERE d.tenant = r.tenant AND d.run_id = r.run_id)
    AND r.created_at >= COALESCE((SELECT said_before FROM turn_cutoffs WHERE tenant = $1 AND user_id = $3), '-infinity')
  ORDER BY r.turn`

/** How many sessions of a business a pass reads. */
const sessionsAPass = 20

/**
 * Reads turns that ended before recall was on, of each business some sessions; `maxTokens`: what may be embedded of them an
 * hour and a business. Several workers may read at once.
 */
export const readTurnBacklog = async (
  database: Database,
  space: string,
  maxTokens: number,
  signal: AbortSignal,
): Promise<void> => {
  const done = new Set<string>()
  while (!signal.aborted) {
    const max = space === hashSpace ? Number.MAX_SAFE_INTEGER : maxTokens
    const backlog = await findUnreadTurns(database, max, done)
    if (!backlog) return
    done.add(backlog.tenant)
    await readSessions(database, backlog)
  }
}

const readSessions = async (database: Database, { tenant, after_session }: TurnsRead): Promise<void> => {
  const { rows } = await database.query<{ session_id: string; user_id: string }>(
    `SELECT session_id, user_id FROM sessions WHERE tenant = $1 AND session_id > $2 ORDER BY session_id LIMIT ${sessionsAPass}`,
    [tenant, after_session],
  )
  for (const { session_id, user_id } of rows) {
    const owner = { business: tenant, user_id }
    const tokens = await asUser(database, owner, async (sql) => {
      await lockUser(sql, owner)
      await holdSession(sql, owner, { session_id })
      const { rows: turns } = await sql.query<TurnRecord>(turnsStatement, [tenant, session_id, user_id])
      let tokens = 0
      for (const turn of turns)
        for (const text of await writeTurns(sql, owner, [turn])) tokens += estimateTokens(text)
      return tokens
    }).catch((error: unknown) => {
      // it was deleted meanwhile
      if (isMasonError(error, 'lease_lost')) return 0
      throw error
    })
    await advanceTurnsRead(database, tenant, session_id, tokens)
  }
  if (rows.length < sessionsAPass)
    await endTurnsRead(database, tenant, rows.at(-1)?.session_id ?? after_session)
}
