import { expect, onTestFinished } from 'vitest'
import { queryOne } from '../../src/infra/database/database.ts'
import { createNonce, orderPayment, type PaymentRequest } from '../../src/payments/ledger/orders.ts'
import { unique } from '../support/backend.ts'
import { deferred } from '../support/deferred.ts'
import { editHop, mirrorSignature } from '../support/mandate-parties.ts'
import { createTestProvider } from '../support/payment-provider.ts'
import { drain, paymentTest } from '../support/payments.ts'
import { addBuyer, buyV1, buyV2, createExecutorServices } from '../support/purchases.ts'
import { count, until } from '../support/runs.ts'

const redemptions = Number(process.env.MASON_TEST_REDEMPTIONS ?? 40)

/** On servers only: PGlite has one session, where nothing races. */
const test = paymentTest
  .extend('buyer', async ({ database, executor }) => {
    const tenant = unique('buyer')
    await addBuyer(database, tenant)
    const card = createTestProvider()
    let index = 0
    return {
      ...{ tenant, card, services: createExecutorServices(executor, database, card.provider) },
      nonce: () => createNonce(database, tenant),
      order: (request: PaymentRequest) =>
        orderPayment(database, { tenant, run_id: 'run' }, { plan_seq: 1, index: index++ }, request),
    }
  })
  .runIf(process.env.MASON_TEST_BACKEND === 'served')

test('many redemptions of one purchase at once on four executors, also mirrored and in both versions, are one payment', async ({
  buyer: { tenant, card, services, nonce, order },
  executor,
}) => {
  const v2 = await buyV2({ nonce: await nonce() })
  const { checkoutId } = v2
  const requests: PaymentRequest[] = [
    v2.request,
    { ...v2.request, payment: editHop(v2.request.payment, -1, mirrorSignature) },
    (await buyV1({ nonce: await nonce(), checkoutId })).request,
    (await buyV2({ nonce: await nonce(), checkoutId, constraints: null })).request,
  ]
  await Promise.all(
    Array.from({ length: redemptions }, (_, i) => order(requests[i % requests.length] as PaymentRequest)),
  )
  await drain(services, 4)
  const { rows } = await executor.query<{ status: string; count: number }>(
    'SELECT status, count(*)::int AS count FROM payments WHERE tenant = $1 GROUP BY 1 ORDER BY 1',
    [tenant],
  )
  expect(rows).toEqual([
    { status: 'declined', count: redemptions - 1 },
    { status: 'succeeded', count: 1 },
  ])
  expect([card.sent.length, card.total()]).toEqual([1, 19_900])
})

test('payments under one budget at once never take more than it has, and what they took is what the provider has', async ({
  buyer: { tenant, card, services, nonce, order },
  executor,
}) => {
  const constraints = [{ type: 'payment.budget', currency: 'USD', max: 500 }]
  const first = await buyV2({ nonce: await nonce(), constraints, amount: 10_000 })
  const { open } = first
  const requests = [first.request]
  while (requests.length < 12)
    requests.push((await buyV2({ nonce: await nonce(), constraints, amount: 10_000, open })).request)
  card.failures.push('decline', 'fail before')
  await Promise.all(requests.map(order))
  await expect
    .poll(async () => {
      await drain(services, 4)
      return queryOne(executor, `SELECT FROM payments WHERE status IN ('reserved', 'sent') AND tenant = $1`, [
        tenant,
      ])
    })
    .toBeNull()
  const sums = await queryOne(
    executor,
    `SELECT (SELECT sum(amount_minor)::int FROM payments WHERE tenant = $1 AND status = 'succeeded') AS paid,
       (SELECT sum(spent_minor)::int FROM mandate_spend WHERE tenant = $1) AS spent,
       (SELECT sum(reserved_minor)::int FROM mandate_spend WHERE tenant = $1) AS reserved`,
    [tenant],
  )
  expect(sums).toEqual({ paid: card.total(), spent: card.total(), reserved: 0 })
  // four or five: who comes while the declined one is reserved may find the budget used
  expect([40_000, 50_000]).toContain(card.total())
})

test('payments under one recurring mandate at once are one payment in its period', async ({
  buyer: { card, services, nonce, order },
}) => {
  const constraints = [
    { type: 'payment.budget', currency: 'USD', max: 5000 },
    { type: 'payment.amount_range', currency: 'USD', max: 20_000 },
    { type: 'payment.agent_recurrence', frequency: 'MONTHLY' },
  ]
  let open: Awaited<ReturnType<typeof buyV2>>['open'] | undefined
  for (let index = 0; index < 12; index++) {
    const bought = await buyV2({ nonce: await nonce(), constraints, ...(open && { open }) })
    open = bought.open
    await order(bought.request)
  }
  await drain(services, 4)
  expect([card.sent.length, card.total()]).toEqual([1, 19_900])
})

test('payments with one nonce that are reserved at the same moment are one payment', async ({
  buyer: { card, services, nonce, order },
  database,
  executor,
}) => {
  const shared = await nonce()
  for (let i = 0; i < 2; i++) await order((await buyV2({ nonce: shared })).request)
  const [held, released] = [deferred(), deferred()]
  onTestFinished(() => released.resolve())
  const holding = executor.transaction(async (sql) => {
    await sql.query('SELECT FROM payment_nonces WHERE nonce = $1 FOR UPDATE', [shared])
    held.resolve()
    await released.promise
  })
  await held.promise
  const working = drain(services)
  const blocked =
    'pg_locks JOIN pg_stat_activity a USING (pid) WHERE NOT granted AND a.datname = current_database()'
  await until('both wait for the nonce', async () => (await count(database, blocked)) >= 2)
  released.resolve()
  await Promise.all([holding, working])
  expect([card.sent.length, card.total()]).toEqual([1, 19_900])
})
