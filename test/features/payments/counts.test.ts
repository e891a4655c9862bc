// backends: either

import { expect } from 'vitest'
import { newCart, newCheckout } from '../../support/consents.ts'
import { countStatements } from '../../support/counted-database.ts'
import { offerText, paymentRunTest } from '../../support/payment-runs.ts'

const test = paymentRunTest.override('counting', () =>
  countStatements([['look-up of trusted keys', 'json_to_recordset($1::json) AS q (nth int']]),
)

const totals = [{ type: 'total', amount: 19_900 }]

// embedded, what the executor looks up is counted with them
test.runIf(process.env.MASON_TEST_BACKEND === 'served').for(['0.1', '0.2'] as const)(
  'API and worker verify an offer of AP2 %s when the run chooses it and when the user sees it, and no other time',
  async (version, { buyer, counting }) => {
    const offer = version === '0.1' ? await newCart() : await newCheckout({ checkout: { totals } })
    counting.take()
    const id = await buyer.buy(offerText(offer))
    const { consent_request } = await buyer.untilConsent(id)
    expect(counting.counted('look-up of trusted keys')).toBe(1)
    await buyer.approve(id)
    expect(await buyer.end(id)).toMatchObject({ status: 'completed', answer: 'Done.' })
    expect(counting.counted('look-up of trusted keys')).toBe(2)
    // the third is the executor's
    const { events } = await buyer.trail(consent_request?.payment_id ?? '')
    expect(JSON.stringify(events).match(/signature of the merchant over the c\w+/g)).toHaveLength(1)
  },
)
