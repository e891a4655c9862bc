import type { MeteredUsage, Reservation, Settlement } from '../models/ports.ts'
import { costMicro } from './cost.ts'

/** ISO 4217's name for no currency: the model had no prices. */
export const noCurrency = 'XXX'

/** What `reserve_usage` takes. Money as text: JSON numbers end at 2^53. */
export type ReserveRow = {
  request_id: string
  key_id: string | null
  entry: ReturnType<typeof entryOf>
  tokens: number
  cost_micro: string
  expires_in_ms: number
  /** The request is on its way already: it counts, and is never refused. */
  forced: boolean
}

/** What `settle_usage` takes. Without `status` the request was never made. */
export type SettleRow = {
  request_id: string
  key_id: string | null
  entry?: ReturnType<typeof entryOf>
  status?: Settlement['status']
  error_code?: string | null
  prompt_tokens?: number
  completion_tokens?: number
  total_tokens?: number
  cached_tokens?: number
  reasoning_tokens?: number
  estimated?: boolean
  cost_micro?: string
  ms?: number
}

/** Who asked for what; with the estimate, so that a request that got lost can be entered at what was reserved. */
const entryOf = ({ caller, role, model, estimate }: Reservation) => ({
  tenant: caller.business_id,
  user_id: caller.user_id,
  run_id: caller.run_id,
  role,
  vendor_id: model.vendor.id,
  endpoint_id: model.endpoint.id,
  model_id: model.id,
  model_name: model.name,
  upstream_name: model.upstream_name,
  currency: model.prices?.currency ?? noCurrency,
  prompt_tokens: whole(estimate.prompt_tokens),
  completion_tokens: whole(estimate.completion_tokens),
})

export const reserveRowOf = (reservation: Reservation, forced: boolean): ReserveRow => {
  const entry = entryOf(reservation)
  return {
    request_id: reservation.request_id,
    key_id: reservation.key?.id ?? null,
    entry,
    tokens: entry.prompt_tokens + entry.completion_tokens,
    cost_micro: costOf(reservation, { ...entry, cached_tokens: 0 }),
    expires_in_ms: whole(reservation.expiresInMs),
    forced,
  }
}

export const settleRowOf = (reservation: Reservation, settlement: Settlement): SettleRow => {
  const usage = usageOf(settlement)
  return {
    request_id: reservation.request_id,
    key_id: reservation.key?.id ?? null,
    entry: entryOf(reservation),
    status: settlement.status,
    error_code: settlement.error_code,
    ...usage,
    estimated: settlement.usage === null && settlement.estimate !== null,
    cost_micro: costOf(reservation, usage),
    ms: Math.min(whole(settlement.ms), 2_147_483_647),
  }
}

/** Takes the reservation back of a request that was not made. */
export const forgetRow = ({ request_id, key_id }: Pick<ReserveRow, 'request_id' | 'key_id'>): SettleRow => ({
  request_id,
  key_id,
})

/** The vendor's own count, else ours of what went out and came in, else nothing: it was refused before it began. */
const usageOf = ({ usage, estimate }: Settlement): MeteredUsage => {
  const prompt_tokens = whole(usage?.prompt_tokens ?? estimate?.prompt_tokens ?? 0)
  const completion_tokens = whole(usage?.completion_tokens ?? estimate?.completion_tokens ?? 0)
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: whole(usage?.total_tokens ?? prompt_tokens + completion_tokens),
    cached_tokens: whole(usage?.cached_tokens ?? 0),
    reasoning_tokens: whole(usage?.reasoning_tokens ?? 0),
  }
}

/** More tokens, and more millionths, than any request can have: sums of them stay within the database's 64 bits. */
const mostTokens = 1_000_000_000_000
const mostMicro = 10n ** 15n

/** Counts come from vendors too: never below zero, never a fraction. */
const whole = (count: number): number => Math.min(Math.max(0, Math.ceil(count) || 0), mostTokens)

const costOf = ({ model }: Reservation, usage: Parameters<typeof costMicro>[1]): string => {
  const cost = costMicro(model.prices, usage)
  return String(cost < mostMicro ? cost : mostMicro)
}
