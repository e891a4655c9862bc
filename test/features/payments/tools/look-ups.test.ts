import { expect, test } from 'vitest'
import { createRunMandates } from '../../../../src/features/payments/runs/run-mandates.ts'
import { createRunPayments } from '../../../../src/features/payments/runs/run-payments.ts'
import initiatePayment from '../../../../src/features/payments/tools/initiate-payment.tool.ts'
import payByOpenMandate from '../../../../src/features/payments/tools/pay-by-open-mandate.tool.ts'
import requestUserAuthorization from '../../../../src/features/payments/tools/request-user-authorization.tool.ts'
import sendPaymentMandate from '../../../../src/features/payments/tools/send-payment-mandate.tool.ts'
import type { AnyTool } from '../../../../src/graph/definitions.ts'

const run = { tenant: 'default', run_id: 'run_1', user_id: 'ann' }
const purchase = {
  ...{ payment_id: 'pay_1', cart_action: 4, cart_id: 'cart_1', method: null, provider_id: 'prv_1' },
  method_action: 5,
}

/** What a visit of a tool leaves whose wait has ended; the results of the run cannot be read. */
const visitAfterWait = async (tool: AnyTool, input: object, status: string) => {
  const state = {
    get action_history(): never {
      throw new Error('it was known already')
    },
  }
  const context = {
    call: { input },
    payments: createRunPayments({} as never, run, 'mason', () => {}, { view: {} }),
    mandates: createRunMandates({} as never, run, 'mason', () => {}, { view: {} }),
    blobs: {},
    wait: async () => ({ status, message: 'so it ended' }),
    checkpoint: async (draft: object) => draft,
  }
  return tool.run(state as never, context as never, new AbortController().signal)
}

test('after what it waited for a step of a payment looks nothing up', async () => {
  const approved = await visitAfterWait(requestUserAuthorization, purchase, 'verified')
  expect(approved).toMatchObject({ result: purchase, next: ['send_payment_mandate'] })
  const byCard = { ...purchase, method_action: null }
  expect(await visitAfterWait(requestUserAuthorization, byCard, 'verified')).toMatchObject({
    next: ['initiate_payment'],
  })
  const paid = { result: { payment_id: 'pay_1' }, next: ['check_receipt'] }
  expect(await visitAfterWait(sendPaymentMandate, purchase, 'succeeded')).toMatchObject(paid)
  expect(await visitAfterWait(initiatePayment, purchase, 'succeeded')).toMatchObject(paid)
  const away = { ...purchase, method_action: null, mandate_id: 'mnd_1', alias: 'Visa ending 1111' }
  expect(await visitAfterWait(payByOpenMandate, away, 'succeeded')).toMatchObject(paid)
})
