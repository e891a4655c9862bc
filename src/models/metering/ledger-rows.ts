import { queryOne } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { MeteredUsage, Reservation, ReservationResult, Settlement } from '../ports/model-ports.ts'
import { toCostMicro } from './cost.ts'

/** Rows and statements of the meter; its rules are the functions `reserve_usage` and `settle_usage`. Each statement is safe to repeat. */

/** Reserves requests, and returns the result of each. */
export const reserveUsage = async (sql: Sql, rows: readonly ReserveRow[]): Promise<ReservationResult[]> => {
  type Refusal = Extract<ReservationResult, { granted: false }>
  const { rows: refusals } = await sql.query<{ id: string } & Omit<Refusal, 'granted'>>(
    'SELECT id, refused_by AS "limit", retry_after_ms AS "retryAfterMs" FROM reserve_usage($1::json)',
    [JSON.stringify(rows)],
  )
  const refused = new Map(refusals.map(({ id, ...refusal }) => [id, { granted: false as const, ...refusal }]))
  return rows.map(({ request_id }) => refused.get(request_id) ?? { granted: true })
}

/** Writes settlements into the ledger. Returns how many entries are new. */
export const settleUsage = async (sql: Sql, rows: readonly SettleRow[]): Promise<number> => {
  const row = await queryOne<{ entered: number }>(sql, 'SELECT settle_usage($1::json) AS entered', [
    JSON.stringify(rows),
  ])
  return row?.entered ?? 0
}

const maxSweepRows = 500

/** Writes reservations that expired more than `graceMs` ago as lost, at their estimate. Returns how many. */
export const sweepUsage = async (sql: Sql, graceMs: number): Promise<number> => {
  const row = await queryOne<{ entered: number }>(
    sql,
    `SELECT settle_usage(json_agg(json_build_object('request_id', request_id, 'key_id', key_id, 'entry', entry,
       'status', 'lost', 'prompt_tokens', entry->'prompt_tokens', 'completion_tokens', entry->'completion_tokens',
       'total_tokens', tokens, 'cached_tokens', 0, 'reasoning_tokens', 0, 'estimated', true, 'cost_micro', cost_micro,
       'ms', least(2147483647, (extract(epoch FROM clock_timestamp() - reserved_at) * 1000)::bigint)))) AS entered
     FROM (SELECT * FROM usage_reservations WHERE expires_at < clock_timestamp() - $1 * interval '1 ms'
       ORDER BY expires_at LIMIT ${maxSweepRows}) r HAVING count(*) > 0`,
    [graceMs],
  )
  const entered = row?.entered ?? 0
  return entered < maxSweepRows ? entered : entered + (await sweepUsage(sql, graceMs))
}

/** Deletes sums of seconds older than two minutes, and of days older than 40. */
export const dropOldSpending = async (sql: Sql): Promise<void> => {
  await sql.query(
    `DELETE FROM key_spending s USING vendor_keys k WHERE s.key_id = k.key_id
     AND ((s.span = 'second' AND s.begins_at < clock_timestamp() - interval '2 minutes')
       OR (s.span = 'day' AND s.begins_at < clock_timestamp() - interval '40 days'))`,
  )
}

/**
 * The business id of probes by admins in the ledger. No business can have it: ids begin with a letter or digit. See
 * docs/decisions/0016.
 */
export const adminProbeBusinessId = '_admin'

/** ISO 4217's code for no currency: the model had no prices. */
export const noCurrency = 'XXX'

/** The ledger entry, with the estimate: a lost request is written at its reservation. */
const toEntry = ({ caller, role, tool, visit_id, model, estimate }: Reservation) => ({
  tenant: caller.business_id,
  user_id: caller.user_id,
  run_id: caller.run_id,
  token_id: caller.token_id ?? null,
  role,
  tool,
  visit_id,
  vendor_id: model.vendor.id,
  endpoint_id: model.endpoint.id,
  model_id: model.id,
  model_name: model.name,
  upstream_name: model.upstream_name,
  currency: model.prices?.currency ?? noCurrency,
  prompt_tokens: toWholeCount(estimate.prompt_tokens),
  completion_tokens: toWholeCount(estimate.completion_tokens),
})

/**
 * A reservation as an argument of `reserve_usage`. Money is text: JSON numbers are exact only up to 2^53. `forced`: the request is
 * already in flight, so it counts and is never refused.
 */
export const toReserveRow = (reservation: Reservation, forced: boolean) => {
  const entry = toEntry(reservation)
  return {
    request_id: reservation.request_id,
    key_id: reservation.key?.id ?? null,
    entry,
    tokens: entry.prompt_tokens + entry.completion_tokens,
    cost_micro: toCostText(reservation, { ...entry, cached_tokens: 0 }),
    expires_in_ms: toWholeCount(reservation.expiresInMs),
    forced,
  }
}

/** See `toReserveRow`. */
export type ReserveRow = ReturnType<typeof toReserveRow>

/** A settlement as an argument of `settle_usage`. */
export const toSettleRow = (reservation: Reservation, settlement: Settlement) => {
  const usage = toUsage(settlement)
  return {
    request_id: reservation.request_id,
    key_id: reservation.key?.id ?? null,
    entry: toEntry(reservation),
    status: settlement.status,
    error_code: settlement.error_code,
    ...usage,
    estimated: settlement.usage === null && settlement.estimate !== null,
    cost_micro: toCostText(reservation, usage),
    ms: Math.min(toWholeCount(settlement.ms), 2_147_483_647),
  }
}

/** The row that releases the reservation of a request that was not sent. */
export const toReleaseRow = ({ request_id, key_id }: ReserveRow) => ({ request_id, key_id })

/** An argument of `settle_usage`. */
export type SettleRow = ReturnType<typeof toSettleRow | typeof toReleaseRow>

/** The vendor's count, else our estimate of what was sent and received, else zero: the vendor refused the request. */
const toUsage = ({ usage, estimate }: Settlement): MeteredUsage => {
  const prompt_tokens = toWholeCount(usage?.prompt_tokens ?? estimate?.prompt_tokens ?? 0)
  const completion_tokens = toWholeCount(usage?.completion_tokens ?? estimate?.completion_tokens ?? 0)
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: toWholeCount(usage?.total_tokens ?? prompt_tokens + completion_tokens),
    cached_tokens: toWholeCount(usage?.cached_tokens ?? 0),
    reasoning_tokens: toWholeCount(usage?.reasoning_tokens ?? 0),
  }
}

/** More tokens and millionths than any request can have: their sums fit the database's 64 bits. */
const maxTokens = 1_000_000_000_000
const maxMicro = 10n ** 15n

/** A count of a vendor as a whole number from 0 on. */
const toWholeCount = (count: number): number => Math.min(Math.max(0, Math.ceil(count) || 0), maxTokens)

const toCostText = ({ model }: Reservation, usage: Parameters<typeof toCostMicro>[1]): string => {
  const cost = toCostMicro(model.prices, usage)
  return String(cost < maxMicro ? cost : maxMicro)
}
