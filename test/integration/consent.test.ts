import { describe, expect } from 'vitest'
import { queryOne } from '../../src/infra/database/database.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../src/infra/lib/system-clock.ts'
import { askConsent, type ConsentBinding } from '../../src/payments/consent/consents.ts'
import type { ConsentRequest } from '../../src/payments/consent/content.ts'
import { decideConsent } from '../../src/payments/consent/decide-consents.ts'
import { startExecutor } from '../../src/payments/executor/start-executor.ts'
import { hashText } from '../../src/payments/mandates/tokens/encoding.ts'
import { signJws } from '../../src/payments/mandates/tokens/jws.ts'
import { trustForEveryRole } from '../../src/payments/mandates/tokens/keys.ts'
import { verifyPaymentV1 } from '../../src/payments/mandates/verify/carts.ts'
import { verifyCheckoutChain, verifyPaymentChain } from '../../src/payments/mandates/verify/chains.ts'
import { createTrust } from '../../src/payments/trust/trust.ts'
import { type Authenticator, type Ceremony, createAuthenticator } from '../support/authenticator.ts'
import { unique } from '../support/backend.ts'
import { newCart } from '../support/consents.ts'
import {
  closedPayment,
  createParty,
  importKey,
  mandateTime,
  checkout as offer,
  parties,
} from '../support/mandate-parties.ts'
import { asProxy, enrol, newEnrolment, passkeyTest, readPage, site } from '../support/passkeys.ts'
import { openExecutorDatabase } from '../support/payments.ts'
import { codeOf } from '../support/runs.ts'

const executorKey = createParty('executor-1')
const audience = site.origin

const newCheckout = async (): Promise<ConsentRequest> => {
  const checkout = await signJws({ ...offer, id: unique('order') }, parties.merchant.signing, { typ: 'JWT' })
  const payment = JSON.stringify(closedPayment({ transaction_id: hashText(checkout) }))
  return { version: '0.2', checkout, payment }
}

/** A test with a user who has a passkey, and with the executor's part of the work. */
const test = passkeyTest
  .extend('executor', { scope: 'file' }, async ({ backend, elsewhere }, { onCleanup }) => {
    const executor = openExecutorDatabase(backend, elsewhere)
    onCleanup(() => executor.close())
    return executor
  })
  .extend(
    'decide',
    { scope: 'file' },
    ({ executor }) =>
      () =>
        decideConsent({
          database: executor,
          signer: { issuer: audience, signingKey: async () => executorKey.signing },
          publicUrl: site.origin,
          now: () => new Date(mandateTime * 1000),
        }),
  )
  .extend('buyer', async ({ server, elsewhere }) => {
    const user = unique('ann')
    const authenticator = createAuthenticator()
    expect((await enrol(server, await newEnrolment(server, user), authenticator)).status).toBe(204)
    const ask = async (request: ConsentRequest, changes: Partial<ConsentBinding> = {}) =>
      elsewhere.asBusiness('default', (sql) =>
        askConsent(sql, request, {
          ...{
            tenant: 'default',
            user_id: user,
            run_id: unique('run'),
            audience,
            lifetimeMs: 600_000,
            ...changes,
          },
        }),
      )
    /** The path of a new link to the page of a payment. */
    const link = async (paymentId: string): Promise<string> => {
      const { status, body } = await asProxy(server, 'POST', `/v1/payments/${paymentId}/consent`)
      expect(status).toBe(201)
      return body.url.slice(site.origin.length)
    }
    const approve = async (
      path: string,
      changes: Partial<Ceremony> = {},
      by: Authenticator = authenticator,
    ) => {
      const { page } = await readPage(server, path)
      const json = { approve: by.get({ ...site, challenge: page.options.challenge, ...changes }) }
      return { json, reply: await server.call('POST', path, { json }) }
    }
    return { user, authenticator, ask, link, approve }
  })

