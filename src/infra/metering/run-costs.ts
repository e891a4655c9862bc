import type { Sql } from '../../state/ports.ts'
import type { Meter } from '../models/ports.ts'
import { moneyOf } from './cost.ts'

/**
 * What a run has cost so far, as people write money, out of the ledger: all its requests on whichever process, failed and
 * estimated ones too. Currencies are never added up: it is the highest of their sums. Models without prices cost nothing.
 */
export const createRunCosts =
  (database: Sql, meter: Pick<Meter, 'flush'>) =>
  async (runId: string): Promise<number> => {
    // what this process settled just now may still be on its way
    await meter.flush()
    const { rows } = await database.query<{ micro: string }>(
      `SELECT coalesce(max(s.cost), 0)::text AS micro
       FROM (SELECT sum(cost_micro) AS cost FROM usage_ledger WHERE run_id = $1 GROUP BY currency) s`,
      [runId],
    )
    return moneyOf(BigInt(rows[0]?.micro ?? 0))
  }
