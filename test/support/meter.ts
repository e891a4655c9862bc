import { randomBytes } from 'node:crypto'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import { createMeter, type MeterOptions } from '../../src/models/metering/meter.ts'
import type { KeyEntry, ModelEntry, Reservation, Settlement } from '../../src/models/ports/model-ports.ts'
import type { KeyLimits } from '../../src/models/schemas/catalog.ts'
import type { Sql } from '../../src/state/ports/sql.ts'

/** Hands for the meter: vendors, keys and models as rows of the registry, without its API. */

const newId = (kind: string): string => `${kind}_${randomBytes(12).toString('hex')}`

/** Looks for unsettled requests only when a test says so. */
export const openMeter = (database: Sql, options: Partial<MeterOptions> = {}) =>
  createMeter({
    database,
    clock: systemClock,
    log: silentLog,
    bundleMs: 1,
    sweepEveryMs: 3_600_000,
    ...options,
  })

export const addVendor = async (database: Sql, name = newId('vendor')): Promise<string> => {
  const id = newId('ven')
  await database.query(`INSERT INTO vendors (vendor_id, name, status) VALUES ($1, $2, 'active')`, [id, name])
  return id
}

/** A key as the registry's view shows it. */
export const addKey = async (database: Sql, vendorId: string, limits: KeyLimits = {}): Promise<KeyEntry> => {
  const id = newId('key')
  await database.query(
    `INSERT INTO vendor_keys (key_id, vendor_id, label, master_key, wrapped_key, sealed_secret, last_four, limits, status)
     VALUES ($1, $2, $3, 'm', '', '', '1234', $4::json, 'active')`,
    [id, vendorId, `label of ${id}`, JSON.stringify(limits)],
  )
  const { rpm = null, tpm = null, daily_tokens = null, monthly_cost = null } = limits
  return {
    id,
    vendor_id: vendorId,
    label: `label of ${id}`,
    active: true,
    limits: {
      rpm,
      tpm,
      daily_tokens,
      monthly_cost: monthly_cost === null ? null : Math.round(monthly_cost * 1_000_000),
    },
    grants: [],
    secret: null,
    error: null,
  }
}

/** 1 of the currency for a million tokens in, 2 out, 0.1 cached. */
export const prices = { input: 1_000_000, output: 2_000_000, cached_input: 100_000, currency: 'USD' }

export const modelOf = (vendorId: string, more: Partial<ModelEntry> = {}): ModelEntry => ({
  id: 'mod_1',
  name: 'alias',
  vendor: { id: vendorId, name: 'vendor', active: true },
  endpoint: {
    id: 'end_1',
    vendor_id: vendorId,
    name: 'endpoint',
    active: true,
    base_url: 'http://127.0.0.1:1',
    protocol: 'openai',
    categories: [],
    headers: {},
    timeouts: { firstByteMs: 1000, idleMs: 1000, totalMs: 1000 },
    allow_private: true,
  },
  upstream_name: 'upstream',
  category: 'text',
  dialect: 'tools',
  refuses_stop: false,
  continuation: 'none',
  context_window: null,
  max_output: null,
  prices,
  format: null,
  capabilities: [],
  active: true,
  ...more,
})

export const reservationOf = (
  key: KeyEntry | null,
  more: Partial<Reservation> & { tokens?: number; business?: string } = {},
): Reservation => {
  const { tokens = 10, business = 'b', ...rest } = more
  return {
    request_id: newId('req'),
    visit_id: null,
    caller: { business_id: business, user_id: 'u', run_id: null },
    tool: null,
    role: 'planner',
    model: modelOf(key?.vendor_id ?? 'ven_none'),
    key,
    estimate: { prompt_tokens: tokens, completion_tokens: 0 },
    expiresInMs: 60_000,
    ...rest,
  }
}

export const usageOf = (prompt_tokens: number, completion_tokens: number, cached_tokens = 0) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
  cached_tokens,
  reasoning_tokens: 0,
})

export const settlementOf = (more: Partial<Settlement> = {}): Settlement => ({
  status: 'succeeded',
  error_code: null,
  usage: usageOf(7, 3),
  estimate: null,
  ms: 12,
  ...more,
})

export type Spent = { span: string; requests: number; tokens: number; cost_micro: number }

/** What counts for a key now, by span; seconds are summed. */
export const spentOf = async (database: Sql, key: KeyEntry): Promise<Record<string, Spent>> => {
  const { rows } = await database.query<Spent>(
    `SELECT span, sum(requests)::int8 AS requests, sum(tokens)::int8 AS tokens, sum(cost_micro)::int8 AS cost_micro
     FROM key_spending WHERE key_id = $1 GROUP BY span`,
    [key.id],
  )
  return Object.fromEntries(rows.map((row) => [row.span, row]))
}

/** As if so much had been spent then. */
export const spendAt = (
  database: Sql,
  key: KeyEntry,
  span: 'second' | 'day' | 'month',
  ago: string,
  spent: { requests?: number; tokens?: number; cost_micro?: number },
) =>
  database.query(
    `INSERT INTO key_spending (key_id, span, begins_at, requests, tokens, cost_micro)
     VALUES ($1, $2, date_trunc($2, clock_timestamp() - $3::interval, 'UTC'), $4, $5, $6)`,
    [key.id, span, ago, spent.requests ?? 0, spent.tokens ?? 0, spent.cost_micro ?? 0],
  )
