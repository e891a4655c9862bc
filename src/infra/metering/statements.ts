import type { Sql } from '../../state/ports.ts'
import type { Reserved } from '../models/ports.ts'
import type { ReserveRow, SettleRow } from './rows.ts'

/** The statements of the meter; the rules stand in the functions of migration 0003. Each is safe to repeat. */

export type Refusal = Extract<Reserved, { granted: false }>

/** The requests that were refused, by id; all others are reserved. */
export const reserveUsage = async (
  sql: Sql,
  rows: readonly ReserveRow[],
): Promise<ReadonlyMap<string, Refusal>> => {
  const answer = await sql.query<{ id: string; refused_by: Refusal['limit']; retry_after_ms: number }>(
    'SELECT id, refused_by, retry_after_ms FROM reserve_usage($1::json)',
    [JSON.stringify(rows)],
  )
  return new Map(
    answer.rows.map(({ id, refused_by, retry_after_ms }) => [
      id,
      { granted: false, limit: refused_by, retryAfterMs: retry_after_ms },
    ]),
  )
}

/** Gives how many were entered into the ledger now. */
export const settleUsage = async (sql: Sql, rows: readonly SettleRow[]): Promise<number> => {
  const answer = await sql.query<{ entered: number }>('SELECT settle_usage($1::json) AS entered', [
    JSON.stringify(rows),
  ])
  return answer.rows[0]?.entered ?? 0
}

const mostAtOnce = 500

/** Enters reservations that outlived their time by `graceMs` as lost, at what was reserved. Gives how many. */
export const sweepUsage = async (sql: Sql, graceMs: number): Promise<number> => {
  const answer = await sql.query<{ entered: number }>(
    `SELECT settle_usage(json_agg(json_build_object('request_id', request_id, 'key_id', key_id, 'entry', entry,
       'status', 'lost', 'prompt_tokens', entry->'prompt_tokens', 'completion_tokens', entry->'completion_tokens',
       'total_tokens', tokens, 'cached_tokens', 0, 'reasoning_tokens', 0, 'estimated', true, 'cost_micro', cost_micro,
       'ms', least(2147483647, (extract(epoch FROM clock_timestamp() - reserved_at) * 1000)::bigint)))) AS entered
     FROM (SELECT * FROM usage_reservations WHERE expires_at < clock_timestamp() - $1 * interval '1 ms'
       ORDER BY expires_at LIMIT ${mostAtOnce}) r`,
    [graceMs],
  )
  const entered = answer.rows[0]?.entered ?? 0
  return entered < mostAtOnce ? entered : entered + (await sweepUsage(sql, graceMs))
}

/** Lets go of seconds that no minute holds any more, and of days long past. */
export const dropOldSpending = async (sql: Sql): Promise<void> => {
  await sql.query(
    `DELETE FROM key_spending s USING vendor_keys k WHERE s.key_id = k.key_id
     AND ((s.span = 'second' AND s.begins_at < clock_timestamp() - interval '2 minutes')
       OR (s.span = 'day' AND s.begins_at < clock_timestamp() - interval '40 days'))`,
  )
}
