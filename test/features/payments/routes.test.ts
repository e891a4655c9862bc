// backends: either

import { describe, expect } from 'vitest'
import { orderForAdmin } from '../../../src/features/payments/ledger/orders.ts'
import { createPaymentsApi } from '../../../src/features/payments/payments-api.ts'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import { unique } from '../../support/backend.ts'
import { adminToken, runtimeTest } from '../../support/integration-test.ts'
import {
  addPayment,
  carryOut,
  newProvider,
  openExecutorDatabase,
  publishPaymentKeys,
} from '../../support/payments.ts'

const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, { worker: false })
  .extend('executor', { scope: 'file' }, ({ backend, database }, { onCleanup }) => {
    const executor = openExecutorDatabase(backend, database, 2)
    onCleanup(() => executor.close())
    return executor
  })

test.beforeAll(({ backend, database }) => publishPaymentKeys(backend, database).then(() => {}))

describe('GET /v1/payments/{id}', () => {
  test('shows a business its own payment with its trail, and of another one that there is none', async ({
    server,
    runtime,
    executor,
  }) => {
    const id = await addPayment(executor, 'succeeded')
    const tokenOf = async (business_id: string) =>
      (await runtime.admin.tokens.create({}, { business_id, label: 'x', roles: ['read'] })).token
    const { status, body } = await server.call('GET', `/v1/payments/${id}`, {
      token: await tokenOf('default'),
    })
    expect([status, body]).toMatchObject([
      200,
      {
        payment: { id, status: 'succeeded', amount: { minor: 1999, currency: 'USD' }, refunded_minor: 0 },
        events: [{ kind: 'verified', detail: { key: 'k' }, at: expect.any(String) }],
      },
    ])
    const other = await server.call('GET', `/v1/payments/${id}`, { token: await tokenOf(unique('other')) })
    expect([other.status, other.body.code]).toEqual([404, 'not_found'])
    expect((await server.call('GET', '/v1/payments/pay_none', { token: adminToken })).status).toBe(404)
  })
})

describe('an admin', () => {
  test('refunds what is left of a payment by an order, and not more', async ({
    server,
    executor,
    runtime,
  }) => {
    const id = await addPayment(executor, 'succeeded', 500)
    const refund = (json: object, token = adminToken) =>
      server.call('POST', `/admin/v1/payments/${id}/refund`, { token, json })
    const [{ status, body }, order] = await Promise.all([refund({}), carryOut(executor, id)])
    expect(order).toEqual({ kind: 'refund', request: { amount_minor: 1499 } })
    expect([status, body]).toEqual([
      200,
      {
        ...{ order_id: expect.any(String), payment_id: id },
        outcome: { status: 'done', message: 'It is done.' },
      },
    ])
    for (const amount of [1500, 0, -1, 1.5])
      expect([amount, (await refund({ amount })).body.errors?.[0]?.pointer]).toEqual([amount, '/amount'])
    const { token } = await runtime.admin.tokens.create(
      {},
      {
        business_id: 'default',
        label: 'x',
        roles: ['admin'],
      },
    )
    expect((await refund({}, token)).status).toBe(403)
  })

  test('settles only a payment that is unknown or has an open operation, with who looked where', async ({
    server,
    executor,
  }) => {
    const settle = (id: string, json: object) =>
      server.call('POST', `/admin/v1/payments/${id}/settle`, { token: adminToken, json })
    const decided = { status: 'succeeded', note: 'Ann looked', provider_ref: 'ch_1' }
    for (const status of ['succeeded', 'sent']) {
      const { status: code, body } = await settle(await addPayment(executor, status), decided)
      expect([code, body.detail]).toEqual([422, expect.stringContaining(`is ${status}`)])
    }
    const { body: provider } = await server.call('POST', '/admin/v1/providers', {
      token: adminToken,
      json: newProvider(),
    })
    const silent = await addPayment(executor, 'sent')
    const setAge = (ms: number) =>
      executor.query(
        `UPDATE payments SET provider_id = $2, created_at = clock_timestamp() - $3::float8 * interval '1 millisecond' WHERE payment_id = $1`,
        [silent, provider.id, ms],
      )
    await setAge(provider.window_ms / 2)
    expect((await settle(silent, decided)).status).toBe(422)
    await setAge(provider.window_ms)
    const [after] = await Promise.all([settle(silent, decided), carryOut(executor, silent, 'settle')])
    expect(after.body.outcome.status).toBe('done')
    const id = await addPayment(executor, 'unknown')
    const [{ body }, order] = await Promise.all([settle(id, decided), carryOut(executor, id)])
    expect(order).toEqual({
      kind: 'settle',
      request: { status: 'succeeded', note: 'Ann looked (at the provider: ch_1)' },
    })
    expect(body.outcome.status).toBe('done')
    const held = await addPayment(executor, 'sent')
    await orderForAdmin(executor, 'default', held, { kind: 'capture' })
    const [settled] = await Promise.all([settle(held, decided), carryOut(executor, held, 'settle')])
    expect(settled.body.outcome.status).toBe('done')
    expect((await settle(id, { status: 'succeeded' })).body.errors[0].pointer).toBe('/note')
    expect((await settle('pay_none', decided)).status).toBe(404)
  })
})

