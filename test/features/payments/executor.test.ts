// backends: either
// asserts: invariants

import { randomBytes } from 'node:crypto'
import { describe, expect } from 'vitest'
import { closeWaits, startWaits } from '../../../src/engine/runs/waits.ts'
import { signNextCard } from '../../../src/features/a2a/server/card-signatures.ts'
import { createCardSigner } from '../../../src/features/payments/executor/card-signer.ts'
import type { ExecutorStep } from '../../../src/features/payments/executor/executor-services.ts'
import { createPaymentExecutor } from '../../../src/features/payments/executor/payment-executor.ts'
import { startExecutor } from '../../../src/features/payments/executor/start-executor.ts'
import {
  claimOpenPayments,
  claimPayment,
  type TakenOrder,
  takeOrders,
} from '../../../src/features/payments/executor/work-queue.ts'
import {
  createNonce,
  orderAnswer,
  orderForAdmin,
  orderPayment,
  type PaymentRequest,
  readOrder,
  storeWebhook,
} from '../../../src/features/payments/ledger/orders.ts'
import { readPayment, readTrail } from '../../../src/features/payments/ledger/payment-queries.ts'
import { conceal } from '../../../src/features/payments/mandates/tokens/issue.ts'
import { parseJws } from '../../../src/features/payments/mandates/tokens/jws.ts'
import { newPaymentId } from '../../../src/features/payments/ports/ids.ts'
import { paymentWorkChannel } from '../../../src/features/payments/ports/work-hints.ts'
import { queryOne, type RunKey } from '../../../src/infra/database/database.ts'
import { loginRoles } from '../../../src/infra/database/login-roles.ts'
import { openPostgresDatabase } from '../../../src/infra/database/postgres.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { openHints } from '../../../src/infra/queue/hints.ts'
import { MasonError } from '../../../src/state/errors.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { unique } from '../../support/backend.ts'
import { deferred } from '../../support/deferred.ts'
import {
  createParty,
  editHop,
  lineItems,
  mandateTime,
  mirrorSignature,
  shop as seller,
} from '../../support/mandate-parties.ts'
import { createTestProvider } from '../../support/payment-provider.ts'
import { drain, paymentTest } from '../../support/payments.ts'
import { addBuyer, buyV1, buyV2, createExecutorServices, trustKey } from '../../support/purchases.ts'
import { codeOf, mustClaim, submitTo } from '../../support/runs.ts'
import { loginsOf } from '../../support/served-logins.ts'

const test = paymentTest
  .extend('buyer', { scope: 'file' }, async ({ database }) => {
    const tenant = unique('buyer')
    await addBuyer(database, tenant)
    return tenant
  })
  .extend('shop', async ({ database, executor, buyer }) => {
    const card = createTestProvider()
    const services = createExecutorServices(executor, database, card.provider)
    let index = 0
    const run = { tenant: buyer, run_id: unique('run') }
    const order = (request: PaymentRequest, credential: string | null = null, of = run) =>
      database.asBusiness(of.tenant, (sql) =>
        orderPayment(sql, of, { plan_seq: 1, index: index++ }, request, { credential }),
      )
    const nonce = (tenant = buyer) => database.asBusiness(tenant, (sql) => createNonce(sql, tenant))
    const read = (id: string, tenant = buyer) =>
      database.asBusiness(tenant, async (sql) => {
        const payment = await readPayment(sql, tenant, id)
        if (!payment) throw new Error('there is no such payment')
        return payment
      })
    const trail = async (id: string) => {
      const found = await database.asBusiness(buyer, (sql) => readTrail(sql, buyer, id))
      if (!found) throw new Error('there is no such payment')
      return found
    }
    const spending = async (id: string) => {
      const row = await queryOne<{ reserved: number; spent: number; uses: number }>(
        executor,
        `SELECT reserved_minor AS reserved, spent_minor AS spent, reserved_uses + spent_uses AS uses
         FROM mandate_spend JOIN payments USING (spend_id) WHERE payment_id = $1`,
        [id],
      )
      return row && [row.reserved, row.spent, row.uses]
    }
    const due = () =>
      executor.query(
        `UPDATE payments SET lease_until = NULL, next_at = clock_timestamp() WHERE status IN ('reserved', 'sent', 'unknown') AND tenant = $1`,
        [buyer],
      )
    const rest = () => executor.query(`UPDATE payments SET next_at = 'infinity' WHERE tenant = $1`, [buyer])
    const free = () =>
      executor.query(
        `UPDATE payment_orders SET lease_until = NULL, next_at = clock_timestamp() WHERE done_at IS NULL`,
      )
    /** Lets time pass for a payment, since which nothing was heard of it. */
    const age = (id: string, ms: number) =>
      executor.query(
        `WITH payment AS (
           UPDATE payments SET updated_at = updated_at - $2::int * interval '1 millisecond' WHERE payment_id = $1
         ) UPDATE payment_operations SET first_sent_at = first_sent_at - $2::int * interval '1 millisecond' WHERE payment_id = $1`,
        [id, ms],
      )
    /** Kinds of its operations and orders that are not over. */
    const open = async (id: string) => {
      const { rows } = await executor.query<{ kind: string }>(
        `SELECT kind FROM payment_operations WHERE payment_id = $1 AND (status <> 'done' OR request IS NOT NULL)
         UNION ALL SELECT kind FROM payment_orders WHERE payment_id = $1 AND done_at IS NULL`,
        [id],
      )
      return rows
    }
    const work = (changes = {}) => drain({ ...services, ...changes })
    /** Loses the request of an order, and lets the time pass within which it is sent again. */
    const lose = async (id: string, order: () => Promise<unknown>): Promise<void> => {
      card.failures.push('fail before')
      await order()
      await work({ onStep: (step: ExecutorStep) => step === 'taken' && age(id, 3_600_000) })
    }
    return {
      ...{ card, services, run, order, nonce, read, trail, spending },
      ...{ due, rest, free, age, open, lose, work },
    }
  })

type Shop = {
  nonce(): Promise<string>
  order(request: PaymentRequest): Promise<string>
  work(): Promise<void>
}

/** Pays once with a new mandate, and works until all is done. */
const pay = async (shop: Shop, capture = true) => {
  const { request } = await buyV2({ nonce: await shop.nonce() })
  const id = await shop.order({ ...request, capture })
  await shop.work()
  return id
}
const hold = (shop: Shop) => pay(shop, false)

