// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import {
  addOpenMandate,
  createOpenMandateStore,
} from '../../../../src/features/payments/consent/open-mandate-rows.ts'
import type {
  ExecutorServices,
  ExecutorStep,
} from '../../../../src/features/payments/executor/executor-services.ts'
import { createNonce, orderPayment } from '../../../../src/features/payments/ledger/orders.ts'
import { readPayment } from '../../../../src/features/payments/ledger/payment-queries.ts'
import type { JsonObject } from '../../../../src/features/payments/mandates/tokens/encoding.ts'
import { conceal, issueMandate } from '../../../../src/features/payments/mandates/tokens/issue.ts'
import { signJws } from '../../../../src/features/payments/mandates/tokens/jws.ts'
import type { SigningKey } from '../../../../src/features/payments/mandates/tokens/keys.ts'
import {
  createOpenMandates,
  type OpenMandatePair,
  signOpenMandates,
} from '../../../../src/features/payments/mandates/v2/open-mandates.ts'
import { newOpenMandateId } from '../../../../src/features/payments/ports/ids.ts'
import type { OpenMandateLimits } from '../../../../src/features/payments/ports/run-mandates.ref.ts'
import { queryOne } from '../../../../src/infra/database/database.ts'
import { unique } from '../../../support/backend.ts'
import { checkout, createParty, parties, shop } from '../../../support/mandate-parties.ts'
import { createTestProvider } from '../../../support/payment-provider.ts'
import { drain, paymentTest } from '../../../support/payments.ts'
import { addBuyer, createExecutorServices } from '../../../support/purchases.ts'
import { codeOf } from '../../../support/runs.ts'

const nowS = (): number => Math.floor(Date.now() / 1000)
const surface = { issuer: 'https://surface.example', key: parties.surface.signing }
const runsAtOnce = 20

const toLimits = (changes: Partial<OpenMandateLimits> = {}): OpenMandateLimits => ({
  merchants: [shop],
  items: [{ any_of: [{ id: 'shoe', title: null }], quantity: 1 }],
  ...{ currency: 'USD', max_minor: 19_900, budget_minor: null, recurrence: null },
  instrument: { id: 'card', type: 'card' },
  expires_at: nowS() + 3600,
  ...changes,
})
/** Signs limits as a surface does that the business trusts, for the agent. */
const sign = (limits: OpenMandateLimits, key: SigningKey = surface.key): Promise<OpenMandatePair> =>
  signOpenMandates(
    createOpenMandates(limits),
    parties.agent.jwk,
    { issuer: surface.issuer, iat: nowS() - 60 },
    key,
  )

/** When an open mandate is revoked, and what becomes of the payment under it. */
const revocations = [
  ['verified', 'declined'],
  ['reserved', 'released'],
] as const

