// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import { askConsent, type ConsentBinding } from '../../../../src/features/payments/consent/consents.ts'
import type { ConsentRequest } from '../../../../src/features/payments/consent/content.ts'
import { decideConsent } from '../../../../src/features/payments/consent/decide-consents.ts'
import { startExecutor } from '../../../../src/features/payments/executor/start-executor.ts'
import { signJws } from '../../../../src/features/payments/mandates/tokens/jws.ts'
import { trustForEveryRole } from '../../../../src/features/payments/mandates/tokens/keys.ts'
import { verifyPaymentV1 } from '../../../../src/features/payments/mandates/verify/carts.ts'
import {
  verifyCheckoutChain,
  verifyPaymentChain,
} from '../../../../src/features/payments/mandates/verify/chains.ts'
import { createTrust } from '../../../../src/features/payments/trust/trust.ts'
import { queryOne } from '../../../../src/infra/database/database.ts'
import { silentLog } from '../../../../src/infra/lib/silent-log.ts'
import { systemClock } from '../../../../src/infra/lib/system-clock.ts'
import { type Authenticator, type Ceremony, createAuthenticator } from '../../../support/authenticator.ts'
import { unique } from '../../../support/backend.ts'
import { newCart, newCheckout, newWaitingRun, trustParty } from '../../../support/consents.ts'
import type { TestServer } from '../../../support/http.ts'
import { createParty, importKey, parties } from '../../../support/mandate-parties.ts'
import { asProxy, enrol, newEnrolment, passkeyTest, readPage, site } from '../../../support/passkeys.ts'
import { openExecutorDatabase } from '../../../support/payments.ts'
import { codeOf } from '../../../support/runs.ts'