describe('a payment', () => {
  test('is verified, reserved, sent once and received, in both versions, and its trail says each step', async ({
    shop,
  }) => {
    for (const buy of [buyV1, buyV2]) {
      const id = await shop.order((await buy({ nonce: await shop.nonce() })).request, 'sealed tok_1')
      expect(await shop.read(id)).toMatchObject({ status: 'ordered', amount: null })
      await shop.work()
      expect(await shop.read(id)).toMatchObject({
        status: 'succeeded',
        amount: { minor: 19_900, currency: 'USD' },
        outcome: { status: 'succeeded', message: 'Paid 199.00 USD to Demo Merchant.' },
      })
      expect(await shop.spending(id)).toEqual([0, 19_900, 1])
      const { mandates, operations, events, payment } = await shop.trail(id)
      expect(mandates).toHaveLength(2)
      expect(operations).toMatchObject([{ kind: 'authorize', status: 'done', sends: 1 }])
      expect(events.map(({ kind }) => kind)).toEqual(['reserved', 'sent', 'succeeded'])
      expect(events[0]?.detail.checks).toContainEqual({
        check: 'merchant is the payee',
        value: 'https://demo-merchant.example',
      })
      const receipt = parseJws(payment.receipt ?? '', 'receipt').payload
      expect(receipt).toMatchObject({ iss: 'https://mason.example', payment_id: id })
      expect(receipt.status ?? receipt.payment_status).toBeDefined()
      const sent = JSON.parse(shop.card.sent.at(-1)?.request ?? '')
      expect(sent).toMatchObject({ credential: 'tok_1', capture: true })
    }
    expect(shop.card.total()).toBe(39_800)
  })

  test('is sent to the issuer of the key that signed, whatever id a mandate or a checkout names', async ({
    shop,
  }) => {
    const { name, website } = seller
    const named = { ...seller, id: 'acct_of_a_thief' }
    const closed = { payee: named }
    const purchases = [
      { constraints: null, closed, checkout: { merchant: { name, website } } },
      {
        constraints: null,
        closed,
        checkout: { merchant: named },
        openCheckout: { constraints: [lineItems] },
      },
      { closed, checkout: { merchant: { name, website } } },
    ]
    for (const purchase of purchases) {
      const { request } = await buyV2({ nonce: await shop.nonce(), ...purchase })
      const id = await shop.order(request)
      await shop.work()
      const payee = { id: seller.website, name: seller.name }
      expect(await shop.read(id)).toMatchObject({ status: 'succeeded', payee })
      expect(JSON.parse(shop.card.sent.at(-1)?.request ?? '')).toMatchObject({ payee })
    }
  })

  test('is ordered once by a call, and leaves no secret behind', async ({ shop, database, executor }) => {
    const { request } = await buyV2({ nonce: await shop.nonce() })
    const call = { plan_seq: 9, index: 0 }
    const order = () =>
      database.asBusiness(shop.run.tenant, (sql) =>
        orderPayment(sql, shop.run, call, request, { credential: 'sealed tok_2' }),
      )
    const id = await order()
    expect(await order()).toBe(id)
    await shop.work()
    const { rows } = await executor.query<{ request: unknown; sealed: unknown }>(
      `SELECT p.request, o.sealed FROM payment_operations p JOIN payment_orders o USING (payment_id) WHERE payment_id = $1`,
      [id],
    )
    expect(rows).toEqual([{ request: null, sealed: null }])
  })

  test('that the provider declines gives its reservation back, and its mandate is used', async ({ shop }) => {
    shop.card.failures.push('decline')
    const { request } = await buyV2({ nonce: await shop.nonce() })
    const id = await shop.order(request)
    await shop.work()
    const declined = await shop.read(id)
    expect(declined.outcome).toMatchObject({ status: 'declined', code: 'payment_declined' })
    expect(declined.outcome?.message).toMatch(/insufficient funds\. No money was taken/)
    expect(parseJws(declined.receipt ?? '', 'r').payload).toMatchObject({ status: 'Error' })
    expect(await shop.spending(id)).toEqual([0, 0, 0])
    const again = await shop.order(request)
    await shop.work()
    expect((await shop.read(again)).outcome?.message).toMatch(/mandate was used before/)
  })

  test('of a checkout that was declined is possible with a new mandate, and of one that was paid is not', async ({
    shop,
  }) => {
    const checkoutId = unique('order')
    const attempt = async (buy: typeof buyV1 | typeof buyV2) => {
      const id = await shop.order((await buy({ nonce: await shop.nonce(), checkoutId })).request)
      await shop.work()
      return (await shop.read(id)).outcome
    }
    shop.card.failures.push('decline')
    expect(await attempt(buyV2)).toMatchObject({ status: 'declined' })
    expect(await attempt(buyV1)).toMatchObject({ status: 'succeeded' })
    expect(await attempt(buyV2)).toMatchObject({
      status: 'declined',
      message: expect.stringMatching(/checkout is paid or being paid/),
    })
  })

  test('that was authorized alone is captured or voided by an admin, and one that was paid is refunded, never more than paid', async ({
    shop,
    database,
  }) => {
    const admin = async (id: string, change: Parameters<typeof orderForAdmin>[3]) => {
      const order = await orderForAdmin(database, shop.run.tenant, id, change)
      await shop.work()
      return (await readOrder(database, order))?.outcome
    }
    const [one, other] = [await hold(shop), await hold(shop)]
    expect(await shop.spending(one)).toEqual([19_900, 0, 1])
    expect(await admin(one, { kind: 'refund', amount_minor: 1 })).toMatchObject({ status: 'refused' })
    expect(await admin(one, { kind: 'capture' })).toMatchObject({ status: 'succeeded' })
    expect(await admin(other, { kind: 'void' })).toMatchObject({ status: 'voided' })
    expect(await shop.spending(one)).toEqual([0, 19_900, 1])
    expect(await shop.spending(other)).toEqual([0, 0, 0])
    expect(await admin(one, { kind: 'void' })).toMatchObject({ status: 'refused' })
    expect(await admin(one, { kind: 'refund', amount_minor: 19_000 })).toMatchObject({ status: 'refunded' })
    const over = await admin(one, { kind: 'refund', amount_minor: 901 })
    expect(over?.message).toBe('amount_minor must be from 1 to 900, what is not refunded yet.')
    shop.card.failures.push('decline')
    expect(await admin(one, { kind: 'refund', amount_minor: 900 })).toMatchObject({ status: 'declined' })
    expect(await admin(one, { kind: 'refund', amount_minor: 900 })).toMatchObject({ status: 'refunded' })
    expect(await shop.read(one)).toMatchObject({ status: 'succeeded', refunded_minor: 19_900 })
  })

  test('with a challenge asks the person, three times at most, and goes on with the answer', async ({
    shop,
    database,
    executor,
  }) => {
    shop.card.failures.push('challenge')
    const id = await pay(shop)
    expect(await shop.read(id)).toMatchObject({
      status: 'sent',
      challenge: { type: 'otp', text: 'Type the code 123.' },
      outcome: { status: 'challenge' },
    })
    const answer = async (index: number, text: string) => {
      await orderAnswer(database, shop.run, { plan_seq: 5, index }, id, `sealed ${text}`)
      await shop.work()
    }
    await answer(0, '000')
    expect(await shop.read(id)).toMatchObject({ status: 'sent', outcome: { status: 'challenge' } })
    await answer(1, '123')
    expect(await shop.read(id)).toMatchObject({ status: 'succeeded', challenge: null })
    const { rows } = await executor.query(
      `SELECT FROM payment_operations WHERE payment_id = $1 AND request IS NOT NULL`,
      [id],
    )
    expect(rows).toEqual([])

    shop.card.failures.push('challenge')
    const other = await pay(shop)
    for (const index of [10, 11, 12, 13])
      await orderAnswer(database, shop.run, { plan_seq: 5, index }, other, 'sealed 000')
    await shop.work()
    expect(shop.card.sent.filter(({ request }) => request === 'an answer')).toHaveLength(5)
  })
})

