// backends: either

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { createStopRefusals } from '../../../src/models/call/stop-refusals.ts'
import { unique } from '../../support/backend.ts'
import { openaiSettings } from '../../support/registry.ts'
import { type RegistryServer, startRegistryServer } from '../../support/registry-server.ts'

describe('what follows the settings', () => {
  let server: RegistryServer

  beforeAll(async () => {
    server = await startRegistryServer({}, { openai: openaiSettings({ model: 'gpt-x' }) })
  })
  afterAll(() => server?.close())

  test('is shown, without its secret', async () => {
    expect((await server.call('GET', '/vendors/ven_settings')).body.id).toBe('ven_settings')
    const { body } = await server.call('GET', '/vendors/ven_settings/models')
    expect(body.data.map(({ id, name }: { id: string; name: string }) => [id, name])).toContainEqual([
      'mod_settings',
      'gpt-x',
    ])
    const key = await server.call('GET', '/vendors/ven_settings/keys/key_settings')
    expect(key.body.secret).toBe('…ings')
    expect(server.answers.join()).not.toContain('sk-of-the-settings')
  })

  test('takes what the settings do not say, and nothing else', async () => {
    const model = '/vendors/ven_settings/models/mod_settings'
    const prices = { input: 1, output: 2, currency: 'USD' }
    expect((await server.call('PATCH', model, { prices })).body.prices).toEqual(prices)
    expect(server.registry.view.models.get('gpt-x')?.prices?.output).toBe(2_000_000)
    const key = '/vendors/ven_settings/keys/key_settings'
    expect((await server.call('PATCH', key, { limits: { rpm: 5 } })).body.limits).toEqual({ rpm: 5 })
    for (const [method, path, json, setting] of [
      ['PATCH', model, { upstream_name: 'other' }, 'OPENAI_MODEL'],
      ['PATCH', '/vendors/ven_settings', { status: 'disabled' }, 'OPENAI_'],
      [
        'PATCH',
        '/vendors/ven_settings/endpoints/end_settings',
        { base_url: 'https://x.example' },
        'OPENAI_BASE_URL',
      ],
      ['POST', `${key}/rotate`, { secret: 'sk-another' }, 'OPENAI_API_KEY'],
    ] as const) {
      const { status, body } = await server.call(method, path, json)
      expect([status, body.code, body.detail]).toEqual([403, 'forbidden', expect.stringContaining(setting)])
    }
    // sent back as it is shown
    const same = await server.call('PATCH', model, { upstream_name: 'gpt-x', version: '1' })
    expect(same.body).toMatchObject({ upstream_name: 'gpt-x', version: '1' })
    const refused = await server.call('DELETE', model)
    expect([refused.status, refused.body.code]).toEqual([409, 'in_use'])
    expect(refused.body.users).toEqual([{ kind: 'setting', id: 'OPENAI_MODEL', name: 'OPENAI_MODEL' }])
  })
})

