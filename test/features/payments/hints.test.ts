// backends: either

import { expect } from 'vitest'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import type { Clock } from '../../../src/state/ports/clock.ts'
import { newCart } from '../../support/consents.ts'
import { offerText, paymentRunTest } from '../../support/payment-runs.ts'

/** An executor that is idle until it is woken. */
const test = paymentRunTest.override(
  'executorClock',
  (): Clock => ({
    ...systemClock,
    sleep: (_, signal) => systemClock.sleep(3_600_000, signal),
  }),
)

test('a run pays by hints alone: for the consent that was answered, and for the order', async ({ buyer }) => {
  const id = await buyer.buy(offerText(await newCart()))
  await buyer.approve(id)
  expect(await buyer.end(id)).toMatchObject({ status: 'completed', answer: 'Done.' })
})