describe('a payment whose end is not known', () => {
  test('is sent again under its key with the stored bytes while the provider knows keys', async ({
    shop,
  }) => {
    shop.card.failures.push('fail before', 'fail after')
    const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    await expect
      .poll(async () => {
        await shop.due()
        await shop.work()
        return (await shop.read(id)).status
      })
      .toBe('succeeded')
    expect(new Set(shop.card.sent.map(({ key, request }) => key + request)).size).toBe(1)
    expect(shop.card.sent.length).toBe(3)
    expect(shop.card.total()).toBe(19_900)
  })

  test('is taken at once by a hint, also where the executor looks for work once an hour', async ({
    shop,
  }) => {
    const hints = await openHints({ kind: 'embedded', log: silentLog })
    const looked: (() => void)[] = []
    const clock = {
      ...systemClock,
      sleep: (_: number, signal?: AbortSignal) => {
        looked.shift()?.()
        return systemClock.sleep(3_600_000, signal)
      },
    }
    const untilIdle = () => new Promise<void>((resolve) => looked.push(resolve))
    const idle = untilIdle()
    const running = startExecutor({ ...shop.services, clock }, { hints })
    await idle
    const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    hints.publish(paymentWorkChannel, '')
    await expect.poll(async () => (await shop.read(id)).status).toBe('succeeded')
    await running.stop()
    await hints.close()
  })

  test('is looked for by the hint of its kind, by an empty one with all others, and never twice', async ({
    shop,
    executor,
  }) => {
    const hints = await openHints({ kind: 'embedded', log: silentLog })
    const clock = {
      ...systemClock,
      sleep: (_: number, signal?: AbortSignal) => systemClock.sleep(3_600_000, signal),
    }
    const looks = { payments: 0, webhooks: 0, consents: 0 }
    const query: typeof executor.query = (text, ...rest) => {
      if (text.includes('UPDATE payment_orders SET takes = takes + 1')) looks.payments++
      if (text.includes('UPDATE payment_inbox SET tries')) looks.webhooks++
      return executor.query(text, ...rest)
    }
    const decideConsent = async () => {
      looks.consents++
      return null
    }
    const services = { ...shop.services, clock, decideConsent, database: { ...executor, query } }
    const running = startExecutor(services, { hints })
    const untilLooks = (payments: number, webhooks: number, consents: number) =>
      expect.poll(() => looks).toEqual({ payments, webhooks, consents })
    await untilLooks(1, 1, 1)
    const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    hints.publish(paymentWorkChannel, 'payments')
    await expect.poll(async () => (await shop.read(id)).status).toBe('succeeded')
    await untilLooks(2, 1, 1)
    hints.publish(paymentWorkChannel, 'consents')
    await untilLooks(2, 1, 2)
    hints.publish(paymentWorkChannel, 'webhooks')
    await untilLooks(2, 2, 2)
    // of an earlier version
    hints.publish(paymentWorkChannel, '')
    await untilLooks(3, 3, 3)
    await running.stop()
    await hints.close()
  })

  test('that was begun is sent again before new orders are taken', async ({ shop, executor }) => {
    shop.card.failures.push('fail before')
    const id = await pay(shop)
    for (let i = 0; i < 3; i++) await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    await shop.due()
    const running = startExecutor(shop.services, { concurrency: 1, idleMs: 5 })
    const isOrdered = "SELECT FROM payment_orders WHERE done_at IS NULL AND kind = 'pay'"
    await expect.poll(async () => (await executor.query(isOrdered)).rows.length).toBe(0)
    await running.stop()
    const [first, second] = shop.card.sent
    expect(second?.key).toBe(first?.key)
    expect((await shop.read(id)).status).toBe('succeeded')
  })

  test('keeps its reservation when the window is over, is looked up, and is settled by an operator alone', async ({
    shop,
    database,
  }) => {
    shop.card.failures.push('fail before')
    const id = await pay(shop)
    shop.card.forget()
    await shop.age(id, 0.8 * 3_600_000)
    await shop.due()
    await shop.work()
    const unknown = await shop.read(id)
    expect(unknown.outcome).toMatchObject({ status: 'unknown', code: 'payment_unknown' })
    expect(unknown.outcome?.message).toMatch(/Do not pay again: an operator/)
    expect(await shop.spending(id)).toEqual([19_900, 0, 1])
    await shop.due()
    await shop.work()
    expect(shop.card.sent).toHaveLength(1)
    const settle = (tenant = shop.run.tenant) =>
      orderForAdmin(database, tenant, id, { kind: 'settle', status: 'declined', note: 'not in their books' })
    const order = await settle()
    await shop.work()
    expect(await readOrder(database, order)).toMatchObject({ outcome: { status: 'declined' } })
    expect(await shop.read(id)).toMatchObject({ status: 'declined' })
    expect(await shop.spending(id)).toEqual([0, 0, 0])
    expect((await shop.trail(id)).events.map(({ kind }) => kind)).toEqual([
      'reserved',
      'sent',
      'unknown',
      'settled',
    ])
    const again = await settle()
    await shop.work()
    expect((await readOrder(database, again))?.outcome?.message).toMatch(/there is nothing to settle/)
  })

  test('because its provider says pending for 15 minutes ends the wait and says so, and goes on being looked up', async ({
    shop,
  }) => {
    shop.card.failures.push('pending')
    const id = await pay(shop)
    expect(await shop.read(id)).toMatchObject({ status: 'sent', outcome: null })
    await shop.age(id, 15 * 60_000 + 1)
    await shop.due()
    await shop.work()
    const { status, outcome } = await shop.read(id)
    expect([status, outcome?.status]).toEqual(['unknown', 'unknown'])
    expect(outcome?.message).toMatch(/has said for 15 minutes that it is pending.*Do not pay again/)
    expect(await shop.spending(id)).toEqual([19_900, 0, 1])
    await shop.due()
    await shop.work()
    expect((await shop.read(id)).status).toBe('unknown')
  })

  test.for(['fail after', 'pending', 'challenge'] as const)(
    'because its look-up failed for all of the window (%s) is unknown, its run goes on, and an operator settles it',
    async (failure, { shop, database }) => {
      const { tenant } = shop.run
      await submitTo(database, tenant)
      const run = await mustClaim(database)
      const { request } = await buyV2({ nonce: await shop.nonce() })
      const id = newPaymentId()
      const call = { plan_seq: 1, index: 0 }
      const start = async (sql: Sql) => void (await orderPayment(sql, run, call, request, { paymentId: id }))
      const wait = () => startWaits(database, run, call, 0, [{ kind: 'payment' as const, refId: id, start }])
      await wait()
      shop.card.failures.push(failure)
      await shop.work()
      shop.card.mute()
      const look = async () => {
        await shop.due()
        await shop.work()
        return (await shop.read(id)).status
      }
      await shop.age(id, 3_500_000)
      expect(await look()).toBe('sent')
      await shop.age(id, 100_000)
      expect(await look()).toBe('unknown')
      expect((await shop.read(id)).outcome).toMatchObject({
        code: 'payment_unknown',
        message: expect.stringContaining('the provider does not say what became of it'),
      })
      if (failure !== 'challenge')
        expect((await wait())?.[0]?.outcome).toMatchObject({ status: 'unknown', payment_id: id })
      expect(await shop.spending(id)).toEqual([19_900, 0, 1])
      expect(await look()).toBe('unknown')
      const note = { kind: 'settle', status: 'declined', note: 'not in their books' } as const
      await orderForAdmin(database, tenant, id, note)
      await shop.work()
      expect(await shop.read(id)).toMatchObject({ status: 'declined' })
      expect(await shop.spending(id)).toEqual([0, 0, 0])
      expect(shop.card.sent).toHaveLength(1)
    },
  )

  test('is known of a hold, of which an old webhook says pending: it can be captured', async ({
    shop,
    database,
  }) => {
    const id = await hold(shop)
    await shop.age(id, 15 * 60_000 + 1)
    const key = [...shop.card.books.keys()][0] ?? ''
    const answer = { status: 'pending', provider_ref: `ref_${id}` }
    const body = Buffer.from(JSON.stringify({ event_id: 'late', key, provider_ref: `ref_${id}`, answer }))
    await storeWebhook(database, 'card', { signature: 'genuine' }, body)
    await shop.work()
    expect(await shop.read(id)).toMatchObject({ status: 'sent' })
    await orderForAdmin(database, shop.run.tenant, id, { kind: 'capture' })
    await shop.work()
    expect(await shop.read(id)).toMatchObject({ status: 'succeeded' })
  })

  test('is looked up while its provider says pending, and is settled by an operator after the window alone', async ({
    shop,
    database,
  }) => {
    shop.card.failures.push('pending')
    const id = await pay(shop)
    const settle = async () => {
      const note = { kind: 'settle', status: 'succeeded', note: 'in their books' } as const
      const order = await orderForAdmin(database, shop.run.tenant, id, note)
      await shop.work()
      return (await readOrder(database, order))?.outcome
    }
    await shop.age(id, 3_500_000)
    expect(await settle()).toMatchObject({ status: 'refused', message: expect.stringContaining('nothing') })
    await shop.age(id, 100_000)
    await shop.due()
    await shop.work()
    expect(await shop.read(id)).toMatchObject({ status: 'unknown' })
    expect(await settle()).toMatchObject({ status: 'succeeded' })
    expect(await shop.read(id)).toMatchObject({ status: 'succeeded' })
    expect(await shop.spending(id)).toEqual([0, 19_900, 1])
  })

  test('because the look-up of an answer of the person fails for all of the window is unknown', async ({
    shop,
    database,
  }) => {
    shop.card.failures.push('challenge')
    const id = await pay(shop)
    shop.card.failures.push('fail before')
    shop.card.mute()
    await orderAnswer(database, shop.run, { plan_seq: 30, index: 0 }, id, 'sealed 123')
    await shop.work({ onStep: (step: ExecutorStep) => step === 'taken' && shop.age(id, 3_700_000) })
    expect(await shop.read(id)).toMatchObject({ status: 'unknown' })
    expect(await shop.open(id)).toEqual([])
    const note = { kind: 'settle', status: 'declined', note: 'not in their books' } as const
    await orderForAdmin(database, shop.run.tenant, id, note)
    await shop.work()
    expect(await shop.read(id)).toMatchObject({ status: 'declined' })
  })

  test('succeeds by a look-up that finds it', async ({ shop }) => {
    shop.card.failures.push('fail after')
    const id = await pay(shop)
    await shop.age(id, 3_600_000)
    await shop.due()
    await shop.work()
    expect(await shop.read(id)).toMatchObject({ status: 'succeeded' })
    expect(shop.card.sent).toHaveLength(1)
  })

  test('succeeds by a genuine webhook, which counts once, in whatever order and number webhooks come', async ({
    shop,
    database,
    executor,
  }) => {
    shop.card.failures.push('pending')
    const id = await pay(shop)
    expect(await shop.read(id)).toMatchObject({ status: 'sent', outcome: null })
    const key = [...shop.card.books.keys()][0] ?? ''
    const event = (event_id: string, answer: unknown) =>
      Buffer.from(JSON.stringify({ event_id, key, provider_ref: `ref_${id}`, answer }))
    const succeeded = {
      ...{ status: 'succeeded', provider_ref: `ref_${id}`, network_ref: 'n' },
      amount: { minor: 19_900, currency: 'USD' },
    }
    const declined = { status: 'declined', provider_ref: null, reason: 'late' }
    const send = (signature: string, body: Buffer) => storeWebhook(database, 'card', { signature }, body)
    const before = await queryOne<{ last: string }>(
      executor,
      'SELECT coalesce(max(message_id), 0) AS last FROM payment_inbox',
      [],
    )
    // another provider knows no payment of this one
    await storeWebhook(database, 'other', { signature: 'genuine' }, event('e0', declined))
    await shop.work({ openProvider: async () => shop.card.provider })
    expect((await shop.read(id)).status).toBe('sent')
    await send('forged', event('e0', declined))
    await send('genuine', event('e1', succeeded))
    await send('genuine', event('e1', succeeded))
    await shop.work()
    await send('genuine', event('e2', declined))
    await shop.work()
    expect(await shop.read(id)).toMatchObject({ status: 'succeeded' })
    const { rows } = await executor.query<{ result: string; kept: string }>(
      `SELECT result, headers::text || encode(body, 'escape') AS kept FROM payment_inbox
       WHERE provider_id = 'card' AND message_id > $1 ORDER BY message_id`,
      [before?.last],
    )
    const results = rows.map(({ result }) => result)
    // what anyone can send is not kept
    expect(rows.map(({ kept }) => kept.length > 2)).toEqual([false, true, true, true])
    expect([results[0], results.slice(1, 3).sort(), results[3]]).toEqual([
      'not_genuine',
      ['applied', 'duplicate'],
      'applied',
    ])
    expect(await shop.spending(id)).toEqual([0, 19_900, 1])
  })

  test('asks nothing again for a webhook that was sent before the person answered', async ({
    shop,
    database,
  }) => {
    shop.card.failures.push('challenge')
    const id = await hold(shop)
    const [key = ''] = shop.card.books.keys()
    const provider_ref = `ref_${id}`
    const ask = async (event_id: string, text: string) => {
      const answer = { status: 'challenge', provider_ref, challenge: { type: 'otp', text } }
      const body = Buffer.from(JSON.stringify({ event_id, key, provider_ref, answer }))
      await storeWebhook(database, 'card', { signature: 'genuine' }, body)
      await shop.work()
    }
    const reply = async (index: number, text: string) => {
      await orderAnswer(database, shop.run, { plan_seq: 6, index }, id, `sealed ${text}`)
      await shop.work()
    }
    await ask('late 1', 'Type the code 122.')
    expect(await shop.read(id)).toMatchObject({ challenge: { text: 'Type the code 122.' } })
    await reply(0, '000')
    await ask('late 2', 'Type the code 121.')
    expect(await shop.read(id)).toMatchObject({ challenge: { text: 'Type the code 123.' } })
    await reply(1, '123')
    await ask('late 3', 'Type the code 122.')
    expect(await shop.read(id)).toMatchObject({
      ...{ status: 'sent', challenge: null },
      outcome: { status: 'authorized' },
    })
  })

  test('because the provider answers nonsense has taken no money as far as Mason is concerned, and is no success', async ({
    shop,
  }) => {
    shop.card.failures.push('wrong amount')
    const id = await pay(shop)
    const payment = await shop.read(id)
    expect(payment).toMatchObject({ status: 'unknown', receipt: null })
    expect(payment.outcome?.message).toMatch(/nonsense: the amount is 19901 USD, not 19900 USD/)
    expect(await shop.spending(id)).toEqual([19_900, 0, 1])
    await shop.due()
    await shop.work()
    expect((await shop.read(id)).status).toBe('unknown')
  })
})

