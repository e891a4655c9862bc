// backends: either

import { randomBytes } from 'node:crypto'
import { describe, expect } from 'vitest'
import { openPaymentKeys, type PaymentKeys } from '../../../src/features/payments/keys/payment-keys.ts'
import {
  createProviderOpener,
  createProviders,
} from '../../../src/features/payments/providers/provider-rows.ts'
import type { ProviderView } from '../../../src/features/payments/providers/provider-schemas.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import type { Egress } from '../../../src/infra/egress/egress-port.ts'
import { createMasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import { unique } from '../../support/backend.ts'
import type { Reply } from '../../support/http.ts'
import { adminToken, runtimeTest } from '../../support/integration-test.ts'
import { newProvider, openExecutorDatabase } from '../../support/payments.ts'
import { codeOf } from '../../support/runs.ts'

const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, { worker: false })
  .extend('executor', { scope: 'file' }, ({ backend, database }, { onCleanup }) => {
    const executor = openExecutorDatabase(backend, database, 2)
    onCleanup(() => executor.close())
    return executor
  })
  .extend(
    'admin',
    { scope: 'file' },
    ({ server }) =>
      (method: string, path = '', json?: object): Promise<Reply> =>
        server.call(method, `/admin/v1/providers${path}`, { token: adminToken, ...(json && { json }) }),
  )

/** No provider of agents is opened here. */
const none = { agents: {} as never, trust: {} as never }
let keys: PaymentKeys
/** What a provider sends with a request, or the error of opening it. */
let readRequest: (id: string) => Promise<{ url: string; authorization: string | undefined } | string>
test.beforeAll(async ({ executor, server }) => {
  const early = await server.call('POST', '/admin/v1/providers', { token: adminToken, json: newProvider() })
  expect([early.status, early.body.code, early.body.remedy]).toEqual([
    409,
    'secret_unreadable',
    expect.stringContaining('mason payments'),
  ])
  keys = await openPaymentKeys(executor, createMasterKeys(randomBytes(32).toString('base64')))
  let sent: { url: string; authorization: string | undefined } | string = ''
  const egress = {
    request: async (url: string, { headers }: { headers: Record<string, string> }) => {
      sent = { url, authorization: headers.authorization }
      throw new Error('not sent')
    },
  } as unknown as Egress
  const open = createProviderOpener(executor, keys, egress, { testOnly: true, ...none })
  readRequest = async (id) => {
    try {
      const provider = await open(id)
      await provider.lookup('key', AbortSignal.timeout(120_000)).catch(() => {})
      return sent
    } catch (error) {
      return (error as { code: string }).code
    }
  }
})

