// backends: either
// asserts: invariants

import { expect, onTestFinished } from 'vitest'
import { closeWaits, startWaits } from '../../../src/engine/runs/waits.ts'
import {
  createNonce,
  orderPayment,
  type PaymentRequest,
} from '../../../src/features/payments/ledger/orders.ts'
import { newPaymentId } from '../../../src/features/payments/ports/ids.ts'
import { queryOne } from '../../../src/infra/database/database.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { unique } from '../../support/backend.ts'
import { deferred } from '../../support/deferred.ts'
import { editHop, mirrorSignature } from '../../support/mandate-parties.ts'
import { createTestProvider } from '../../support/payment-provider.ts'
import { drain, paymentTest } from '../../support/payments.ts'
import { addBuyer, buyV1, buyV2, createExecutorServices } from '../../support/purchases.ts'
import { count, mustClaim, submitTo, until } from '../../support/runs.ts'

const blocked =
  'pg_locks JOIN pg_stat_activity a USING (pid) WHERE NOT granted AND a.datname = current_database()'
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
  await until('both wait for the nonce', async () => (await count(database, blocked)) >= 2)
  released.resolve()
  await Promise.all([holding, working])
  expect([card.sent.length, card.total()]).toEqual([1, 19_900])
})

test('a run that is canceled while its payment is being refused waits for it, and neither is refused by the database', async ({
  buyer: { tenant, services },
  database,
  executor,
}) => {
  await submitTo(database, tenant)
  const run = await mustClaim(database)
  const call = { plan_seq: 1, index: 0 }
  const [refId, request] = [newPaymentId(), { version: '0.2' } as PaymentRequest]
  const start = async (sql: Sql) => void (await orderPayment(sql, run, call, request, { paymentId: refId }))
  await startWaits(database, run, call, 0, [{ kind: 'payment', refId, start }])
  const errors: unknown[] = []
  const log = { ...services.log, warn: (...entry: unknown[]) => void errors.push(entry) }
  // as a cancel does: the run first, and then its orders
  const drained = database.transaction(async (sql) => {
    await sql.query('SELECT FROM runs WHERE run_id = $1 FOR UPDATE', [run.run_id])
    const working = drain({ ...services, log })
    await until('the executor waits', async () => (await count(executor, blocked)) > 0)
    await closeWaits(sql, tenant, run.run_id)
    return { working }
  })
  await (await drained).working
  const row = await queryOne<{ status: string }>(
    executor,
    'SELECT status FROM payments WHERE payment_id = $1',
    [refId],
  )
  expect(row?.status).toMatch(/^(released|declined)$/)
  expect(errors).toEqual([])
})