describe('no money moves for', () => {
  const refused = async (
    shop: {
      order(r: PaymentRequest): Promise<string>
      work(): Promise<void>
      read(id: string): Promise<{
        status: string
        outcome: { code?: string; message: string } | null
        receipt: string | null
      }>
      card: { sent: unknown[] }
    },
    request: PaymentRequest,
  ) => {
    const id = await shop.order(request)
    await shop.work()
    const { status, outcome, receipt } = await shop.read(id)
    expect([status, shop.card.sent.length]).toEqual(['declined', 0])
    expect(outcome?.message).toMatch(/^The payment was refused and no money was taken: /)
    expect(receipt).not.toBeNull()
    return [outcome?.code, outcome?.message.slice('The payment was refused and no money was taken: '.length)]
  }

  test('an expired mandate, one without an end, and one over its range', async ({ shop }) => {
    const nonce = await shop.nonce()
    const expired = await buyV2({ nonce, closed: { exp: mandateTime - 301 } })
    expect(await refused(shop, expired.request)).toEqual([
      'invalid_credential',
      expect.stringMatching(/before the time/),
    ])
    const endless = await buyV2({ nonce, closed: { exp: undefined } })
    expect(await refused(shop, endless.request)).toEqual([
      'invalid_mandate',
      expect.stringMatching(/a mandate needs an end/),
    ])
    const dear = await buyV2({ nonce, amount: 20_001 })
    expect(await refused(shop, dear.request)).toEqual([
      'unresolved_constraint',
      expect.stringMatching(/pay at most that/),
    ])
    // what was refused has used up neither nonce nor mandate
    const id = await shop.order((await buyV2({ nonce })).request)
    await shop.work()
    expect((await shop.read(id)).status).toBe('succeeded')
  })

  test('a mandate that is over by the clock of the database, whatever the clock of the executor says', async ({
    shop,
  }) => {
    const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    await shop.work({ mandateTime: undefined })
    const { status, outcome } = await shop.read(id)
    expect([status, outcome?.code]).toEqual(['declined', 'invalid_credential'])
    expect(outcome?.message).toMatch(/before the time/)
  })

  test('a tampered or foreign mandate, a changed cart, and another audience', async ({ shop }) => {
    const nonce = await shop.nonce()
    const good = await buyV1({ nonce })
    const changed = { ...good.request, cart: good.request.cart.replaceAll('199', '99') }
    expect((await refused(shop, changed))[0]).toBe('invalid_credential')
    const other = await buyV1({ nonce })
    expect((await refused(shop, { ...good.request, cart: other.request.cart }))[0]).toBe('invalid_credential')
    const v2 = await buyV2({ nonce })
    const tampered = { ...v2.request, payment: v2.request.payment.replace(/\.([\w-]{20})/, '.$1A') }
    expect((await refused(shop, tampered))[0]).toBe('invalid_credential')
    const swapped = await buyV2({ nonce })
    expect((await refused(shop, { ...v2.request, checkout: swapped.request.checkout }))[0]).toMatch(
      /invalid_mandate|unresolved/,
    )
    const [signed, cheaper] = [
      await buyV2({ nonce, constraints: null }),
      await buyV2({ nonce, constraints: null }),
    ]
    const mixed = { ...signed.request, checkout: cheaper.request.checkout }
    expect((await refused(shop, mixed))[1]).toMatch(/transaction_id is not that of the checkout that is paid/)
    expect((await refused(shop, { ...v2.request, nonce: await shop.nonce() }))[0]).toBe('invalid_credential')
    expect((await refused(shop, { version: '0.2' } as never))[0]).toBe('invalid_mandate')
    expect((await refused(shop, { ...v2.request, provider_id: 'none' }))[1]).toMatch(/names no provider/)
  })

  test('a key id that the database cannot hold, and payments that are verified beside it go on', async ({
    shop,
  }) => {
    const good = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    for (const header of [{ kid: '\u0000' }, { kid: '\ud800' }]) {
      const { request } = await buyV1({ nonce: await shop.nonce() })
      const cart = JSON.parse(request.cart)
      const [, ...rest] = cart.merchant_authorization.split('.')
      const first = Buffer.from(JSON.stringify({ alg: 'ES256', ...header })).toString('base64url')
      const edited = { ...cart, merchant_authorization: [first, ...rest].join('.') }
      const id = await shop.order({ ...request, cart: JSON.stringify(edited) })
      await shop.work()
      expect((await shop.read(id)).outcome).toMatchObject({
        status: 'declined',
        message: expect.stringContaining('header.kid has characters that no trusted key has'),
      })
    }
    expect((await shop.read(good)).status).toBe('succeeded')
    expect(shop.card.sent).toHaveLength(1)
  })

  test('an unsigned payment of AP2 0.1, also where the cart says that none need sign', async ({ shop }) => {
    const { request } = await buyV1({ nonce: await shop.nonce(), confirmation: false })
    const { user_authorization: _, ...unsigned } = JSON.parse(request.payment)
    expect((await refused(shop, { ...request, payment: JSON.stringify(unsigned) }))[0]).toBe(
      'invalid_credential',
    )
  })

  test('a payee that did not sign the checkout, an amount that is not its total, another currency', async ({
    shop,
  }) => {
    const nonce = await shop.nonce()
    const payee = { id: 'merchant_1', name: 'Demo Merchant', website: 'https://elsewhere.example' }
    const bound = await buyV2({ nonce, constraints: null, closed: { payee } })
    expect((await refused(shop, bound.request))[1]).toMatch(
      /payee is not who signed the checkout, https:\/\/demo-merchant/,
    )
    const totals = [{ type: 'total', amount: 1 }]
    const cheap = await buyV2({ nonce, checkout: { totals } })
    expect((await refused(shop, cheap.request))[1]).toMatch(/not the total of the checkout/)
    const euros = await buyV2({ nonce, checkout: { currency: 'EUR' } })
    expect((await refused(shop, euros.request))[1]).toMatch(/is not EUR/)
  })

  test('a merchant that signs a checkout under the id of one that open mandates allow', async ({
    shop,
    database,
  }) => {
    const evil = createParty(unique('merchant'))
    const website = `https://${unique('evil')}.example`
    await trustKey(database, shop.run.tenant, evil, 'merchant', website)
    const merchant = { ...seller, website }
    const allowed = [conceal(seller)]
    const range = { type: 'payment.amount_range', currency: 'USD', max: 20_000 }
    const purchase = { checkout: { merchant }, closed: { payee: merchant }, seller: evil.signing }
    const listed = await buyV2({
      ...{ nonce: await shop.nonce(), ...purchase },
      constraints: [range, { type: 'payment.allowed_payees', allowed }],
    })
    expect((await refused(shop, listed.request))[1]).toMatch(
      new RegExp(`payment.hops\\[0\\].constraints\\[1\\].allowed has no entry of ${website}`),
    )
    const unlisted = await buyV2({ nonce: await shop.nonce(), ...purchase })
    expect((await refused(shop, unlisted.request))[1]).toMatch(
      new RegExp(`checkout.hops\\[0\\].constraints\\[1\\].allowed has no entry of ${website}`),
    )
  })

  test('a checkout without exactly one total that can be read, whatever the agent pays within its range', async ({
    shop,
  }) => {
    const nonce = await shop.nonce()
    const totals = [
      undefined,
      [],
      [{ type: 'subtotal', amount: 19_900 }],
      [
        { type: 'total', amount: 19_900 },
        { type: 'total', amount: 1 },
      ],
      [
        { type: 'total', amount: 19_900 },
        { type: 'total', amount: 19_900 },
      ],
      [{ type: 'total', amount: '19900' }],
      [{ type: 'total', amount: -1 }],
      [{ type: 'total' }],
      'total',
    ]
    for (const one of totals) {
      const range = [{ type: 'payment.amount_range', currency: 'USD', max: 100_000 }]
      const { request } = await buyV2({
        nonce,
        amount: 99_999,
        constraints: range,
        checkout: { totals: one },
      })
      expect([one, await refused(shop, request)]).toEqual([
        one,
        ['invalid_mandate', expect.stringMatching(/^checkout\.totals has /)],
      ])
    }
    const unnamed = await buyV2({ nonce, checkout: { currency: undefined } })
    expect((await refused(shop, unnamed.request))[1]).toMatch(
      /^checkout\.totals has a total that cannot be read/,
    )
  })

  test('a cart under a second id of its payment request, or a second cart under the same one, in either version', async ({
    shop,
  }) => {
    const [cartId, checkoutId] = [unique('cart'), unique('order')]
    const first = await buyV1({ nonce: await shop.nonce(), cartId, checkoutId })
    const id = await shop.order(first.request)
    await shop.work()
    expect((await shop.read(id)).status).toBe('succeeded')
    for (const request of [
      (await buyV1({ nonce: await shop.nonce(), cartId })).request,
      (await buyV1({ nonce: await shop.nonce(), checkoutId })).request,
      (await buyV2({ nonce: await shop.nonce(), checkoutId: cartId })).request,
      (await buyV2({ nonce: await shop.nonce(), checkoutId })).request,
    ]) {
      shop.card.sent.length = 0
      expect((await refused(shop, request))[1]).toMatch(/checkout is paid or being paid/)
    }
    const other = await shop.order((await buyV1({ nonce: await shop.nonce() })).request)
    await shop.work()
    expect((await shop.read(other)).status).toBe('succeeded')
  })

  test('an id or a limit that the database cannot hold: the order is declined, and nothing waits', async ({
    shop,
    executor,
  }) => {
    const nonce = await shop.nonce()
    // of AP2 0.1 no one can sign half a surrogate pair
    for (const id of [randomBytes(64).toString('hex').repeat(20), 'x\u0000', '\ud800', '\ufffd'])
      for (const buy of id === '\ud800' ? [buyV2] : [buyV1, buyV2])
        expect(await refused(shop, (await buy({ nonce, checkoutId: id })).request)).toEqual([
          ...['invalid_mandate', expect.stringMatching(/\S*id (is invalid: Too big|has U\+0000)/)],
        ])
    const recurrence = (max_occurrences: number) => [
      { type: 'payment.budget', currency: 'USD', max: 500 },
      { type: 'payment.amount_range', currency: 'USD', max: 20_000 },
      { type: 'payment.agent_recurrence', frequency: 'ON_DEMAND', max_occurrences },
    ]
    const many = await buyV2({ nonce, constraints: recurrence(2 ** 31) })
    expect((await refused(shop, many.request))[1]).toMatch(
      /^order has an id, name or limit that cannot be stored/,
    )
    const { rows } = await executor.query('SELECT FROM payment_orders WHERE done_at IS NULL')
    expect(rows).toEqual([])
    const fine = await shop.order((await buyV2({ nonce, constraints: recurrence(2 ** 31 - 1) })).request)
    await shop.work()
    expect((await shop.read(fine)).status).toBe('succeeded')
  })

  test('a nonce that Mason did not give out, gave to another business, or that is over or used', async ({
    shop,
    database,
  }) => {
    expect((await refused(shop, (await buyV2({ nonce: 'made up' })).request))[1]).toMatch(
      /nonce was not given out/,
    )
    const other = unique('other')
    await addBuyer(database, other)
    expect((await refused(shop, (await buyV2({ nonce: await shop.nonce(other) })).request))[1]).toMatch(
      /nonce/,
    )
    const over = await createNonce(database, shop.run.tenant, -1)
    expect((await refused(shop, (await buyV2({ nonce: over })).request))[1]).toMatch(/nonce/)
    const nonce = await shop.nonce()
    await shop.order((await buyV2({ nonce })).request)
    await shop.work()
    shop.card.sent.length = 0
    expect((await refused(shop, (await buyV2({ nonce })).request))[1]).toMatch(/nonce/)
  })

  test('the second use of a mandate, also with a mirrored signature and by another business', async ({
    shop,
    database,
  }) => {
    const { request } = await buyV2({ nonce: await shop.nonce() })
    const id = await shop.order(request)
    await shop.work()
    expect((await shop.read(id)).status).toBe('succeeded')
    shop.card.sent.length = 0
    const payment = editHop(request.payment, -1, mirrorSignature)
    expect(payment).not.toBe(request.payment)
    expect((await refused(shop, { ...request, payment }))[1]).toMatch(/mandate was used before/)
    const other = unique('other')
    await addBuyer(database, other)
    const foreign = await shop.order(request, null, { tenant: other, run_id: 'r' })
    await shop.work()
    expect((await shop.read(foreign, other)).status).toBe('declined')
    expect(shop.card.sent).toHaveLength(0)
  })
})