/** Headers as a provider sends them. No API process can tell whether the signature is genuine. */
const signed = (id: string, nowMs = Date.now()) => ({
  ...{ 'webhook-id': id, 'webhook-timestamp': String(Math.floor(nowMs / 1000)) },
  'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}`,
})

describe('POST /payments/webhooks/{provider_id}', () => {
  test('stores the bytes and headers as they came, for a provider that there is, up to 256 KB', async ({
    server,
    executor,
  }) => {
    const { body: provider } = await server.call('POST', '/admin/v1/providers', {
      token: adminToken,
      json: newProvider(),
    })
    const post = (path: string, body: string) =>
      fetch(`${server.url}${path}`, {
        method: 'POST',
        headers: {
          ...signed('evt_1'),
          authorization: 'Bearer theirs',
          'content-type': 'application/json',
        },
        body,
      })
    const text = '{"a":  1,\n"é": "not read"'
    expect((await post(provider.webhook_path, text)).status).toBe(204)
    const { rows } = await executor.query<{ headers: Record<string, string>; body: Uint8Array }>(
      'SELECT headers, body FROM payment_inbox WHERE provider_id = $1',
      [provider.id],
    )
    expect(rows).toHaveLength(1)
    expect(Buffer.from(rows[0]?.body ?? []).toString()).toBe(text)
    expect(rows[0]?.headers).toMatchObject({ 'webhook-id': 'evt_1', 'content-type': 'application/json' })
    expect(rows[0]?.headers).not.toHaveProperty('authorization')
    expect((await post(provider.webhook_path, 'x'.repeat(256 * 1024 + 1))).status).toBe(413)
    expect((await post('/payments/webhooks/prv_none', text)).status).toBe(404)
    for (const headers of [{}, { ...signed('evt_2'), 'webhook-signature': 'v1,x' }, signed('evt_2', 0)]) {
      const reply = await fetch(`${server.url}${provider.webhook_path}`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: text },
      })
      expect(reply.status).toBe(422)
      expect(await reply.json()).toMatchObject({ code: 'invalid_request', errors: [{ pointer: '' }] })
    }
    const stored = await executor.query('SELECT FROM payment_inbox WHERE provider_id = $1', [provider.id])
    expect(stored.rows).toHaveLength(1)
  })

  test('takes 3,000 of one provider in a minute, counts those that break off, and says when to send again', async ({
    elsewhere,
    server,
  }) => {
    const add = async (): Promise<string> =>
      (await server.call('POST', '/admin/v1/providers', { token: adminToken, json: newProvider() })).body.id
    const [busy, quiet] = [await add(), await add()]
    let nowMs = 0
    const api = createPaymentsApi(elsewhere, { ...systemClock, monotonicMs: () => nowMs })
    const receive = (id: string, address = '192.0.2.1', headers: Record<string, string> = signed('evt_1')) =>
      api.receiveWebhook(id, headers, async () => Buffer.from('{}'), address)
    const breakOff = () =>
      api.receiveWebhook(busy, signed('evt_1'), () => Promise.reject(new Error('cut off')), '192.0.2.1')
    const { 'webhook-signature': _, ...unsigned } = signed('evt_1')
    // not all at once: those that wait for a connection of the database for too long are refused for that
    const repeat = async (times: number, work: () => Promise<unknown>) => {
      const ended: PromiseSettledResult<unknown>[] = []
      while (ended.length < times)
        ended.push(
          ...(await Promise.allSettled(Array.from({ length: Math.min(100, times - ended.length) }, work))),
        )
      return ended
    }
    const refused = await repeat(3_001, () => receive(busy, '192.0.2.1', unsigned))
    expect(new Set(refused.map((one) => one.status === 'rejected' && one.reason.code))).toEqual(
      new Set(['invalid_request']),
    )
    const broken = await repeat(2_999, breakOff)
    expect(new Set(broken.map((one) => one.status === 'rejected' && one.reason.message))).toEqual(
      new Set(['cut off']),
    )
    expect(await receive(busy)).toBe(true)
    nowMs = 15_000
    await expect(receive(busy)).rejects.toMatchObject({
      code: 'too_many_requests',
      detail: { retry_after_s: 45 },
    })
    expect(await receive(quiet)).toBe(true)
    // who floods from elsewhere does not use up what the provider may send
    expect(await receive(busy, '192.0.2.2')).toBe(true)
    nowMs = 60_000
    expect(await receive(busy)).toBe(true)
  })
})