const test = paymentTest
  .extend('tenant', { scope: 'file' }, async ({ database }) => {
    const tenant = unique('buyer')
    await addBuyer(database, tenant)
    return tenant
  })
  .extend('agent', async ({ database, executor, tenant }) => {
    const card = createTestProvider()
    const isOurs = (jwk: unknown): boolean => (jwk as JsonObject)?.x === parties.agent.jwk.x
    const services = createExecutorServices(executor, database, card.provider, {
      mandateTime: () => new Date(),
      agentKey: async (jwk) => (isOurs(jwk) ? parties.agent.signing : null),
    })
    let index = 0
    const run = { tenant, run_id: unique('run') }
    const asBusiness = <T>(work: Parameters<typeof database.asBusiness<T>>[1]) =>
      database.asBusiness(tenant, work)
    return {
      ...{ card, services, tenant },
      /** A row as the executor leaves it once the user has signed. */
      async store(pair: OpenMandatePair, expiresAt = nowS() + 3600): Promise<string> {
        const row = { id: newOpenMandateId(), tenant, user_id: 'ann', run_id: 'run', provider_id: 'card' }
        await asBusiness((sql) =>
          addOpenMandate(sql, row, { sealed: 'sealed tok_1', question: 'run/1/0' }, expiresAt),
        )
        await executor.query(
          `UPDATE open_mandates SET status = 'active', checkout = $2, payment = $3 WHERE mandate_id = $1`,
          [row.id, pair.checkout, pair.payment],
        )
        return row.id
      },
      /** Orders a checkout of the merchant under a mandate. */
      async order(
        open_mandate_id: string,
        amount = 19_900,
        changes: JsonObject = {},
        of = run,
        more: JsonObject = {},
      ) {
        const totals = [{ type: 'total', amount }]
        const jwt = await signJws(
          { ...checkout, id: unique('order'), totals, ...changes },
          parties.merchant.signing,
          {
            typ: 'JWT',
          },
        )
        return database.asBusiness(of.tenant, async (sql) => {
          const nonce = await createNonce(sql, of.tenant)
          const request = { version: '0.2-open' as const, open_mandate_id, checkout: jwt, nonce, ...more }
          return orderPayment(sql, of, { plan_seq: 1, index: index++ }, request)
        })
      },
      read: async (id: string) =>
        (await asBusiness((sql) => readPayment(sql, tenant, id))) ?? expect.fail(id),
      revoke: (id: string) => createOpenMandateStore(database).revoke(tenant, id),
      work: (changes: Partial<ExecutorServices> = {}, executors = 1) =>
        drain({ ...services, ...changes }, executors),
      due: () =>
        executor.query(
          `UPDATE payments SET lease_until = NULL, next_at = clock_timestamp() WHERE tenant = $1 AND status IN ('reserved', 'sent', 'unknown')`,
          [tenant],
        ),
      free: () =>
        executor.query(
          'UPDATE payment_orders SET lease_until = NULL, next_at = clock_timestamp() WHERE done_at IS NULL',
        ),
      statuses: async (mandateId: string) => {
        const { rows } = await executor.query<{ status: string }>(
          `SELECT p.status FROM payments p JOIN payment_orders o USING (order_id) WHERE o.open_mandate_id = $1 ORDER BY 1`,
          [mandateId],
        )
        return rows.map(({ status }) => status)
      },
    }
  })