const executorKey = createParty('executor-1')
const audience = site.origin

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
          signer: {
            issuer: audience,
            signingKey: async () => executorKey.signing,
            agentJwk: async () => parties.agent.jwk,
          },
          publicUrl: site.origin,
        }),
  )
  .extend('trusted', { scope: 'file' }, ({ server }) => trustParty(server, parties.merchant, 'merchant'))
  .extend('buyer', async ({ server, elsewhere, trusted }) => {
    expect(trusted).toMatch(/^trk_/)
    const user = unique('ann')
    const authenticator = createAuthenticator()
    expect((await enrol(server, await newEnrolment(server, user), authenticator)).status).toBe(204)
    const ask = async (request: ConsentRequest, changes: Partial<ConsentBinding> = {}) => {
      const run_id = await newWaitingRun(elsewhere, 'default', user)
      return elsewhere.asBusiness('default', (sql) =>
        askConsent(sql, request, {
          ...{
            tenant: 'default',
            user_id: user,
            run_id,
            payment_id: unique('pay'),
            audience,
            lifetimeMs: 600_000,
            ...changes,
          },
        }),
      )
    }
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
  ...{ now: Math.floor(Date.now() / 1000), audience },
}

describe('a consent', () => {
  test('of a demo is shown as a page and to a surface, with the login of the API alone', async ({
    server,
    elsewhere,
    buyer,
  }) => {
    const id = unique('prv')
    await elsewhere.query(
      `INSERT INTO payment_providers (provider_id, name, kind, allow_private, is_test, is_demo, window_ms, timeout_ms)
       VALUES ($1, $1, 'agent', false, true, true, 300000, 1000)`,
      [id],
    )
    const { cart = '', ...request } = (await newCart()) as Extract<ConsentRequest, { cart: string }>
    const merchant_authorization = 'eyJhbGciOiJSUzI1NiIsImtpZIwMjQwOTA...'
    const { payment_id } = await buyer.ask({
      ...{ ...request, cart: JSON.stringify({ ...JSON.parse(cart), merchant_authorization }) },
    })
    const { status, body } = await asProxy(server, 'GET', `/v1/payments/${payment_id}/consent`)
    expect([status, body.facts]).toMatchObject([200, { demo: true, payee_issuer: 'demo:Demo Merchant' }])
    expect((await readPage(server, await buyer.link(payment_id))).status).toBe(200)
    await elsewhere.query(
      'UPDATE payment_providers SET ended_at = clock_timestamp() WHERE provider_id = $1',
      [id],
    )
  })

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
      '<bdi>https://demo-merchant.example</bdi>, who signed this offer',
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

  test('whose decision throws does not hold up the others, is tried five times, and has failed then', async ({
    buyer,
    decide,
    executor,
  }) => {
    const broken = await buyer.ask(await newCart())
    const other = await buyer.ask(await newCart())
    for (const { payment_id } of [broken, other]) await buyer.approve(await buyer.link(payment_id))
    await executor.query(
      `INSERT INTO payment_nonces (nonce, tenant, expires_at) SELECT nonce, tenant, expires_at FROM consents WHERE consent_id = $1`,
      [broken.consent_id],
    )
    await expect(decide()).rejects.toThrow()
    expect(await decide()).toMatchObject({ consent_id: other.consent_id, status: 'verified' })
    const isDue = () =>
      executor.query('UPDATE consents SET next_at = clock_timestamp() WHERE consent_id = $1', [
        broken.consent_id,
      ])
    for (let tries = 1; tries < 5; tries++) {
      await isDue()
      await expect(decide()).rejects.toThrow()
    }
    await isDue()
    expect(await decide()).toMatchObject({
      ...{ consent_id: broken.consent_id, status: 'failed' },
      message: 'The approval could not be verified. Nothing is paid; ask again.',
    })
    expect(await issuedOf(executor, broken.consent_id)).toBeNull()
    expect(await decide()).toBeNull()
  })

  test('is not asked for where the cart or the payment has a member that cannot be hashed, which is named', async ({
    buyer,
  }) => {
    const nested = `${'['.repeat(120)}1${']'.repeat(120)}`
    for (const [poison, member] of [
      ['"note":"\\ud800"', 'note'],
      [`"note":${nested}`, 'note[0][0]'],
      ['"\\udc00":1', '\ufffd'],
    ] as const)
      for (const part of ['cart', 'payment'] as const) {
        const request = { ...(await newCart()) } as Record<'cart' | 'payment', string> & ConsentRequest
        request[part] = request[part].replace(/^\{/, `{${poison},`)
        const error = await buyer.ask(request).catch((reason: unknown) => reason)
        expect([part, error]).toMatchObject([
          part,
          {
            code: 'invalid_request',
            remedy: expect.stringContaining(`${member}`),
            detail: { violations: [{ code: 'no_canonical_json' }] },
          },
        ])
      }
  })

  test('becomes a payment of AP2 0.2, decided by a running executor', async ({ buyer, decide, executor }) => {
    const { consent_id, payment_id } = await buyer.ask(await newCheckout())
    await buyer.approve(await buyer.link(payment_id))
    const unused = async () => {
      throw new Error('a consent needs none')
    }
    const running = startExecutor({
      ...{
        database: executor,
        trust: createTrust(executor),
        openProvider: unused,
        unseal: unused,
        audience,
      },
      signer: {
        issuer: audience,
        signingKey: async () => executorKey.signing,
      },
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
    const changes: [Partial<Ceremony>][] = [
      [{ origin: 'https://pay.example.evil' }],
      [{ rpId: 'example' }],
      [{ verified: false }],
      [{ crossOrigin: true }],
      [{ challenge: Buffer.alloc(32).toString('base64url') }],
    ]
    for (const [change] of changes) {
      const { consent_id, payment_id } = await buyer.ask(await newCart())
      await buyer.approve(await buyer.link(payment_id), change)
      expect([change, await decide()]).toMatchObject([change, { consent_id, status: 'failed' }])
      expect(await issuedOf(executor, consent_id)).toBeNull()
    }
    const other = { ...buyer, user: unique('bob') }
    const { payment_id } = await other.ask(await newCart(), { user_id: other.user })
    await buyer.approve(await buyer.link(payment_id), {}, foreign)
    expect(await decide()).toMatchObject({ status: 'failed' })
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

  test('is over once its session is deleted', async ({ server, buyer, elsewhere }) => {
    const [first, second] = [await buyer.ask(await newCart()), await buyer.ask(await newCart())]
    const path = await buyer.link(first.payment_id)
    const { page } = await readPage(server, path)
    await elsewhere.query(
      'DELETE FROM sessions WHERE session_id IN (SELECT session_id FROM runs JOIN consents USING (run_id) WHERE payment_id = ANY($1))',
      [[first.payment_id, second.payment_id]],
    )
    const json = { approve: buyer.authenticator.get({ ...site, challenge: page.options.challenge }) }
    expect((await server.call('POST', path, { json })).body.code).toBe('input_answered')
    expect((await asProxy(server, 'POST', `/v1/payments/${second.payment_id}/consent`)).status).toBe(409)
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

  test('has one link that opens, the last, of several that are made at once', async ({
    server,
    buyer,
    elsewhere,
  }) => {
    const { consent_id, payment_id } = await buyer.ask(await newCart())
    const paths = await Promise.all(Array.from({ length: 12 }, () => buyer.link(payment_id)))
    const statuses = await Promise.all(paths.map(async (path) => (await readPage(server, path)).status))
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    const { rows } = await elsewhere.query('SELECT FROM consent_links WHERE ref_id = $1', [consent_id])
    expect(rows).toHaveLength(1)
  })

  test('is asked for once at a time in a run, five times an hour of a user, and for mandates that fit only', async ({
    server,
    elsewhere,
    buyer,
    decide,
  }) => {
    const run_id = await newWaitingRun(elsewhere, 'default', buyer.user)
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

  test('is not asked for where no trusted merchant signed what is paid, it is over, or another one would be paid', async ({
    server,
    buyer,
  }) => {
    const stranger = createParty('merchant-1')
    const old = createParty('merchant-old')
    const key = await trustParty(server, old, 'merchant')
    const ofOld = await newCart('Demo Merchant', { signing: old.signing })
    await asProxy(server, 'POST', `/admin/v1/trust/${key}/revoke`)
    const anHour = 3600
    const now = Math.floor(Date.now() / 1000)
    const changed = await newCart()
    const did = createParty('merchant-did')
    await trustParty(server, did, 'merchant', 'did:web:shop.example')
    const opaque = (website: string) =>
      newCheckout(
        {
          checkout: { merchant: undefined },
          payment: { payee: { id: 'acct_of_a_thief', name: 'Thief', website } },
        },
        did.signing,
      )
    const requests: Record<string, ConsentRequest> = {
      'another DID': await opaque('did:web:thief.example'),
      'a data address': await opaque('data:text/plain,thief'),
      'another key': await newCart('Demo Merchant', { signing: stranger.signing }),
      'another key, 0.2': await newCheckout({}, stranger.signing),
      'a revoked key': ofOld,
      'an old cart': await newCart('Demo Merchant', { iat: now - anHour }),
      'an old checkout': await newCheckout({ checkout: { exp: now - anHour } }),
      'a changed cart': JSON.parse(JSON.stringify(changed).replaceAll('Shoes', 'Boots')),
      'another payee': await newCheckout({
        checkout: { merchant: undefined },
        payment: { payee: { id: 'merchant_2', name: 'Another', website: 'https://another.example' } },
      }),
      'another total': await newCheckout({ checkout: { totals: [{ type: 'total', amount: 1 }] } }),
    }
    const codes: Record<string, string[]> = {}
    for (const [what, request] of Object.entries(requests)) {
      const error = await buyer.ask(request).catch((reason: unknown) => reason)
      expect([what, error]).toMatchObject([what, { code: 'invalid_request' }])
      const { violations } = (error as { detail: { violations: { code: string }[] } }).detail
      codes[what] = violations.map(({ code }) => code)
    }
    expect(codes).toEqual({
      'another DID': ['payee_not_bound'],
      'a data address': ['payee_not_bound'],
      'another key': ['wrong_signature'],
      'another key, 0.2': ['wrong_signature'],
      'a revoked key': ['unknown_key'],
      'an old cart': ['expired'],
      'an old checkout': ['expired'],
      'a changed cart': ['wrong_hash'],
      'another payee': ['payee_not_bound'],
      'another total': ['amount_mismatch'],
    })
  })

  test('is not asked for with an id of broken characters, a wrong offset, or texts that are too long to sign', async ({
    buyer,
  }) => {
    const codesOf = async (request: ConsentRequest) => {
      const error = await buyer.ask(request).catch((reason: unknown) => reason)
      const { detail, code, message } = error as {
        code: string
        message: string
        detail?: { violations?: { code: string }[] }
      }
      return [code, ...(detail?.violations?.map((one) => one.code) ?? [message])]
    }
    for (const broken of ['order\0', 'order \uFFFD'])
      expect(await codesOf(await newCart('Demo Merchant', { id: broken }))).toContain('invalid_id')
    for (const broken of ['order\0', 'order \uFFFD', 'order \uD800'])
      expect(await codesOf(await newCheckout({ checkout: { id: broken } }))).toContain('invalid_id')
    for (const expiry of [
      '2999-01-01T00:00:00+19:00',
      '2999-01-01T00:00:00+2:00',
      '2999-01-01T00:00:00-13:00',
    ])
      expect([expiry, await codesOf(await newCart('Demo Merchant', { expiry }))]).toEqual([
        expiry,
        ['invalid_request', 'wrong_offset'],
      ])
    const long = [{ label: 'x'.repeat(200_000) }]
    expect(await codesOf(await newCart('Demo Merchant', { items: long }))).toEqual([
      'invalid_request',
      'the texts of this payment are too long to be signed',
    ])
  })

  test('says that items do not add up to the total that is paid', async ({ server, buyer }) => {
    const items = [{ amount: { currency: 'USD', value: 100 } }, { amount: { currency: 'USD', value: 98 } }]
    const warning = 'The prices of the items do not add up to the total.'
    for (const [request, isWarned] of [
      [await newCart('Demo Merchant', { items }), true],
      [await newCart(), false],
    ] as const) {
      const { payment_id } = await buyer.ask(request)
      expect((await readPage(server, await buyer.link(payment_id))).text.includes(warning)).toBe(isWarned)
      const { body } = await asProxy(server, 'GET', `/v1/payments/${payment_id}/consent`)
      expect(body.facts.warnings).toHaveLength(isWarned ? 1 : 0)
    }
  })

  test('is shown no more once the key of its merchant is revoked', async ({ server, buyer }) => {
    const shop = createParty('merchant-short')
    const key = await trustParty(server, shop, 'merchant')
    const { payment_id } = await buyer.ask(await newCart('Demo Merchant', { signing: shop.signing }))
    const path = await buyer.link(payment_id)
    expect((await readPage(server, path)).status).toBe(200)
    await asProxy(server, 'POST', `/admin/v1/trust/${key}/revoke`)
    expect((await readPage(server, path)).status).toBe(404)
    expect((await asProxy(server, 'GET', `/v1/payments/${payment_id}/consent`)).body.code).toBe(
      'invalid_request',
    )
  })
})

describe('a surface of the business', () => {
  const surface = createParty('surface-of-the-shop')
  test.beforeAll(({ server }) =>
    trustParty(server, surface, 'trusted-surface', 'https://surface.example').then(() => {}),
  )
  const sign = (content: string, { signing } = surface) =>
    signJws(JSON.parse(content), signing, { typ: 'JWT' })
  const read = async (server: TestServer, paymentId: string) => {
    const { status, body } = await asProxy(server, 'GET', `/v1/payments/${paymentId}/consent`)
    expect(status).toBe(200)
    return body
  }
  const answer = (server: TestServer, paymentId: string, json: object) =>
    asProxy(server, 'POST', `/v1/payments/${paymentId}/consent`, json)

  test('reads the bytes and what they say, signs them, and its approval becomes a mandate, once', async ({
    server,
    buyer,
    decide,
    executor,
  }) => {
    const { consent_id, payment_id } = await buyer.ask(await newCheckout())
    const path = await buyer.link(payment_id)
    const { content, facts } = await read(server, payment_id)
    expect(facts).toMatchObject({ payee_issuer: 'https://demo-merchant.example', total: '199.00 USD' })
    const json = { signature: await sign(content) }
    const replies = await Promise.all([1, 2].map(() => answer(server, payment_id, json)))
    expect(replies.map(({ status }) => status).sort()).toEqual([204, 409])
    expect((await server.call('POST', path, { json: { refuse: true } })).status).toBe(409)
    expect((await asProxy(server, 'GET', `/v1/payments/${payment_id}/consent`)).status).toBe(409)
    expect(await decide()).toMatchObject({ consent_id, status: 'verified' })
    const { payment = '', checkout = '', nonce = '' } = (await issuedOf(executor, consent_id)) ?? {}
    const verdicts = [
      verifyPaymentChain(payment, { ...known, nonce }),
      verifyCheckoutChain(checkout, { ...known, nonce }),
    ]
    expect(verdicts.map(({ ok }) => ok)).toEqual([true, true])
  })

  test('is not believed with a key that is not trusted, was revoked, or is for something else, nor for other bytes', async ({
    server,
    buyer,
    decide,
    executor,
  }) => {
    const revoked = createParty('surface-revoked')
    await asProxy(
      server,
      'POST',
      `/admin/v1/trust/${await trustParty(server, revoked, 'trusted-surface')}/revoke`,
    )
    const earlier = await buyer.ask(await newCart())
    const before = await sign((await read(server, earlier.payment_id)).content)
    await answer(server, earlier.payment_id, { refuse: true })
    expect(await decide()).toMatchObject({ status: 'refused' })
    const signers: Record<string, (content: string) => Promise<string>> = {
      'no key of a row': (content) => sign(content, createParty('surface-unknown')),
      'the kid of another key': (content) => sign(content, createParty('surface-of-the-shop')),
      'a revoked key': (content) => sign(content, revoked),
      'the key of the merchant': (content) => sign(content, parties.merchant),
    }
    for (const [who, signature] of Object.entries(signers)) {
      const user_id = unique('user')
      const { consent_id, payment_id } = await buyer.ask(await newCart(), { user_id })
      const { content } = await read(server, payment_id)
      expect((await answer(server, payment_id, { signature: await signature(content) })).status).toBe(204)
      expect([who, await decide()]).toMatchObject([who, { consent_id, status: 'failed' }])
      expect(await issuedOf(executor, consent_id)).toBeNull()
    }
    for (const edit of [() => before, (text: string) => text.replace('"nonce":"', '"nonce":"x')]) {
      const { payment_id } = await buyer.ask(await newCart(), { user_id: unique('user') })
      const { content } = await read(server, payment_id)
      const edited = edit(content)
      const signature = edited === before ? before : await sign(edited)
      await answer(server, payment_id, { signature })
      expect(await decide()).toMatchObject({ payment_id, status: 'failed' })
    }
  })

  test('of 40 users of three businesses is heard in one pass each, also while one approves two carts that cannot be hashed', async ({
    server,
    elsewhere,
    database,
    decide,
    executor,
    trusted,
  }) => {
    expect(trusted).toMatch(/^trk_/)
    const tenants = ['default', unique('shop-a'), unique('shop-b')]
    for (const tenant of tenants.slice(1)) {
      await database.query('INSERT INTO businesses (tenant) VALUES ($1)', [tenant])
      for (const [party, role, issuer] of [
        [parties.merchant, 'merchant', 'https://demo-merchant.example'],
        [surface, 'trusted-surface', 'https://surface.example'],
      ] as const) {
        const { kid, ...jwk } = party.jwk
        const json = { business_id: tenant, issuer, kid, roles: [role], jwk }
        expect((await asProxy(server, 'POST', '/admin/v1/trust', json)).status).toBe(201)
      }
    }
    const ask = async (n: number, user_id: string) => {
      const tenant = tenants[n % tenants.length] ?? ''
      const run_id = await newWaitingRun(elsewhere, tenant, user_id)
      const bound = { tenant, user_id, run_id, payment_id: unique('pay') }
      const request = await newCart()
      return elsewhere.asBusiness(tenant, async (sql) => ({
        ...(await askConsent(sql, request, { ...bound, audience, lifetimeMs: 600_000 })),
        tenant,
      }))
    }
    const contentOf = async (consentId: string) => {
      const row = await queryOne<{ content: string }>(
        database,
        'SELECT content FROM consents WHERE consent_id = $1',
        [consentId],
      )
      return row?.content ?? ''
    }
    // as an earlier version has asked for them: today they are refused before
    const poisons = ['{"note":"\\ud800",', `{"note":${'['.repeat(120)}1${']'.repeat(120)},`]
    const poisoned = await Promise.all(
      poisons.map(async (poison) => {
        const text = await contentOf((await ask(0, unique('eve'))).consent_id)
        const content = JSON.parse(text)
        content.cart = content.cart.replace(/^\{/, () => poison)
        const [consent_id, payment_id] = [unique('con'), unique('pay')]
        await database.query(
          `INSERT INTO consents (consent_id, tenant, user_id, run_id, payment_id, content, nonce, expires_at)
           VALUES ($1, 'default', 'eve', $4, $2, $3, $1, clock_timestamp() + interval '10 minutes')`,
          [consent_id, payment_id, JSON.stringify(content), await newWaitingRun(elsewhere, 'default', 'eve')],
        )
        return { consent_id, payment_id, tenant: 'default' }
      }),
    )
    const others = []
    for (let n = 0; n < 40; n++) others.push(await ask(n, unique('user')))
    for (const { payment_id, tenant, consent_id } of [...poisoned, ...others]) {
      const json = { signature: await sign(await contentOf(consent_id)) }
      const path = `/v1/payments/${payment_id}/consent?business_id=${tenant}`
      expect((await asProxy(server, 'POST', path, json)).status).toBe(204)
    }
    const statusOf = async (ids: readonly { consent_id: string }[]) => {
      const { rows } = await executor.query<{ status: string }>(
        'SELECT status FROM consents WHERE consent_id = ANY ($1)',
        [ids.map(({ consent_id }) => consent_id)],
      )
      return [...new Set(rows.map(({ status }) => status))]
    }
    const passes = async (count: number) => {
      let thrown = 0
      for (let n = 0; n < count; n++) await decide().catch(() => thrown++)
      return thrown
    }
    // each poisoned one takes five passes of its own at most
    expect(await passes(40 + 2 * 5)).toBeLessThanOrEqual(10)
    expect(await statusOf(others)).toEqual(['verified'])
    await executor.query(
      'UPDATE consents SET tries = 5, next_at = clock_timestamp() WHERE decided_at IS NULL',
    )
    await passes(2)
    expect(await statusOf(poisoned)).toEqual(['failed'])
  })

  test('refuses; what is no answer, of another business, or too late changes nothing', async ({
    server,
    buyer,
    decide,
  }) => {
    const { payment_id } = await buyer.ask(await newCart())
    const signature = await sign((await read(server, payment_id)).content)
    for (const json of [
      { signature: 'no jws' },
      { signature, refuse: true },
      { refuse: false },
      { approve: {} },
    ])
      expect((await answer(server, payment_id, json)).status).toBe(422)
    const path = `/v1/payments/${payment_id}/consent?business_id=other`
    for (const method of ['GET', 'POST'])
      expect(
        (await asProxy(server, method, path, method === 'POST' ? { refuse: true } : undefined)).status,
      ).toBe(404)
    expect((await answer(server, payment_id, { refuse: true })).status).toBe(204)
    expect(await decide()).toMatchObject({ payment_id, status: 'refused' })
    const late = await buyer.ask(await newCart(), { lifetimeMs: 1 })
    expect((await answer(server, late.payment_id, { signature })).status).toBe(409)
    expect(await decide()).toMatchObject({ status: 'expired' })
  })
})