describe('a budget', () => {
  const budget = [
    { type: 'payment.budget', currency: 'USD', max: 500 },
    { type: 'payment.amount_range', currency: 'USD', max: 20_000 },
  ]

  test('counts what is reserved and spent, and what was declined is free again', async ({ shop }) => {
    const first = await buyV2({ nonce: await shop.nonce(), constraints: budget })
    const { open } = first
    shop.card.failures.push('decline')
    const results: (string | undefined)[] = []
    const next = async () => (await buyV2({ nonce: await shop.nonce(), constraints: budget, open })).request
    for (const request of [first.request, await next(), await next(), await next()]) {
      const id = await shop.order(request)
      await shop.work()
      const { outcome } = await shop.read(id)
      results.push(outcome?.code ?? outcome?.status)
    }
    expect(results).toEqual(['payment_declined', 'succeeded', 'succeeded', 'unresolved_constraint'])
  })

  test('with a recurrence allows the next payment in its time, by the ledger and not by what an order says', async ({
    shop,
  }) => {
    const constraints = [
      ...budget,
      { type: 'payment.agent_recurrence', frequency: 'MONTHLY', max_occurrences: 5 },
    ]
    const { request, open } = await buyV2({ nonce: await shop.nonce(), constraints })
    const id = await shop.order(request)
    await shop.work()
    expect((await shop.read(id)).status).toBe('succeeded')
    const again = await shop.order((await buyV2({ nonce: await shop.nonce(), constraints, open })).request)
    await shop.work()
    expect((await shop.read(again)).outcome?.message).toMatch(/can be used again on/)
  })
})