describe('the admin API', () => {
  let server: RegistryServer

  beforeAll(async () => {
    server = await startRegistryServer()
  })
  afterAll(() => server?.close())

  test('is for the admin token only, on every one of its paths', async () => {
    const token = (
      await server.call('POST', '/tokens', { business_id: unique('acme'), label: 'x', roles: ['admin'] })
    ).body.token
    const paths = Object.entries<object>(server.document.paths).filter(([path]) => path.startsWith('/admin/'))
    expect(paths.length).toBeGreaterThan(25)
    for (const [path, methods] of paths)
      for (const method of Object.keys(methods)) {
        const url = `${server.url}${path.replace(/\{\w+\}/g, 'some-id')}`
        const asked = async (headers: Record<string, string>) =>
          (await fetch(url, { method: method.toUpperCase(), headers })).status
        expect([path, await asked({}), await asked({ authorization: `Bearer ${token}` })]).toEqual([
          path,
          401,
          403,
        ])
      }
  })

  test('takes the dialect of a model, native calls where it is left out, and refuses any other', async () => {
    const vendor = await server.make('/vendors', { name: unique('acme') })
    const endpoint_id = await server.make(`/vendors/${vendor}/endpoints`, {
      name: 'main',
      base_url: 'https://a.example',
      protocol: 'openai',
    })
    const input = { name: unique('m'), upstream_name: 'm', endpoint_id }
    const models = `/vendors/${vendor}/models`
    expect(await server.call('POST', models, { ...input, dialect: 'json' })).toMatchObject({
      status: 422,
      body: { code: 'invalid_request', errors: [{ pointer: '/dialect' }] },
    })
    const made = await server.call('POST', models, input)
    expect(made.body).toMatchObject({ dialect: 'tools', refuses_stop: false })
    const path = `${models}/${made.body.id}`
    expect((await server.call('PATCH', path, { dialect: 'xml' })).body.dialect).toBe('xml')
    expect((await server.call('PATCH', path, { dialect: null })).body.dialect).toBe('tools')
  })

  test('clears what the row of a model notes of `stop`', async () => {
    const vendor = await server.make('/vendors', { name: unique('acme') })
    const endpoint_id = await server.make(`/vendors/${vendor}/endpoints`, {
      ...{ name: 'main', base_url: 'https://a.example', protocol: 'openai' },
    })
    const models = `/vendors/${vendor}/models`
    const id = await server.make(models, { name: unique('m'), upstream_name: 'm', endpoint_id })
    createStopRefusals(server.database, { refresh: async () => {} }, silentLog).note({ id, name: 'm' })
    const read = async () => (await server.call('GET', `${models}/${id}`)).body.refuses_stop
    await expect.poll(read).toBe(true)
    await server.call('PATCH', `${models}/${id}`, { refuses_stop: false })
    expect(await read()).toBe(false)
  })

  test('shows in the health of a key that a limit of it is under one reservation', async () => {
    const vendor = await server.make('/vendors', { name: unique('acme') })
    const endpoint_id = await server.make(`/vendors/${vendor}/endpoints`, {
      name: 'main',
      base_url: 'https://a.example',
      protocol: 'openai',
    })
    const keys = `/vendors/${vendor}/keys`
    const key = `${keys}/${await server.make(keys, { label: 'small', secret: 'sk-0123456789' })}`
    const models = `/vendors/${vendor}/models`
    const name = unique('m')
    const prices = { input: 1, output: 1000 }
    const body = { name, upstream_name: 'm', endpoint_id, max_output: 1000, prices }
    await server.make(models, body)
    const limitError = async (limits: object) =>
      (await server.call('PATCH', key, { limits })).body.health.limit_error

    expect(await limitError({ daily_tokens: 999 })).toBe(
      `daily_tokens 999 is under the 1000 tokens that one request to ${name} reserves: raise the limit, or set max_output of the model`,
    )
    expect((await server.call('GET', key)).body.health.limit_error).toContain('daily_tokens 999')
    expect(await limitError({ daily_tokens: null, monthly_cost: 0.5 })).toBe(
      `monthly_cost 0.5 is under the 1 USD that one request to ${name} reserves: raise the limit, or set max_output of the model`,
    )
    // the answer of a request is reserved within the tokens of a minute
    expect(await limitError({ monthly_cost: null, tpm: 500, daily_tokens: 500 })).toBeNull()
  })

  test('never answers with a 5xx, whatever it is sent', async () => {
    const vendor = await server.make('/vendors', { name: unique('acme') })
    const endpoint_id = await server.make(`/vendors/${vendor}/endpoints`, {
      name: 'main',
      base_url: 'https://a.example',
      protocol: 'openai',
    })
    const key_id = await server.make(`/vendors/${vendor}/keys`, { label: 'main', secret: 'sk-0123456789' })
    const format = await server.make('/response-formats', { name: unique('f'), paths: { text: 'a' } })
    const alias = unique('m')
    const model = await server.make(`/vendors/${vendor}/models`, {
      name: alias,
      upstream_name: 'm',
      endpoint_id,
    })
    const good: [path: string, id: string, body: object][] = [
      ['/vendors', vendor, { name: 'a', homepage: 'https://a.example' }],
      [`/vendors/${vendor}/keys`, key_id, { label: 'a', secret: 'b', limits: { rpm: 1 } }],
      [
        `/vendors/${vendor}/endpoints`,
        endpoint_id,
        {
          name: 'a',
          base_url: 'http://b.example',
          protocol: 'http',
          headers: { a: 'b' },
          categories: ['text'],
        },
      ],
      [
        `/vendors/${vendor}/models`,
        model,
        { name: 'a', upstream_name: 'b', endpoint_id, prices: { input: 1, output: 1 }, capabilities: ['x'] },
      ],
      ['/categories', 'cat_none', { name: 'a', description: 'b' }],
      [
        '/response-formats',
        format,
        {
          name: 'a',
          paths: { text: 'a' },
          request: { body: {} },
          schema: {},
          samples: [{ raw: {}, expected: {} }],
        },
      ],
      ['/routes', 'rou_none', { role: 'a', models: [{ model: alias, weight: 1 }] }],
      ['/grants', 'gra_none', { key_id, business_id: 'a', user_id: 'b' }],
      ['/tokens', 'tok_none', { business_id: 'a', label: 'b' }],
    ]
    const odd = fc.oneof(
      fc.constantFrom<unknown>(
        null,
        '',
        'a\u0000b',
        '\ud800',
        -1,
        1e308,
        2 ** 53,
        'x'.repeat(5000),
        [],
        {},
        true,
      ),
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.jsonValue({ maxDepth: 3 }),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...good),
        fc.constantFrom('POST', 'PATCH'),
        fc.array(fc.tuple(fc.nat(7), odd), { maxLength: 2 }),
        async ([path, id, body], method, changes) => {
          const json: Record<string, unknown> = structuredClone(body) as never
          const names = Object.keys(json)
          for (const [at, value] of changes) json[names[at % names.length] as string] = value
          const { status, text } = await server.call(method, method === 'POST' ? path : `${path}/${id}`, json)
          expect([status < 500, text]).toEqual([true, text])
        },
      ),
      { numRuns: 120 },
    )
  })
})