describe('a payment provider', () => {
  test('is added, listed and changed, and its secrets are shown nowhere', async ({ admin }) => {
    const input = newProvider()
    const { status, body, headers, text } = await admin('POST', '', input)
    expect(status, text).toBe(201)
    expect(text).not.toContain('nightjar')
    expect(body).toEqual({
      id: expect.stringMatching(/^prv_[0-9a-f]{24}$/),
      ...{ name: input.name, kind: 'card', base_url: 'https://pay.example', allow_private: false },
      ...{
        business_ids: null,
        test: true,
        demo: false,
        window_ms: 86_400_000,
        timeout_ms: 30_000,
        status: 'active',
      },
      ...{
        api_key: `…${input.api_key.slice(-4)}`,
        webhook_secret: `…${input.webhook_secret.slice(-4)}`,
      },
      ...{ webhook_path: `/payments/webhooks/${body.id}`, ended_at: null },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    })
    expect(headers.get('location')).toBe(`/admin/v1/providers/${body.id}`)
    expect((await admin('GET', `/${body.id}`)).body).toEqual(body)
    expect((await admin('GET')).body.data).toContainEqual(body)
    const changed = await admin('PATCH', `/${body.id}`, { timeout_ms: 5000, business_ids: ['default'] })
    expect(changed.body).toMatchObject({
      timeout_ms: 5000,
      business_ids: ['default'],
      base_url: body.base_url,
    })
    expect((await admin('GET', '?business_id=other')).body.data).toEqual([])
    expect(await readRequest(body.id)).toEqual({
      url: 'https://pay.example/v1/operations/key',
      authorization: `Bearer ${input.api_key}`,
    })
  })

  test('needs its key again for a new address, and the sealed one is sent to no other', async ({
    admin,
    elsewhere,
  }) => {
    const input = newProvider()
    const { id } = (await admin('POST', '', input)).body
    const moved = await admin('PATCH', `/${id}`, { base_url: 'https://evil.example' })
    expect([moved.status, moved.body.errors]).toEqual([
      422,
      [{ pointer: '/api_key', detail: expect.stringContaining('sealed for the old address') }],
    ])
    const again = await admin('PATCH', `/${id}`, {
      base_url: 'https://new.example',
      api_key: 'sk-another-key',
    })
    expect(again.body).toMatchObject({ base_url: 'https://new.example', api_key: '…-key' })
    expect(await readRequest(id)).toMatchObject({
      url: expect.stringContaining('https://new.example/'),
      authorization: 'Bearer sk-another-key',
    })
    // an API process that is taken over can change the row, but not read the key
    await elsewhere.query(
      "UPDATE payment_providers SET base_url = 'https://evil.example' WHERE provider_id = $1",
      [id],
    )
    expect(await readRequest(id)).toBe('secret_unreadable')
  })

  test('keeps what another admin changes at the same moment', async ({ admin, elsewhere }) => {
    const { id } = (await admin('POST', '', newProvider())).body
    const changed = async () => {}
    const providers = createProviders(elsewhere, { testOnly: true, changed })
    const slow: Database = {
      ...elsewhere,
      transaction: async (work) => {
        await providers.change({}, id, { window_ms: 400_000, business_ids: ['default'] })
        return elsewhere.transaction(work)
      },
    }
    await createProviders(slow, { testOnly: true, changed }).change({}, id, { timeout_ms: 5_000 })
    const { body } = await admin('GET', `/${id}`)
    expect(body).toMatchObject({ timeout_ms: 5_000, window_ms: 400_000, business_ids: ['default'] })
    expect((await admin('PATCH', `/${id}`, { business_ids: null })).body).toMatchObject({
      ...{ timeout_ms: 5_000, window_ms: 400_000, business_ids: null },
    })
  })

  test('is refused with the field and the remedy', async ({ admin }) => {
    const refusals: [object, string][] = [
      [{ base_url: 'http://169.254.169.254' }, '/base_url'],
      [{ base_url: 'https://10.0.0.1', allow_private: false }, '/base_url'],
      [{ base_url: 'https://pay.example?key=1' }, '/base_url'],
      [{ base_url: 'ftp://pay.example' }, '/base_url'],
      [{ window_ms: 299_999 }, '/window_ms'],
      [{ business_ids: ['default', 'nowhere'] }, '/business_ids/1'],
      [{ webhook_secret: 'whsec_c2hvcnQ=' }, '/webhook_secret'],
      [{ api_key: 'has a space' }, '/api_key'],
      [{ kind: 'cash' }, '/kind'],
      [{ test: false, base_url: 'https://10.0.0.1', allow_private: false }, '/base_url'],
    ]
    for (const [fields, pointer] of refusals) {
      const { status, body, text } = await admin('POST', '', newProvider(fields))
      expect([status, body.errors?.[0]?.pointer, text]).toEqual([422, pointer, expect.any(String)])
      expect(text).not.toContain('nightjar')
    }
  })

  test('with a name that is taken is refused by that name before any other error', async ({ admin }) => {
    const name = unique('cards')
    expect((await admin('POST', '', newProvider({ name }))).status).toBe(201)
    const { id } = (await admin('POST', '', newProvider())).body
    const taken = {
      code: 'already_exists',
      detail: `there is a payment provider with the name "${name}" already`,
      remedy: expect.stringContaining('choose another name'),
      errors: [{ pointer: '/name', detail: `"${name}" is taken` }],
    }
    const other = { base_url: 'http://169.254.169.254', business_ids: ['nowhere'] }
    for (const fields of [{}, other])
      expect((await admin('POST', '', newProvider({ name, ...fields }))).body).toMatchObject(taken)
    expect((await admin('PATCH', `/${id}`, { name, ...other })).body).toMatchObject(taken)
    expect((await admin('PATCH', `/${id}`, { name: unique('cards') })).status).toBe(200)
  })

  test('moves money on a database server only', async ({ admin, backend }) => {
    const { status, body } = await admin('POST', '', newProvider({ test: false }))
    if (backend.kind === 'served') {
      expect([status, body.test]).toEqual([201, false])
      expect(await readRequest(body.id)).toBe('forbidden')
      const demo = await admin('POST', '', newProvider({ test: false, demo: true }))
      expect([demo.status, demo.body.errors?.[0].pointer]).toEqual([422, '/demo'])
    } else expect([status, body.errors?.[0].pointer]).toEqual([422, '/test'])
    expect((await admin('PATCH', `/${body.id}`, { test: false })).status).toBe(422)
  })

  test('of demos is not beside one that moves money', async ({ admin, elsewhere, backend }) => {
    await elsewhere.query('UPDATE payment_providers SET ended_at = clock_timestamp() WHERE NOT is_test')
    const demo = (await admin('POST', '', newProvider({ demo: true }))).body
    expect(demo).toMatchObject({ test: true, demo: true })
    expect((await admin('PATCH', `/${demo.id}`, { demo: false })).status).toBe(422)
    const real = newProvider({ test: false })
    expect((await admin('POST', '', real)).body.errors?.[0].pointer).toBe('/test')
    await admin('POST', `/${demo.id}/end`, {})
    if (backend.kind !== 'served') return
    expect((await admin('POST', '', real)).status).toBe(201)
    const { status, body } = await admin('POST', '', newProvider({ demo: true }))
    expect([status, body.errors?.[0]]).toEqual([
      422,
      { pointer: '/demo', detail: `must be false: "${real.name}" moves money; end it first` },
    ])
  })

  test('of demos and one that moves money, created at once, are never both active', async ({
    admin,
    elsewhere,
    backend,
  }) => {
    // embedded, none moves money
    if (backend.kind !== 'served') return
    const endAll = () => elsewhere.query('UPDATE payment_providers SET ended_at = clock_timestamp()')
    for (let round = 0; round < 10; round++) {
      await endAll()
      const kinds = [{ demo: true }, { test: false }, { demo: true }, { test: false }]
      const replies = await Promise.all(kinds.map((kind) => admin('POST', '', newProvider(kind))))
      const created = replies.flatMap(({ status, body }) => (status === 201 ? [body.demo] : []))
      expect(replies.map(({ status }) => status).sort()).toEqual([201, 201, 422, 422])
      expect(new Set(created).size).toBe(1)
    }
    await endAll()
  })

  test('of agents has no address and no secret, and one of cards has all of them', async ({ admin }) => {
    const agent = { name: unique('agents'), kind: 'agent', test: true }
    const { status, body } = await admin('POST', '', agent)
    expect([status, body]).toMatchObject([
      201,
      { kind: 'agent', base_url: null, api_key: null, webhook_secret: null, webhook_path: null },
    ])
    const pointers = async (method: string, path: string, json: object) =>
      (await admin(method, path, json)).body.errors.map(({ pointer }: { pointer: string }) => pointer)
    expect(await pointers('POST', '', newProvider({ kind: 'agent' }))).toEqual([
      '/base_url',
      '/api_key',
      '/webhook_secret',
    ])
    expect(await pointers('PATCH', `/${body.id}`, { api_key: 'sk-another-key' })).toEqual(['/api_key'])
    expect(await pointers('POST', '', { name: unique('cards'), test: true })).toEqual([
      '/base_url',
      '/api_key',
      '/webhook_secret',
    ])
    expect((await admin('PATCH', `/${body.id}`, { business_ids: ['default'] })).body).toMatchObject({
      business_ids: ['default'],
      base_url: null,
    })
  })

  test('ends once, and takes no new payments then', async ({ admin, executor }) => {
    const { id } = (await admin('POST', '', newProvider({ business_ids: ['default'] }))).body
    const open = createProviderOpener(executor, keys, {} as Egress, { testOnly: false, ...none })
    const accepts = () =>
      Promise.all(
        ['default', 'other', undefined].map((business) =>
          open(id, business === undefined ? {} : { businessId: business }).then(
            () => true,
            (error: { code: string }) => error.code,
          ),
        ),
      )
    expect(await accepts()).toEqual([true, 'not_found', true])
    const ended: ProviderView = (await admin('POST', `/${id}/end`, {})).body
    expect(ended).toMatchObject({ status: 'ended', ended_at: expect.any(String) })
    expect((await admin('POST', `/${id}/end`, {})).body).toEqual(ended)
    // what it has goes on: webhooks, look-ups, refunds
    expect(await accepts()).toEqual(['not_found', 'not_found', true])
    expect((await admin('DELETE', `/${id}`)).status).toBe(405)
    await expect(open('prv_none')).rejects.toMatchObject({ code: 'not_found' })
  })

  test('is for admins alone', async ({ server, runtime }) => {
    const { token } = await runtime.admin.tokens.create(
      {},
      {
        business_id: 'default',
        label: 'x',
        roles: ['admin'],
      },
    )
    for (const [method, path] of [
      ['GET', ''],
      ['POST', ''],
      ['POST', '/prv_1/end'],
    ] as const) {
      const { status } = await server.call(method, `/admin/v1/providers${path}`, {
        token,
        ...(method === 'POST' && { json: newProvider() }),
      })
      expect([method, path, status]).toEqual([method, path, 403])
    }
  })

  test('has secrets that neither the API nor a worker can read', async ({ database }) => {
    const statements = [
      'SELECT sealed_api_key FROM payment_providers',
      'SELECT sealed_webhook_secret FROM payment_providers',
      'SELECT * FROM payment_providers',
      'UPDATE payment_providers SET is_test = true RETURNING sealed_api_key',
      'UPDATE payment_providers SET is_test = false',
      'DELETE FROM payment_providers',
    ]
    for (const statement of statements)
      expect([statement, await codeOf(database.query(statement))]).toEqual([statement, '42501'])
    expect(await codeOf(asBusiness(database, 'SELECT provider_id FROM payment_providers'))).toBe('42501')
  })
})

const asBusiness = (database: Database, statement: string): Promise<unknown> =>
  database.asBusiness('default', (sql) => sql.query(statement))

describe('/.well-known/ap2-jwks.json', () => {
  test('has the public keys of receipts without a token, and may be cached', async ({ server }) => {
    const { status, body, headers } = await server.call('GET', '/.well-known/ap2-jwks.json')
    expect([status, headers.get('cache-control')]).toEqual([200, 'public, max-age=300'])
    const { kid } = await keys.signingKey()
    expect(body).toEqual({
      keys: [
        ...[
          {
            kty: 'EC',
            crv: 'P-256',
            x: expect.any(String),
            y: expect.any(String),
            kid,
            alg: 'ES256',
            use: 'sig',
          },
        ],
      ],
    })
  })
})