describe('what a provider never received', () => {
  test('of a challenge is asked for again, and after three answers an operator settles the payment', async ({
    shop,
    database,
  }) => {
    const { tenant } = shop.run
    await submitTo(database, tenant)
    const run = await mustClaim(database)
    shop.card.failures.push('challenge')
    const id = await pay(shop)
    let index = 0
    const answer = async () => {
      const call = { plan_seq: 20, index: index++ }
      const start = (sql: Sql) => orderAnswer(sql, run, call, id, 'sealed 123')
      const ask = () => startWaits(database, run, call, 0, [{ kind: 'payment', refId: id, start }])
      await shop.lose(id, ask)
      return (await ask())?.[0]?.outcome
    }
    expect(await answer()).toMatchObject({ status: 'challenge', challenge: { text: 'Type the code 123.' } })
    expect(await answer()).toMatchObject({ status: 'challenge' })
    expect(await answer()).toMatchObject({ status: 'unknown' })
    expect(await shop.read(id)).toMatchObject({ status: 'unknown' })
    // the executor ends the wait of an answer that comes too late
    expect(await answer()).toMatchObject({ status: 'unknown' })
    await orderForAdmin(database, tenant, id, {
      kind: 'settle',
      status: 'declined',
      note: 'not in their books',
    })
    await shop.work()
    expect(await shop.read(id)).toMatchObject({ status: 'declined' })
    expect(await shop.spending(id)).toEqual([0, 0, 0])
    expect(await shop.open(id)).toEqual([])
  })

  test('as the answer of a challenge whose payment another answer settled is over too', async ({
    shop,
    database,
  }) => {
    shop.card.failures.push('challenge')
    const id = await pay(shop)
    const answer = (index: number) =>
      orderAnswer(database, shop.run, { plan_seq: 21, index }, id, 'sealed 123')
    shop.card.failures.push('fail before')
    await answer(0)
    await answer(1)
    await shop.work()
    expect(await shop.read(id)).toMatchObject({ status: 'succeeded' })
    expect(await shop.open(id)).toEqual([])
  })

  test('of a capture, void or refund is declined, and can be ordered again', async ({ shop, database }) => {
    for (const [capture, change] of [
      [false, { kind: 'capture' }],
      [false, { kind: 'void' }],
      [true, { kind: 'refund', amount_minor: 19_900 }],
    ] as const) {
      const id = await pay(shop, capture)
      let order = ''
      const admin = async () => {
        order = await orderForAdmin(database, shop.run.tenant, id, change)
      }
      await shop.lose(id, admin)
      expect((await readOrder(database, order))?.outcome).toEqual({
        status: 'declined',
        message: `The ${change.kind} was declined: the provider never received it; order it again.`,
      })
      await admin()
      await shop.work()
      expect((await readOrder(database, order))?.outcome?.message).toBe(
        `The ${change.kind} of ${id} is done.`,
      )
      expect(await shop.open(id)).toEqual([])
    }
  })

  test('or did not answer clearly is settled by an operator, who says what became of it', async ({
    shop,
    database,
  }) => {
    const admin = (id: string, change: Parameters<typeof orderForAdmin>[3]) =>
      orderForAdmin(database, shop.run.tenant, id, change)
    for (const [status, ends] of [
      ['succeeded', 'succeeded'],
      ['declined', 'sent'],
    ] as const) {
      const id = await hold(shop)
      shop.card.failures.push('wrong amount')
      const capture = await admin(id, { kind: 'capture' })
      await shop.work()
      const settle = await admin(id, { kind: 'settle', status, note: 'by their books' })
      await shop.work()
      expect(await shop.read(id)).toMatchObject({ status: ends })
      for (const order of [capture, settle])
        expect((await readOrder(database, order))?.outcome).toMatchObject({ status })
      expect(await shop.open(id)).toEqual([])
      expect((await shop.trail(id)).events.at(-1)).toMatchObject({
        kind: 'settled',
        detail: { order_id: settle, operation: 'capture', note: 'by their books' },
      })
    }
    const paid = await pay(shop)
    shop.card.failures.push('wrong amount')
    const refund = await admin(paid, { kind: 'refund', amount_minor: 900 })
    await shop.work()
    await admin(paid, { kind: 'settle', status: 'declined', note: 'not in their books' })
    await shop.work()
    expect((await readOrder(database, refund))?.outcome?.message).toMatch(/an operator found/)
    expect(await shop.read(paid)).toMatchObject({ status: 'succeeded', refunded_minor: 0 })
    const nothing = await admin(paid, { kind: 'settle', status: 'declined', note: 'again' })
    await shop.work()
    expect((await readOrder(database, nothing))?.outcome).toEqual({
      status: 'refused',
      message:
        'The payment has the status succeeded, and nothing of it is unclear: there is nothing to settle.',
    })
  })
})

