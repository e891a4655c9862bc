import { queryOne } from '../infra/database/database.ts'
import type { Sql } from '../state/ports/sql.ts'

/** Up to which session the turns of a business were read, which ended before recall was on. */
export type TurnsRead = { tenant: string; after_session: string }

/** A business that has not read all sessions and has not used up the tokens of this hour. */
const nextStatement = `
  UPDATE businesses b SET turns_read_hour = date_trunc('hour', clock_timestamp()),
    turns_read_tokens = CASE WHEN b.turns_read_hour = date_trunc('hour', clock_timestamp()) THEN b.turns_read_tokens ELSE 0 END
  FROM (
    SELECT tenant FROM businesses WHERE turns_read_to IS NOT NULL AND recall AND learning
      AND (turns_read_tokens < $1 OR turns_read_hour < date_trunc('hour', clock_timestamp()))
      AND tenant NOT IN (SELECT json_array_elements_text($2::json)) ORDER BY tenant LIMIT 1
  ) next WHERE b.tenant = next.tenant RETURNING b.tenant, b.turns_read_to AS after_session`

/** The next business with turns to read, other than `done`; null: there is none, or each has used up `maxTokens` this hour. */
export const findUnreadTurns = (
  sql: Sql,
  maxTokens: number,
  done: Iterable<string>,
): Promise<TurnsRead | null> => queryOne(sql, nextStatement, [maxTokens, JSON.stringify([...done])])

/** The turns up to this session are read, for so many tokens. */
export const advanceTurnsRead = (
  sql: Sql,
  tenant: string,
  sessionId: string,
  tokens: number,
): Promise<unknown> =>
  sql.query(
    'UPDATE businesses SET turns_read_to = $2, turns_read_tokens = turns_read_tokens + $3 WHERE tenant = $1 AND turns_read_to < $2',
    [tenant, sessionId, tokens],
  )

/** All turns are read, up to this session. */
export const endTurnsRead = (sql: Sql, tenant: string, sessionId: string): Promise<unknown> =>
  sql.query('UPDATE businesses SET turns_read_to = NULL WHERE tenant = $1 AND turns_read_to = $2', [
    tenant,
    sessionId,
  ])