describe('an open mandate', () => {
  test('pays what the merchant signed, with chains that the agent closed, and what was sealed for it', async ({
    agent,
    executor,
  }) => {
    const id = await agent.order(await agent.store(await sign(toLimits())))
    await agent.work()
    expect(await agent.read(id)).toMatchObject({
      ...{ status: 'succeeded', version: '0.2', amount: { minor: 19_900, currency: 'USD' } },
      payee: { id: shop.website },
    })
    expect(JSON.parse(agent.card.sent[0]?.request ?? '')).toMatchObject({ credential: 'tok_1' })
    const { rows } = await executor.query<{ kind: string; raw: string }>(
      'SELECT kind, raw FROM mandates WHERE payment_id = $1 ORDER BY kind',
      [id],
    )
    expect(rows.map(({ kind, raw }) => [kind, raw.split('~~').length])).toEqual([
      ['checkout', 2],
      ['payment', 2],
    ])
  })

  test.for<[string, Partial<OpenMandateLimits>, number, JsonObject, string]>([
    ['a higher amount', {}, 19_901, {}, 'amount_above_max|199.01 USD is more'],
    ['another currency', { currency: 'EUR' }, 19_900, {}, 'pay in EUR'],
    ['more than its budget', { budget_minor: 19_899 }, 19_900, {}, 'left of the budget'],
    [
      'an item that it does not name',
      {},
      19_900,
      { line_items: [{ item: { id: 'boot' }, quantity: 1 }] },
      'boot',
    ],
    ['more items', {}, 19_900, { line_items: [{ item: { id: 'shoe' }, quantity: 2 }] }, 'reduce'],
    [
      'another merchant',
      { merchants: [{ id: 'm2', name: 'Another', website: null }] },
      19_900,
      {},
      'allows the',
    ],
  ])(
    'brings the person back for %s, and moves no money',
    async ([, limits, amount, changes, why], { agent }) => {
      const id = await agent.order(await agent.store(await sign(toLimits(limits))), amount, changes)
      await agent.work()
      expect(await agent.read(id)).toMatchObject({
        ...{ status: 'declined', outcome: { code: 'unresolved_constraint' } },
      })
      expect((await agent.read(id)).outcome?.message).toMatch(new RegExp(why))
      expect(agent.card.sent).toEqual([])
    },
  )

  test('takes no amount, payee or instrument from an order: a worker names a checkout, and nothing else counts', async ({
    agent,
  }) => {
    const mandate = await agent.store(await sign(toLimits()))
    const more = {
      payment_amount: { amount: 1, currency: 'USD' },
      payee: { id: 'evil', name: 'Evil' },
      provider_id: 'evil',
    }
    const id = await agent.order(mandate, 19_900, {}, undefined, more)
    await agent.work()
    expect(await agent.read(id)).toMatchObject({
      ...{ status: 'succeeded', amount: { minor: 19_900 }, payee: { id: shop.website }, provider_id: 'card' },
    })
  })

  test('that was forged, whose constraint is unknown, or whose payee is not disclosed pays nothing', async ({
    agent,
  }) => {
    const stranger = createParty('surface-1')
    const genuine = await sign(toLimits())
    const reissue = (constraint: JsonObject) => {
      const content = JSON.parse(createOpenMandates(toLimits()).payment)
      const reference = { type: 'payment.reference', conditional_transaction_id: 'x' }
      const constraints = [...content.constraints, reference, constraint]
      const claims = { iss: surface.issuer, iat: nowS() - 60 }
      return issueMandate({ ...content, constraints, cnf: { jwk: parties.agent.jwk } }, surface.key, claims)
    }
    const payees =
      genuine.payment.split('~').find((text) => Buffer.from(text, 'base64url').includes(shop.website)) ?? ''
    const cases: [OpenMandatePair, string, RegExp][] = [
      [await sign(toLimits(), stranger.signing), 'invalid_credential', /signature|was not made/],
      [
        { ...genuine, payment: (await sign(toLimits())).payment },
        'unresolved_constraint',
        /not the hash of the open/,
      ],
      [
        { ...genuine, payment: await reissue({ type: 'payment.moon_phase' }) },
        'unresolved_constraint',
        /unknown type/,
      ],
      [{ ...genuine, payment: await reissue(conceal({}) as JsonObject) }, 'unresolved_constraint', /payment/],
      [
        { ...genuine, payment: genuine.payment.replace(`~${payees}`, '') },
        'unresolved_constraint',
        /allows the payee/,
      ],
      [{ ...genuine, payment: 'a.b.c~' }, 'invalid_credential', /payment|token|hops/],
    ]
    for (const [pair, code, message] of cases) {
      const id = await agent.order(await agent.store(pair))
      await agent.work()
      expect(await agent.read(id)).toMatchObject({ status: 'declined', outcome: { code } })
      expect((await agent.read(id)).outcome?.message).toMatch(message)
    }
    expect(agent.card.sent).toEqual([])
  })

  test('is closed by the key that it names alone: another agent key, or one of a stranger, pays nothing', async ({
    agent,
  }) => {
    const mandate = await agent.store(await sign(toLimits()))
    const wrong = await agent.order(mandate)
    await agent.work({ agentKey: async () => parties.helper.signing })
    expect((await agent.read(wrong)).outcome).toMatchObject({ code: 'invalid_credential' })
    const pair = createOpenMandates(toLimits())
    const issued = { issuer: surface.issuer, iat: nowS() - 60 }
    const foreign = await agent.store(await signOpenMandates(pair, parties.helper.jwk, issued, surface.key))
    const id = await agent.order(foreign)
    await agent.work()
    expect((await agent.read(id)).outcome?.message).toMatch(/no key of this agent/)
    expect(agent.card.sent).toEqual([])
  })

  test('pays nothing once it is revoked, deleted or over, and for no other business', async ({
    agent,
    database,
  }) => {
    const limits = toLimits({ budget_minor: 100_000 })
    const cases: [string, (id: string) => Promise<unknown>][] = [
      ['revoked', agent.revoke],
      ['deleted', (id) => database.query('DELETE FROM open_mandates WHERE mandate_id = $1', [id])],
    ]
    for (const [what, end] of cases) {
      const mandate = await agent.store(await sign(limits))
      const before = await agent.order(mandate)
      await end(mandate)
      const after = await agent.order(mandate)
      await agent.work()
      expect((await agent.read(before)).status).toBe('released')
      expect((await agent.read(after)).outcome?.message).toMatch(
        what === 'revoked' ? /was revoked/ : /or deleted/,
      )
    }
    const over = await agent.order(await agent.store(await sign(limits), nowS() - 1))
    const other = { tenant: unique('other'), run_id: 'run' }
    await addBuyer(database, other.tenant)
    const foreign = await agent.order(await agent.store(await sign(limits)), 19_900, {}, other)
    await agent.work()
    expect((await agent.read(over)).outcome?.message).toMatch(/is over/)
    const payment = await database.asBusiness(other.tenant, (sql) => readPayment(sql, other.tenant, foreign))
    expect(payment?.outcome?.message).toMatch(/was not signed/)
    expect(agent.card.sent).toEqual([])
  })

  test.for(revocations)(
    'that is revoked when a payment under it was %s pays nothing',
    async ([step, status], { agent }) => {
      const mandate = await agent.store(await sign(toLimits()))
      const id = await agent.order(mandate)
      await agent.work({
        onStep: async (at: ExecutorStep) => void (at === step && (await agent.revoke(mandate))),
      })
      expect((await agent.read(id)).status).toBe(status)
      expect(agent.card.sent).toEqual([])
      expect(await agent.revoke(mandate)).toMatchObject({ status: 'revoked', payments: 0 })
    },
  )

  test('keeps the time at which it was revoked first, and what was sent goes on', async ({ agent }) => {
    const mandate = await agent.store(await sign(toLimits()))
    const id = await agent.order(mandate)
    await agent.work({
      onStep: async (at: ExecutorStep) => void (at === 'answered' && (await agent.revoke(mandate))),
    })
    expect((await agent.read(id)).status).toBe('succeeded')
    const first = (await agent.revoke(mandate)).revoked_at
    expect((await agent.revoke(mandate)).revoked_at).toBe(first)
    expect(await codeOf(agent.revoke('mnd_none'))).toBe('not_found')
  })
})