describe('a run that is canceled', () => {
  test('releases what was not sent, names what was, and what is released is never sent', async ({
    shop,
    database,
  }) => {
    shop.card.failures.push('pending')
    const sent = await pay(shop)
    const { request } = await buyV2({ nonce: await shop.nonce() })
    const unsent = await shop.order(request)
    const cancel = () =>
      database.asBusiness(shop.run.tenant, (sql) => closeWaits(sql, shop.run.tenant, shop.run.run_id))
    expect(await cancel()).toEqual({ payments: [sent] })
    await shop.work()
    expect(await shop.read(unsent)).toMatchObject({ status: 'released', outcome: { status: 'released' } })
    expect(shop.card.sent).toHaveLength(1)
  })

  test('between reservation and send gives the reservation back', async ({ shop, database }) => {
    const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    const onStep = async (step: ExecutorStep) => {
      if (step === 'reserved')
        await database.asBusiness(shop.run.tenant, (sql) => closeWaits(sql, shop.run.tenant, shop.run.run_id))
    }
    await shop.work({ onStep })
    expect(await shop.read(id)).toMatchObject({ status: 'released' })
    expect(await shop.spending(id)).toEqual([0, 0, 0])
    expect(shop.card.sent).toHaveLength(0)
  })
})

describe('the loops of an executor', () => {
  test('go on beside one that throws each time, whose warnings are few, and beside one that never ends', async ({
    shop,
    executor,
  }) => {
    const never = deferred<null>()
    const deciders: Record<string, () => Promise<unknown>> = {
      throws: () => Promise.reject(new Error('a consent that cannot be decided')),
      hangs: () => never.promise,
    }
    for (const decide of Object.values(deciders)) {
      let passes = 0
      const warnings: Record<string, unknown>[] = []
      const log = { ...silentLog, warn: (detail: Record<string, unknown>) => void warnings.push(detail) }
      const decideConsent = () => {
        passes++
        return decide()
      }
      const running = startExecutor({ ...shop.services, decideConsent, log: log as never }, { idleMs: 1 })
      const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
      await expect.poll(async () => (await shop.read(id)).status).toBe('succeeded')
      if (decide === deciders.throws) await expect.poll(() => passes).toBeGreaterThan(40)
      never.resolve(null)
      await running.stop()
      const said = warnings.filter(({ work }) => work === 'consents').length
      expect(said).toBe(decide === deciders.throws ? 1 + Math.floor(Math.log2(passes)) : 0)
    }
    expect((await executor.query('SELECT FROM payment_orders WHERE done_at IS NULL')).rows).toEqual([])
  })

  test('sign the other agent cards beside rows that are none', async ({ shop, database, executor }) => {
    const issuer = 'https://mason.example'
    const card = (interfaces: unknown) =>
      JSON.stringify({ supportedInterfaces: interfaces, skills: [], capabilities: {} })
    const payloads = [
      ...['null', '7', '"text"', '{"1.0":"no JSON"}', '{"1.0":null}', '{"1.0":{"toString":1}}'],
      JSON.stringify({ '1.0': card([null]) }),
      JSON.stringify({ '1.0': card([{ url: { toString: 1 } }]) }),
      JSON.stringify({ '1.0': card([{ url: `${issuer}/a2a/agents/a` }]) }),
    ]
    const tenants: string[] = []
    for (const payload of payloads) {
      const tenant = unique('carder')
      tenants.push(tenant)
      await database.query('INSERT INTO businesses (tenant) VALUES ($1)', [tenant])
      await database.query(`INSERT INTO agent_cards (tenant, card, payload) VALUES ($1, '{}', $2)`, [
        tenant,
        payload,
      ])
    }
    for (const _ of payloads) await signNextCard(executor, createCardSigner(shop.services.signer), silentLog)
    const { rows } = await database.query<{ signatures: object }>(
      'SELECT signatures FROM agent_cards WHERE tenant = ANY ($1) ORDER BY array_position($1, tenant)',
      [tenants],
    )
    expect(rows.map(({ signatures }) => Object.keys(signatures))).toEqual([
      ...payloads.slice(1).map(() => []),
      ['1.0'],
    ])
  })
})

