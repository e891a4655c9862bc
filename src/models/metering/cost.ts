import { toMoney } from '../../infra/lib/money.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { Meter, MeteredUsage, MicroPrices } from '../ports/model-ports.ts'

/**
 * Reads what a run has cost so far from the ledger, in units of the currency: all its requests on all processes, also
 * failed and estimated ones. Currencies are not added up: the highest of their sums counts. Models without prices are free.
 */
export const createRunCostReader =
  (database: Sql, meter: Pick<Meter, 'flush'>) =>
  async (runId: string): Promise<number> => {
    // what this process just settled may not be in the ledger yet
    await meter.flush()
    const { rows } = await database.query<{ micro: string }>(
      `SELECT coalesce(max(s.cost), 0)::text AS micro
       FROM (SELECT sum(cost_micro) AS cost FROM usage_ledger WHERE run_id = $1 GROUP BY currency) s`,
      [runId],
    )
    return toMoney(rows[0]?.micro ?? '0')
  }

const million = 1_000_000n

/**
 * Millionths of the currency: the sum of tokens times their prices, rounded half up once. Cached tokens of the prompt
 * cost `cached_input`; without prices the cost is 0.
 */
export const toCostMicro = (
  prices: MicroPrices | null,
  usage: Pick<MeteredUsage, 'prompt_tokens' | 'completion_tokens' | 'cached_tokens'>,
): bigint => {
  if (!prices) return 0n
  const cached = Math.min(usage.cached_tokens, usage.prompt_tokens)
  const sum =
    BigInt(usage.prompt_tokens - cached) * BigInt(prices.input) +
    BigInt(cached) * BigInt(prices.cached_input) +
    BigInt(usage.completion_tokens) * BigInt(prices.output)
  return (sum + million / 2n) / million
}