describe('closed mandates of one open mandate', () => {
  test.for(['taken', 'verified', 'reserved', 'sending', 'answered', 'settled'] as const)(
    'are one payment, also where the executor dies when it has %s',
    async (step, { agent }) => {
      const mandate = await agent.store(await sign(toLimits()))
      const id = await agent.order(mandate)
      let isDead = false
      const onStep = (at: ExecutorStep) => {
        if (at !== step || isDead) return
        isDead = true
        throw new Error('the executor died')
      }
      await expect
        .poll(async () => {
          await agent.work({ onStep })
          await agent.due()
          await agent.free()
          return (await agent.read(id)).status
        })
        .toBe('succeeded')
      expect([isDead, agent.card.total(), await agent.statuses(mandate)]).toEqual([
        true,
        19_900,
        ['succeeded'],
      ])
    },
  )

  test('pay once where it has neither budget nor recurrence: of two triggers at once, one', async ({
    agent,
  }) => {
    const mandate = await agent.store(await sign(toLimits()))
    await Promise.all([agent.order(mandate), agent.order(mandate)])
    await agent.work({}, 2)
    expect(await agent.statuses(mandate)).toEqual(['declined', 'succeeded'])
    expect(agent.card.total()).toBe(19_900)
  })

  test('never take more than its budget, and never two are without an outcome: 20 runs on two executors', async ({
    agent,
    executor,
  }) => {
    const mandate = await agent.store(await sign(toLimits({ budget_minor: 100_000 })))
    const live: number[] = []
    const { send } = agent.card.provider
    const provider = {
      ...agent.card.provider,
      async send(...args: Parameters<typeof send>) {
        const row = await queryOne<{ live: number }>(
          executor,
          `SELECT count(*)::int AS live FROM payments WHERE open_mandate_id = $1 AND status IN ('reserved', 'sent', 'unknown')`,
          [mandate],
        )
        live.push(row?.live ?? 0)
        return send(...args)
      },
    }
    agent.card.failures.push('decline', 'fail after')
    await Promise.all(Array.from({ length: runsAtOnce }, () => agent.order(mandate)))
    await expect
      .poll(
        async () => {
          await agent.work({ openProvider: async () => provider }, 2)
          await agent.due()
          return (await agent.statuses(mandate)).filter((one) => one === 'succeeded' || one === 'declined')
            .length
        },
        { timeout: 90_000 },
      )
      .toBe(runsAtOnce)
    expect(agent.card.total()).toBe(99_500)
    expect((await agent.statuses(mandate)).filter((one) => one === 'succeeded')).toHaveLength(5)
    expect(Math.max(...live)).toBe(1)
  })

  test('that were declined free it for the next one; one that is unknown holds it, and the person is asked', async ({
    agent,
    executor,
  }) => {
    const mandate = await agent.store(await sign(toLimits()))
    agent.card.failures.push('decline')
    const declined = await agent.order(mandate)
    await agent.work()
    expect((await agent.read(declined)).outcome).toMatchObject({ code: 'payment_declined' })
    agent.card.failures.push('pending')
    const pending = await agent.order(mandate)
    await agent.work()
    expect((await agent.read(pending)).status).toBe('sent')
    const next = await agent.order(mandate)
    await executor.query(`UPDATE payment_orders SET takes = 1000 WHERE payment_id = $1`, [next])
    await agent.work()
    expect((await agent.read(next)).outcome).toMatchObject({
      ...{
        status: 'declined',
        code: 'unresolved_constraint',
        message: expect.stringMatching(/without an outcome/),
      },
    })
    expect(agent.card.sent).toHaveLength(2)
  })

  test('cannot be replayed, with its own nonce or another one', async ({
    agent,
    executor,
    database,
    tenant,
  }) => {
    const id = await agent.order(await agent.store(await sign(toLimits({ budget_minor: 100_000 }))))
    await agent.work()
    const row = await queryOne<{ request: { nonce: string } }>(
      executor,
      'SELECT request FROM payment_orders WHERE payment_id = $1',
      [id],
    )
    const { rows } = await executor.query<{ raw: string }>(
      'SELECT raw FROM mandates WHERE payment_id = $1 ORDER BY kind',
      [id],
    )
    const [checkoutChain = '', payment = ''] = rows.map(({ raw }) => raw)
    const replays = [
      row?.request.nonce ?? '',
      await database.asBusiness(tenant, (sql) => createNonce(sql, tenant)),
    ]
    for (const [index, nonce] of replays.entries()) {
      const request = {
        version: '0.2' as const,
        payment,
        checkout: checkoutChain,
        provider_id: 'card',
        nonce,
      }
      const replayed = await database.asBusiness(tenant, (sql) =>
        orderPayment(sql, { tenant, run_id: unique('replay') }, { plan_seq: 1, index }, request),
      )
      await agent.work()
      expect((await agent.read(replayed)).status).toBe('declined')
    }
    expect(agent.card.sent).toHaveLength(1)
  })

  test('are one without an outcome whatever a statement says', async ({ agent, executor }) => {
    const mandate = await agent.store(await sign(toLimits()))
    const insert = (name: string) =>
      executor.query(
        `INSERT INTO payments (payment_id, tenant, order_id, status, mandate_key, mandate_hash, spend_id, amount_minor, payee_issuer,
           checkout_id, open_mandate_id) SELECT $1, $2, $1, 'unknown', 'k', $1, spend_id, 1, 's', $1, $3 FROM mandate_spend LIMIT 1`,
        [name, agent.tenant, mandate],
      )
    await executor.query(`INSERT INTO mandate_spend (spend_id, tenant, currency) VALUES ($1, $2, 'USD')`, [
      mandate,
      agent.tenant,
    ])
    await insert(unique('first'))
    expect(await codeOf(insert(unique('second')))).toBe('23505')
    await executor.query(`UPDATE payments SET next_at = 'infinity' WHERE tenant = $1`, [agent.tenant])
  })
})