describe('an executor', () => {
  test.for(['taken', 'verified', 'shown', 'reserved', 'sending', 'answered', 'settled'] as const)(
    'that dies when it has %s is followed by one that pays once',
    async (step, { shop }) => {
      const shown: string[] = []
      const present = async (_request: object, _hash: string, key: string) => {
        shown.push(key)
        return { credential: null }
      }
      const openProvider = async () => ({ ...shop.card.provider, ...(step === 'shown' && { present }) })
      const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
      let isDead = false
      const die = (at: ExecutorStep) => {
        if (at === step && !isDead) {
          isDead = true
          throw new Error('the executor died')
        }
      }
      await expect
        .poll(async () => {
          await shop.work({ onStep: die, openProvider })
          await shop.due()
          await shop.free()
          return (await shop.read(id)).status
        })
        .toBe('succeeded')
      expect(isDead).toBe(true)
      // again, under the same id
      expect(shown).toEqual(step === 'shown' ? [shown[0], shown[0]] : [])
      expect(shop.card.total()).toBe(19_900)
      expect(await shop.spending(id)).toEqual([0, 19_900, 1])
    },
  )

  test('ends an order of an earlier version to show mandates, and shows them to no one', async ({
    shop,
    buyer,
    executor,
  }) => {
    const id = unique('ord')
    const columns = 'order_id, tenant, kind, payment_id, request'
    const values = [id, buyer, 'present', unique('pay'), '{}']
    await executor.query(`INSERT INTO payment_orders (${columns}) VALUES ($1, $2, $3, $4, $5)`, values)
    const openProvider = async () => {
      throw new Error('no provider is needed')
    }
    await shop.work({ openProvider })
    const statement = 'SELECT outcome, done_at IS NOT NULL AS done FROM payment_orders WHERE order_id = $1'
    const { rows } = await executor.query(statement, [id])
    expect(rows).toMatchObject([{ done: true, outcome: { status: 'presented' } }])
  })

  test('that was frozen neither sends nor settles what another has taken over', async ({ shop }) => {
    const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    let isFrozen = true
    const onStep = async (step: ExecutorStep) => {
      if (step !== 'sending' || !isFrozen) return
      isFrozen = false
      await shop.due()
      await shop.work()
    }
    await shop.work({ onStep })
    expect(await shop.read(id)).toMatchObject({ status: 'succeeded' })
    expect(shop.card.sent).toHaveLength(1)
    expect((await shop.trail(id)).events.map(({ kind }) => kind)).toEqual(['reserved', 'sent', 'succeeded'])
  })

  test('that was frozen does not send beside another that sends again', async ({ shop }) => {
    const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    let isFrozen = true
    const onStep = async (step: ExecutorStep) => {
      if (step !== 'sending' || !isFrozen) return
      isFrozen = false
      await shop.due()
      shop.card.failures.push('fail before')
      await shop.work()
      await shop.rest()
    }
    await shop.work({ onStep })
    expect(shop.card.sent).toHaveLength(1)
    await expect
      .poll(async () => {
        await shop.due()
        await shop.work()
        return (await shop.read(id)).status
      })
      .toBe('succeeded')
    expect(shop.card.total()).toBe(19_900)
  })

  test('that was frozen with an answer writes nothing while another has the payment', async ({
    shop,
    executor,
  }) => {
    const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    let taken: unknown = null
    const onStep = async (step: ExecutorStep) => {
      // it also answers for payments of earlier tests that are still unknown
      if (step !== 'answered' || taken) return
      // in one statement: a payment whose lease has ended is taken again by the executor's own loop
      taken = await queryOne(
        executor,
        `UPDATE payments SET epoch = epoch + 1, lease_until = clock_timestamp() + interval '1 minute'
         WHERE payment_id = $1 RETURNING payment_id, status`,
        [id],
      )
    }
    await shop.work({ onStep })
    expect(taken).toMatchObject({ payment_id: id, status: 'sent' })
    expect(await shop.read(id)).toMatchObject({ status: 'sent', outcome: null })
    await shop.due()
    await shop.work()
    expect((await shop.read(id)).status).toBe('succeeded')
    expect(shop.card.total()).toBe(19_900)
  })

  test('that was frozen refuses nothing that another has taken', async ({ shop, executor }) => {
    const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    const onStep = async (step: ExecutorStep) => {
      if (step !== 'verified') return
      await shop.free()
      expect(await takeOrders(executor, 100, 60_000)).toMatchObject([{ payment_id: id, takes: 2 }])
    }
    // this one does not know the provider
    const openProvider = async () => Promise.reject(new MasonError('not_found', 'there is no such provider'))
    const services = { ...shop.services, openProvider, onStep }
    const [order] = await takeOrders(executor, 100, 60_000)
    await createPaymentExecutor(services, new AbortController().signal)
      .runOrder(order as TakenOrder)
      .catch((error: unknown) => expect(error).toMatchObject({ code: 'lease_lost' }))
    expect(await shop.read(id)).toMatchObject({ status: 'ordered', outcome: null })
    await shop.free()
    await shop.work()
    expect((await shop.read(id)).status).toBe('succeeded')
  })

  test('has an order and its payment alone until its lease is over', async ({ shop, executor }) => {
    const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    const seen: unknown[] = []
    const onStep = async (step: ExecutorStep) => {
      if (step === 'taken') seen.push(await takeOrders(executor, 100, 1000))
      if (step !== 'sending') return
      const others = await claimOpenPayments(executor, 100, 1000)
      seen.push(
        others.filter((one) => one.payment_id === id),
        await claimPayment(executor, id, 1000),
      )
    }
    await shop.rest()
    await shop.work({ onStep })
    expect(seen).toEqual([[], [], null])
    expect((await shop.read(id)).status).toBe('succeeded')
  })

  test('whose lease is over by its own clock sends nothing', async ({ shop }) => {
    let now = 0
    const clock = { ...shop.services.clock, monotonicMs: () => now }
    const onStep = (step: ExecutorStep) => {
      if (step === 'sending') now += 24_001
    }
    const id = await shop.order((await buyV2({ nonce: await shop.nonce() })).request)
    await shop.work({ clock, onStep })
    expect(shop.card.sent).toHaveLength(0)
    await shop.due()
    await shop.work()
    expect((await shop.read(id)).status).toBe('succeeded')
  })
})

test('a run that waits for a payment is woken and goes on with its outcome, and with a challenge before', async ({
  shop,
  database,
}) => {
  const { tenant } = shop.run
  await submitTo(database, tenant)
  const run = await mustClaim(database)
  const { request } = await buyV2({ nonce: await shop.nonce() })
  const paymentId = newPaymentId()
  const call = { plan_seq: 1, index: 0 }
  const wait = async (at: typeof call) => {
    const start = async (sql: Sql) => void (await orderPayment(sql, run, at, request, { paymentId }))
    const fact = { kind: 'payment' as const, refId: paymentId, start: at === call ? start : async () => {} }
    await startWaits(database, run, at, 0, [fact])
    return async () =>
      (await startWaits(database, run, at, 0, [fact]))?.[0]?.outcome as { status: string } | null
  }
  const readFirst = await wait(call)
  shop.card.failures.push('challenge')
  const woken: RunKey[] = []
  const wake = (one: RunKey) => void woken.push(one)
  await shop.work({ wake })
  expect(await readFirst()).toMatchObject({ status: 'challenge', challenge: { type: 'otp' } })
  const readSecond = await wait({ plan_seq: 3, index: 0 })
  await orderAnswer(database, run, { plan_seq: 3, index: 0 }, paymentId, 'sealed 123')
  await shop.work({ wake })
  expect(await readSecond()).toMatchObject({ status: 'succeeded', payment_id: paymentId })
  expect(woken).toEqual([run, run].map(({ tenant, run_id }) => ({ tenant, run_id })))
})

test.runIf(process.env.MASON_TEST_BACKEND === 'served')(
  'a login of workers orders payments, and neither settles, refunds nor captures one (on servers only: PGlite has one login)',
  async ({ shop, backend }) => {
    const { workerUrl } = loginsOf((backend.config.database as { url: string }).url)
    const worker = openPostgresDatabase({ url: workerUrl, roles: loginRoles.worker })
    const order = (kind: 'capture' | 'void') => codeOf(orderForAdmin(worker, shop.run.tenant, 'x', { kind }))
    expect([await order('capture'), await order('void')]).toEqual(['42501', '42501'])
    const note = { kind: 'settle', status: 'succeeded', note: '' } as const
    expect(await codeOf(orderForAdmin(worker, shop.run.tenant, 'x', note))).toBe('42501')
    const { request } = await buyV2({ nonce: await shop.nonce() })
    expect(await orderPayment(worker, shop.run, { plan_seq: 7, index: 0 }, request)).toMatch(/^pay_/)
    await worker.close()
    await shop.work()
  },
)
