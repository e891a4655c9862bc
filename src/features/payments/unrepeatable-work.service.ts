import {
  runLineSql,
  type UnrepeatableCall,
  type UnrepeatableWork,
} from '../../engine/sessions/repeated-effects.ts'
import { MasonError } from '../../state/errors.ts'
import { unrepeatableWorkRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'

/** The calls that ordered a payment, but for what moved no money. */
const callsStatement = `WITH RECURSIVE ${runLineSql}
  SELECT w.run_id, w.plan_seq, w.call_index FROM line JOIN waits w ON w.tenant = $1 AND w.run_id = line.run_id AND w.kind = 'payment'
    LEFT JOIN payments p ON p.payment_id = w.ref_id WHERE p.status IS NULL OR p.status NOT IN ('declined', 'released')
  UNION SELECT p.run_id, p.plan_seq, p.call_index FROM line JOIN payments p ON p.tenant = $1 AND p.run_id = line.run_id
    WHERE p.status NOT IN ('declined', 'released')`

const unrepeatablePayments: UnrepeatableWork = {
  listCalls: async (sql, ...run) => (await sql.query<UnrepeatableCall>(callsStatement, run)).rows,
  toError: (runId) =>
    new MasonError('has_payments', `run "${runId}" has paid, and a payment is never repeated`, {
      remedy: 'submit a new run, in which the user approves a new payment',
    }),
}

export default defineService({ provides: unrepeatableWorkRef, needs: {}, start: () => unrepeatablePayments })