const issuedOf = async (sql: Parameters<typeof queryOne>[0], consentId: string) =>
  (
    await queryOne<{ issued: { payment: string; cart: string; checkout: string; nonce: string } | null }>(
      sql,
      'SELECT issued FROM consents WHERE consent_id = $1',
      [consentId],
    )
  )?.issued

const known = {
  importKey,
  findKeys: trustForEveryRole([executorKey.jwk, parties.merchant.jwk], importKey),
  ...{ now: mandateTime, audience },
}

describe('a consent', () => {
  test('shows what is signed and nothing else, and its approval becomes a payment of AP2 0.1', async ({
    server,
    buyer,
    decide,
    executor,
  }) => {
    const { consent_id, payment_id } = await buyer.ask(await newCart('Demo <b>\u202eMerchant'))
    const path = await buyer.link(payment_id)
    const { text, headers } = await readPage(server, path)
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    for (const shown of [
      '199.00 USD',
      'Within 14 days',
      'ann@example.com',
      'Demo &lt;b&gt;<b class="hidden">U+202E</b>Merchant',
    ])
      expect(text).toContain(shown)
    expect((await buyer.approve(path)).reply.status).toBe(204)
    expect(await decide()).toMatchObject({ consent_id, payment_id, status: 'verified' })
    const issued = await issuedOf(executor, consent_id)
    const verdict = verifyPaymentV1(issued?.payment ?? '', issued?.cart ?? '', {
      ...known,
      nonce: issued?.nonce ?? '',
    })
    expect(verdict).toMatchObject({
      ok: true,
      value: { payment: { amount: { currency: 'USD', minor: 19900 } } },
    })
    expect(await decide()).toBeNull()
  })

  test('becomes a payment of AP2 0.2, decided by a running executor', async ({ buyer, decide, executor }) => {
    const { consent_id, payment_id } = await buyer.ask(await newCheckout())
    await buyer.approve(await buyer.link(payment_id))
    const unused = async () => {
      throw new Error('a consent needs none')
    }
    const running = startExecutor({
      ...{ database: executor, trust: createTrust(executor), openProvider: unused, unseal: unused, audience },
      signer: { issuer: audience, signingKey: async () => executorKey.signing },
      ...{ decideConsent: decide, clock: systemClock, log: silentLog },
    })
    await expect.poll(() => issuedOf(executor, consent_id)).toBeTruthy()
    await running.stop()
    const { payment = '', checkout = '', nonce = '' } = (await issuedOf(executor, consent_id)) ?? {}
    const paid = verifyPaymentChain(payment, { ...known, nonce })
    const bought = verifyCheckoutChain(checkout, { ...known, nonce })
    expect([paid.ok, bought.ok]).toEqual([true, true])
  })

  test('is not verified from another origin, site or frame, without user verification, for other bytes, or by a foreign passkey', async ({
    server,
    buyer,
    decide,
    executor,
  }) => {
    const foreign = createAuthenticator()
    await enrol(server, await newEnrolment(server, unique('eve')), foreign)
    const changes: [Partial<Ceremony>, Authenticator?][] = [
      [{ origin: 'https://pay.example.evil' }],
      [{ rpId: 'example' }],
      [{ verified: false }],
      [{ crossOrigin: true }],
    ]
    for (const [change, by] of changes) {
      const { consent_id, payment_id } = await buyer.ask(await newCart())
      await buyer.approve(await buyer.link(payment_id), change, by)
      expect([change, await decide()]).toMatchObject([change, { consent_id, status: 'failed' }])
      expect(await issuedOf(executor, consent_id)).toBeNull()
    }
    const other = { ...buyer, user: unique('bob') }
    for (const [change, by] of [
      [{ challenge: Buffer.alloc(32).toString('base64url') }],
      [{}, foreign],
    ] as const) {
      const { payment_id } = await other.ask(await newCart(), { user_id: other.user })
      await buyer.approve(await buyer.link(payment_id), change, by)
      expect([change, await decide()]).toMatchObject([change, { status: 'failed' }])
    }
  })

  test('is not verified for changed bytes, by the assertion of another consent, or when the counter goes back', async ({
    server,
    buyer,
    decide,
  }) => {
    const first = await buyer.ask(await newCart())
    const { json } = await buyer.approve(await buyer.link(first.payment_id), { counter: 5 })
    expect(await decide()).toMatchObject({ status: 'verified' })
    const second = await buyer.ask(await newCart())
    expect((await server.call('POST', await buyer.link(second.payment_id), { json })).status).toBe(204)
    expect(await decide()).toMatchObject({ status: 'failed' })
    const third = await buyer.ask(await newCart())
    await buyer.approve(await buyer.link(third.payment_id), { counter: 4 })
    expect(await decide()).toMatchObject({ status: 'failed' })
    const fourth = await buyer.ask(await newCart())
    const challenge = Buffer.alloc(32, 1).toString('base64url')
    await buyer.approve(await buyer.link(fourth.payment_id), { counter: 6, challenge })
    expect(await decide()).toMatchObject({ status: 'failed' })
  })

  test('is answered once: a second answer gets 409, also at the same time, and a refusal stays', async ({
    server,
    buyer,
    decide,
  }) => {
    const { payment_id } = await buyer.ask(await newCart())
    const path = await buyer.link(payment_id)
    const json = { refuse: true }
    const replies = await Promise.all([1, 2].map(() => server.call('POST', path, { json })))
    expect(replies.map(({ status }) => status).sort()).toEqual([204, 409])
    expect((await server.call('POST', path, { json })).body.code).toBe('input_answered')
    expect((await asProxy(server, 'POST', `/v1/payments/${payment_id}/consent`)).status).toBe(409)
    expect((await readPage(server, path)).status).toBe(404)
    expect(await decide()).toMatchObject({ payment_id, status: 'refused' })
  })

  test('expires, and its link with it; a new link ends those before, and one to enrol answers nothing', async ({
    server,
    buyer,
    decide,
  }) => {
    const { payment_id } = await buyer.ask(await newCart())
    const [before, path] = [await buyer.link(payment_id), await buyer.link(payment_id)]
    expect((await readPage(server, before)).status).toBe(404)
    const enrolment = (await newEnrolment(server, buyer.user)).replace('/passkeys/', '/consent/')
    for (const wrong of [before, enrolment])
      expect((await server.call('POST', wrong, { json: { refuse: true } })).status).toBe(404)
    expect((await readPage(server, path.replace('/consent/', '/passkeys/'))).status).toBe(404)
    await server.call('POST', path, { json: { refuse: true } })
    await decide()
    await buyer.ask(await newCart(), { lifetimeMs: 1 })
    expect(await decide()).toMatchObject({ status: 'expired' })
  })

  test('is asked for once at a time in a run, five times an hour of a user, and for mandates that fit only', async ({
    server,
    buyer,
    decide,
  }) => {
    const run_id = unique('run')
    const first = await buyer.ask(await newCart(), { run_id })
    expect(await codeOf(buyer.ask(await newCart(), { run_id }))).toBe('in_use')
    expect((await asProxy(server, 'POST', '/v1/payments/pay_none/consent')).status).toBe(404)
    expect(
      (await asProxy(server, 'POST', `/v1/payments/${first.payment_id}/consent?business_id=other`)).status,
    ).toBe(404)
    const cart = await newCart()
    const changed = { ...cart, payment: cart.payment.replace('"value":199', '"value":1') }
    expect(await codeOf(buyer.ask(changed))).toBe('invalid_request')
    for (let i = 0; i < 4; i++) await buyer.ask(await newCart())
    expect(await codeOf(buyer.ask(await newCart()))).toBe('too_many_requests')
    const paths = [await buyer.link(first.payment_id)]
    for (const path of paths) await server.call('POST', path, { json: { refuse: true } })
    expect(await decide()).toMatchObject({ status: 'refused' })
  })
})
