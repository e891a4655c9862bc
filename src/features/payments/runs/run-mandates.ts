import { forgetAnswer } from '../../../engine/runs/input-answers.ts'
import { createBlobs } from '../../../files/blobs/blobs.ts'
import { queryOne } from '../../../infra/database/database.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import type { Viewed } from '../../keep-with-view.ts'
import { askConsent } from '../consent/consents.ts'
import { addOpenMandate, listUsableMandates } from '../consent/open-mandate-rows.ts'
import { describeLimits, findIssuers } from '../consent/proposals.ts'
import { toQuestion } from '../keys/sealed-texts.ts'
import { createNonce, orderPayment } from '../ledger/orders.ts'
import { parseMoney } from '../mandates/money.ts'
import { createOpenMandates } from '../mandates/v2/open-mandates.ts'
import { newOpenMandateId } from '../ports/ids.ts'
import type { OpenMandateTerms } from '../ports/open-mandate-terms.ts'
import type { OpenMandateLimits, OpenMandates } from '../ports/run-mandates.ref.ts'
import type { PaymentWork } from '../ports/work-hints.ts'
import { chooseMandate } from './choose-mandate.ts'
import {
  consentLifetimeMs,
  createOrderWaits,
  listProviders,
  type RunOfPayments,
  waitForPayment,
} from './run-payments.ts'
import { shareCalls } from './share-calls.ts'

const refuse = (field: string, message: string): never => {
  throw new MasonError('invalid_request', `${field} ${message}`, { remedy: `change ${field}` })
}

/** The limits of terms, whose amounts become minor units. Throws `invalid_request` that names the field. */
const toLimits = (terms: OpenMandateTerms): OpenMandateLimits => {
  const { merchants, items, currency, max_amount, budget, recurrence, method, until } = terms
  const toMinor = (amount: string, field: string): number => {
    const money = parseMoney(amount, currency)
    return 'code' in money
      ? refuse(money.code === 'unknown_currency' ? 'currency' : field, money.message)
      : money.minor
  }
  // the constraint of a recurrence needs that of a budget (AP2.md 1.4)
  if (recurrence && budget === null) refuse('budget', 'is missing: a recurrence needs one')
  const instrument = method ?? 'card'
  return {
    merchants,
    items,
    currency,
    recurrence,
    max_minor: toMinor(max_amount, 'max_amount'),
    budget_minor: budget === null ? null : toMinor(budget, 'budget'),
    instrument: { id: instrument, type: 'card' },
    expires_at: Math.floor(Date.parse(until) / 1000),
  }
}

/** The open mandates of the user of a run: it proposes and orders, and holds no secret. The executor signs, closes and pays. */
export const createRunMandates = (
  sql: Sql,
  { tenant, run_id, user_id }: RunOfPayments,
  audience: string,
  wakeExecutor: (work: PaymentWork) => void,
  registry: Viewed,
): OpenMandates => {
  const waitForOrder = createOrderWaits(wakeExecutor)
  return {
    newId: newOpenMandateId,
    describe: async (terms) =>
      describeLimits(toLimits(terms), terms.wallet, await findIssuers(sql, tenant, terms)),
    propose: (id, terms, provider_id, credential) =>
      waitForPayment(id, async (transaction, { plan_seq, index }) => {
        const limits = toLimits(terms)
        const row = { id, tenant, user_id, run_id, provider_id }
        const answer = { sealed: credential, question: toQuestion(run_id, plan_seq, index) }
        await addOpenMandate(transaction, row, answer, limits.expires_at)
        if (credential !== null) await forgetAnswer(transaction, tenant, run_id, plan_seq, index)
        const { wallet } = terms
        const pair = createOpenMandates(limits)
        const request = { version: '0.2-open' as const, ...pair, ...(wallet && { wallet }) }
        const bound = { tenant, user_id, run_id, payment_id: id, audience, lifetimeMs: consentLifetimeMs }
        await askConsent(transaction, request, bound)
      }),
    // several tools ask at once; without a provider none can be used
    listUsable: shareCalls(async () =>
      (await listProviders(registry, sql, tenant)).length > 0 ? listUsableMandates(sql, tenant, user_id) : [],
    ),
    choose: chooseMandate,
    pay: (open_mandate_id, paymentId, find) =>
      waitForOrder(paymentId, async (transaction, call) => {
        const own = await queryOne(
          transaction,
          'SELECT mandate_id FROM open_mandates WHERE mandate_id = $1 AND tenant = $2 AND user_id = $3',
          [open_mandate_id, tenant, user_id],
        )
        if (!own) throw new MasonError('not_found', `the user has no open mandate "${open_mandate_id}"`)
        const { checkout, route } = await find(createBlobs(transaction, { tenant, run_id }))
        const nonce = await createNonce(transaction, tenant)
        const request = {
          version: '0.2-open' as const,
          open_mandate_id,
          checkout,
          nonce,
          ...(route && { route }),
        }
        await orderPayment(transaction, { tenant, run_id }, call, request, { paymentId })
      }),
  }
}
