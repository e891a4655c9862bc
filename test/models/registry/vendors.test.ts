// backends: either

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSealedText, sealText } from '../../../src/infra/secrets/envelope.ts'
import { createMasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import {
  endpointSchemas,
  keyViewSchema,
  modelSchemas,
  vendorSchemas,
} from '../../../src/models/schemas/catalog.ts'
import { unique } from '../../support/backend.ts'
import type { Reply } from '../../support/http.ts'
import { newMasterKey } from '../../support/registry.ts'
import { type RegistryServer, startRegistryServer } from '../../support/registry-server.ts'

const canary = 'sk-canary-0123456789'
const probed: unknown[] = []
let server: RegistryServer

beforeAll(async () => {
  server = await startRegistryServer({
    probe: async (id, signal) => {
      probed.push([id, signal.aborted])
      return { ok: true, ms: 3, error: null }
    },
    test: async (id, input) => ({
      ok: false,
      raw: { asked: input.prompt ?? null },
      parsed: null,
      usage: null,
      ms: 5,
      error: { code: 'model_unreadable_answer', message: `of ${id}`, place: '/choices' },
    }),
  })
})
afterAll(async () => {
  const leaks = server.answers.filter((text) => text.includes(canary.slice(0, -4)))
  await server?.close()
  expect(leaks).toEqual([])
})

const call: RegistryServer['call'] = (...args) => server.call(...args)
const make: RegistryServer['make'] = (...args) => server.make(...args)
const makeVendor = () => make('/vendors', { name: unique('acme') })
const makeEndpoint = (vendor: string, more: object = {}) =>
  make(`/vendors/${vendor}/endpoints`, {
    name: unique('door'),
    base_url: 'https://api.acme.example/v1',
    protocol: 'openai',
    ...more,
  })
const problem = ({ status, body }: Reply) => [status, body.code, ...pointersOf({ status, body } as Reply)]
const pointersOf = ({ body }: Reply): string[] =>
  ((body?.errors ?? []) as { pointer: string }[]).map(({ pointer }) => pointer)
const usersOf = ({ body }: Reply) =>
  ((body?.users ?? []) as { kind: string; id: string }[]).map(({ kind, id }) => [kind, id])

describe('a vendor', () => {
  test('is added, shown, changed and deleted', async () => {
    const name = unique('acme')
    const made = await call('POST', '/vendors', { name })
    expect(made.status).toBe(201)
    expect(made.headers.get('location')).toBe(`/admin/v1/vendors/${made.body.id}`)
    expect(vendorSchemas.view.parse(made.body)).toMatchObject({ name, homepage: null, status: 'active' })
    expect(made.body.id).toMatch(/^ven_[0-9a-f]{24}$/)
    const path = `/vendors/${made.body.id}`
    expect((await call('GET', path)).body).toEqual(made.body)
    const changed = await call('PATCH', path, { homepage: 'https://acme.example', status: 'disabled' })
    expect(changed.body).toMatchObject({ name, homepage: 'https://acme.example', status: 'disabled' })
    expect(changed.body.updated_at > made.body.updated_at).toBe(true)
    expect((await call('PATCH', path, { homepage: null })).body).toMatchObject({
      homepage: null,
      status: 'disabled',
    })
    expect((await call('DELETE', path)).status).toBe(204)
    for (const [method, json] of [['GET'], ['PATCH', {}], ['DELETE']] as const)
      expect(problem(await call(method, path, json))).toEqual([404, 'not_found'])
  })

  test('has a name of its own', async () => {
    const name = unique('acme')
    await make('/vendors', { name })
    expect(problem(await call('POST', '/vendors', { name }))).toEqual([409, 'already_exists', '/name'])
    const other = await makeVendor()
    expect(problem(await call('PATCH', `/vendors/${other}`, { name }))).toEqual([
      409,
      'already_exists',
      '/name',
    ])
    const atOnce = unique('race')
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => call('POST', '/vendors', { name: atOnce })),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409])
  })

  test.each([
    [{}, '/name'],
    [{ name: '' }, '/name'],
    [{ name: 'a\u0000b' }, '/name'],
    [{ name: 'a\ud800b' }, '/name'],
    [{ name: 'x', homepage: 'javascript:alert(1)' }, '/homepage'],
    [{ name: 'x', status: null }, '/status'],
    [{ name: 'x', colour: 'red' }, '/colour'],
  ])('%j is refused', async (json, pointer) => {
    expect(problem(await call('POST', '/vendors', json))).toEqual([422, 'invalid_request', pointer])
  })

  test('is not deleted while anything is under it, and says what', async () => {
    const vendor = await makeVendor()
    const endpoint = await makeEndpoint(vendor)
    const key = await make(`/vendors/${vendor}/keys`, { label: 'main', secret: canary })
    const model = await make(`/vendors/${vendor}/models`, {
      name: unique('m'),
      upstream_name: 'm',
      endpoint_id: endpoint,
    })
    const refused = await call('DELETE', `/vendors/${vendor}`)
    expect(problem(refused)).toEqual([409, 'in_use'])
    expect(usersOf(refused)).toEqual([
      ['key', key],
      ['endpoint', endpoint],
      ['model', model],
    ])
    expect(refused.body.detail).toContain(`key "main" (${key})`)
    expect(usersOf(await call('DELETE', `/vendors/${vendor}/endpoints/${endpoint}`))).toEqual([
      ['model', model],
    ])
    for (const path of [`models/${model}`, `endpoints/${endpoint}`, `keys/${key}`])
      expect((await call('DELETE', `/vendors/${vendor}/${path}`)).status).toBe(204)
    expect((await call('DELETE', `/vendors/${vendor}`)).status).toBe(204)
  })

  test('lists page by page, the latest first, none lost and none twice', async () => {
    const vendor = await makeVendor()
    const made: string[] = []
    for (let count = 0; count < 5; count++) made.unshift(await makeEndpoint(vendor))
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`
      const { body } = await call('GET', `/vendors/${vendor}/endpoints?limit=2${query}`)
      seen.push(...body.data.map(({ id }: { id: string }) => id))
      cursor = body.next_cursor
    }
    expect(seen).toEqual(made)
    expect((await call('GET', '/vendors?limit=1')).body.data[0].id).toBe(vendor)
    expect(problem(await call('GET', '/vendors?cursor=nonsense'))).toEqual([
      422,
      'invalid_request',
      '/cursor',
    ])
    expect(problem(await call('GET', '/vendors?limit=0'))).toEqual([422, 'invalid_request', '/limit'])
    for (const kind of ['keys', 'endpoints', 'models'])
      expect(problem(await call('GET', `/vendors/ven_none/${kind}`))).toEqual([404, 'not_found'])
  })
})

describe('a key', () => {
  const secretOf = async (vendor_id: string, row_id: string, keys = server.options.masterKeys) => {
    const { rows } = await server.database.query<{
      master_key: string
      wrapped_key: Uint8Array
      sealed: Uint8Array
    }>('SELECT master_key, wrapped_key, sealed_secret AS sealed FROM vendor_keys WHERE key_id = $1', [row_id])
    return openSealedText(rows[0] as never, { purpose: 'secret', vendor_id, row_id }, keys).reveal()
  }

  test('is sealed, and never shown', async () => {
    const vendor = await makeVendor()
    const made = await call('POST', `/vendors/${vendor}/keys`, {
      label: 'main',
      secret: canary,
      limits: { rpm: 60, monthly_cost: 12.5 },
    })
    expect(keyViewSchema.parse(made.body)).toMatchObject({
      vendor_id: vendor,
      label: 'main',
      secret: '…6789',
      limits: { rpm: 60, monthly_cost: 12.5 },
      status: 'active',
      health: { state: 'healthy', since: null, until: null, last_error: null },
    })
    expect(await secretOf(vendor, made.body.id)).toBe(canary)
    const { rows } = await server.database.query<{ row: string }>(
      'SELECT to_json(k)::text AS row FROM vendor_keys k WHERE key_id = $1',
      [made.body.id],
    )
    expect(rows[0]?.row).not.toContain(canary.slice(0, -4))
    expect(rows[0]?.row).not.toContain(Buffer.from(canary).toString('hex').slice(0, 20))
    const short = await call('POST', `/vendors/${vendor}/keys`, { label: 'short', secret: 'abcd' })
    expect(short.body.secret).toBe('…cd')
  })

  test('is found by its whole secret, with its own vendor only', async () => {
    const [vendor, other] = [await makeVendor(), await makeVendor()]
    const id = await make(`/vendors/${vendor}/keys`, { label: 'main', secret: canary })
    const find = async (at: string, secret: string) => call('POST', `/vendors/${at}/keys/find`, { secret })
    const found = await find(vendor, canary)
    expect(found.body.key).toMatchObject({ id, label: 'main', secret: '…6789' })
    expect(found.text).not.toContain(canary)
    // the last four are the same
    expect((await find(vendor, `sk-another-${canary.slice(-4)}`)).body).toEqual({ key: null })
    expect((await find(other, canary)).body).toEqual({ key: null })
    expect((await find('ven_none', canary)).status).toBe(404)
    await call('POST', `/vendors/${vendor}/keys/${id}/rotate`, { secret: 'sk-its-next-one-6789' })
    expect((await find(vendor, canary)).body).toEqual({ key: null })
    expect((await find(vendor, 'sk-its-next-one-6789')).body.key?.id).toBe(id)
  })

  test('takes changes of limits one by one, and no secret but by rotation', async () => {
    const vendor = await makeVendor()
    const key = await make(`/vendors/${vendor}/keys`, {
      label: 'main',
      secret: canary,
      limits: { rpm: 60, tpm: 9 },
    })
    const path = `/vendors/${vendor}/keys/${key}`
    expect((await call('PATCH', path, { limits: { tpm: null, daily_tokens: 5 } })).body.limits).toEqual({
      rpm: 60,
      daily_tokens: 5,
    })
    expect((await call('PATCH', path, { label: 'renamed' })).body).toMatchObject({
      label: 'renamed',
      limits: { rpm: 60, daily_tokens: 5 },
      status: 'active',
    })
    expect(problem(await call('PATCH', path, { secret: 'x' }))).toEqual([422, 'invalid_request', '/secret'])
    expect(problem(await call('PATCH', path, { limits: { rpm: 0 } }))).toEqual([
      422,
      'invalid_request',
      '/limits/rpm',
    ])
    expect(await secretOf(vendor, key)).toBe(canary)
  })

  test('has a label of its own with its vendor, and is found under its vendor only', async () => {
    const [vendor, other] = [await makeVendor(), await makeVendor()]
    const key = await make(`/vendors/${vendor}/keys`, { label: 'main', secret: canary })
    await make(`/vendors/${other}/keys`, { label: 'main', secret: canary })
    expect(problem(await call('POST', `/vendors/${vendor}/keys`, { label: 'main', secret: 'x' }))).toEqual([
      409,
      'already_exists',
      '/label',
    ])
    for (const [method, path, json] of [
      ['GET', '', undefined],
      ['PATCH', '', {}],
      ['DELETE', '', undefined],
      ['POST', '/rotate', { secret: 'x' }],
      ['POST', '/enable', undefined],
      ['POST', '/disable', undefined],
      ['POST', '/probe', undefined],
    ] as const)
      expect(problem(await call(method, `/vendors/${other}/keys/${key}${path}`, json))).toEqual([
        404,
        'not_found',
      ])
    expect(problem(await call('POST', '/vendors/ven_none/keys', { label: 'x', secret: 'x' }))).toEqual([
      404,
      'not_found',
    ])
  })

  test('is rotated, disabled and enabled; an enabled or new one is healthy, whatever happened before', async () => {
    const vendor = await makeVendor()
    const key = await make(`/vendors/${vendor}/keys`, { label: 'main', secret: canary })
    const path = `/vendors/${vendor}/keys/${key}`
    const fail = () =>
      server.database.query(
        `INSERT INTO model_health (subject, subject_id, state, failures, until, last_error)
         VALUES ('key', $1, 'disabled', 2, clock_timestamp() + interval '1 hour', $2::json)`,
        [key, JSON.stringify({ code: 'model_unauthorized', message: 'no', at: '2026-01-01T00:00:00.000Z' })],
      )
    await fail()
    expect((await call('GET', path)).body.health).toMatchObject({
      state: 'disabled',
      until: expect.any(String),
      last_error: { code: 'model_unauthorized', message: 'no' },
    })
    const rotated = await call('POST', `${path}/rotate`, { secret: `${canary}-next` })
    expect(rotated.body).toMatchObject({ secret: '…next', health: { state: 'healthy' } })
    expect(await secretOf(vendor, key)).toBe(`${canary}-next`)
    await fail()
    expect((await call('POST', `${path}/disable`)).body).toMatchObject({
      status: 'disabled',
      health: { state: 'disabled' },
    })
    expect((await call('POST', `${path}/enable`)).body).toMatchObject({
      status: 'active',
      health: { state: 'healthy' },
    })
    expect((await call('POST', `${path}/probe`)).body).toEqual({ ok: true, ms: 3, error: null })
    expect(probed).toEqual([[key, false]])
  })

  test('is not deleted while a request with it is under way; its grants go with it', async () => {
    const vendor = await makeVendor()
    const key = await make(`/vendors/${vendor}/keys`, { label: 'main', secret: canary })
    const grant = await make('/grants', { key_id: key, user_id: 'ann' })
    await server.database.query(
      `INSERT INTO usage_reservations (request_id, entry, tokens, cost_micro, key_id, expires_at)
       VALUES ('req_under_way', '{}', 1, 1, $1, clock_timestamp() + interval '1 hour')`,
      [key],
    )
    const refused = await call('DELETE', `/vendors/${vendor}/keys/${key}`)
    expect(problem(refused)).toEqual([409, 'in_use'])
    expect(usersOf(refused)).toEqual([['request', 'req_under_way']])
    await server.database.query("DELETE FROM usage_reservations WHERE request_id = 'req_under_way'", [])
    expect((await call('DELETE', `/vendors/${vendor}/keys/${key}`)).status).toBe(204)
    expect((await call('GET', `/grants/${grant}`)).status).toBe(404)
  })

  test.each([
    [{ label: 'x' }, '/secret'],
    [{ label: 'x', secret: 'two words' }, '/secret'],
    [{ label: 'x', secret: 'new\nline' }, '/secret'],
    [{ label: 'x', secret: 'schlüssel' }, '/secret'],
    [{ label: 'x', secret: 'x', limits: { rps: 1 } }, '/limits/rps'],
  ])('%j is refused', async (json, pointer) => {
    const vendor = await makeVendor()
    expect(problem(await call('POST', `/vendors/${vendor}/keys`, json))).toEqual([
      422,
      'invalid_request',
      pointer,
    ])
  })
})

describe('an endpoint', () => {
  test('is added, shown, changed and deleted; values of headers that may be secrets are not shown', async () => {
    const vendor = await makeVendor()
    const made = await call('POST', `/vendors/${vendor}/endpoints`, {
      name: 'main',
      base_url: 'https://api.acme.example/v1',
      protocol: 'http',
      categories: ['text', 'reasoning'],
      headers: { 'x-api-key': '{{key}}', 'anthropic-version': '2023-06-01', 'X-Team': canary },
      timeouts: { first_byte_ms: 500, idle_ms: 700 },
    })
    expect(endpointSchemas.view.parse(made.body)).toMatchObject({
      vendor_id: vendor,
      name: 'main',
      base_url: 'https://api.acme.example/v1',
      protocol: 'http',
      categories: ['text', 'reasoning'],
      headers: { 'x-api-key': '…', 'anthropic-version': '2023-06-01', 'X-Team': '…' },
      timeouts: { first_byte_ms: 500, idle_ms: 700 },
      allow_private: false,
      status: 'active',
    })
    const path = `/vendors/${vendor}/endpoints/${made.body.id}`
    const changed = await call('PATCH', path, {
      headers: { 'x-api-key': null, accept: 'application/json' },
      timeouts: { idle_ms: null, total_ms: 9 },
    })
    expect(changed.body).toMatchObject({ timeouts: { first_byte_ms: 500, total_ms: 9 }, protocol: 'http' })
    expect(changed.body.headers).toEqual({
      'anthropic-version': '2023-06-01',
      'X-Team': '…',
      accept: 'application/json',
    })
    const { rows } = await server.database.query<{ row: string }>(
      'SELECT to_json(e)::text AS row FROM endpoints e WHERE endpoint_id = $1',
      [made.body.id],
    )
    expect(rows[0]?.row).not.toContain(canary)
    expect((await call('DELETE', path)).status).toBe(204)
  })

  test.each([
    'ftp://api.acme.example',
    'not a url',
    'https://user:pass@api.acme.example',
    'http://2130706433/v1',
    'http://0177.0.0.1/v1',
    'http://0x7f.1/v1',
    'http://127.1/v1',
    'http://[::ffff:127.0.0.1]/v1',
    'http://169.254.169.254/latest',
    'http://①②⑦.0.0.1/v1',
    'http://api。acme.example/v1',
    'https://api.acme.example/v1?key=x',
    'https://api.acme.example/v1#x',
  ])('at %s is refused', async (base_url) => {
    const vendor = await makeVendor()
    expect(
      problem(
        await call('POST', `/vendors/${vendor}/endpoints`, { name: 'x', base_url, protocol: 'openai' }),
      ),
    ).toEqual([422, 'invalid_request', '/base_url'])
  })

  test('at a plainly private address may be reached there, unless its admin says otherwise', async () => {
    const vendor = await makeVendor()
    const path = `/vendors/${vendor}/endpoints`
    const body = (base_url: string, more: object = {}) => ({
      name: unique('e'),
      base_url,
      protocol: 'openai',
      ...more,
    })
    for (const url of [
      'http://127.0.0.1:11434/v1',
      'http://localhost/v1',
      'http://[::1]:1/v1',
      'http://10.0.0.7',
    ])
      expect((await call('POST', path, body(url))).body).toMatchObject({ base_url: url, allow_private: true })
    expect(problem(await call('POST', path, body('http://127.0.0.1/v1', { allow_private: false })))).toEqual([
      422,
      'invalid_request',
      '/base_url',
    ])
    const named = await call('POST', path, body('http://models.internal/v1', { allow_private: true }))
    expect(named.body.allow_private).toBe(true)
    const own = `${path}/${named.body.id}`
    expect((await call('PATCH', own, { base_url: 'http://models.internal/v2' })).body.allow_private).toBe(
      true,
    )
    expect((await call('PATCH', own, { base_url: 'https://api.acme.example' })).body.allow_private).toBe(
      false,
    )
    expect((await call('PATCH', own, { base_url: 'http://192.168.1.2' })).body.allow_private).toBe(true)
  })

  test.each([
    [{ categories: ['text', 'smell'] }, '/categories/1'],
    [{ headers: { Host: 'x' } }, '/headers/Host'],
    [{ headers: { 'a b': 'x' } }, '/headers/a b'],
    [{ headers: { a: 'x\r\ny: z' } }, '/headers/a'],
    [{ timeouts: { total_ms: 0 } }, '/timeouts/total_ms'],
    [{ protocol: 'grpc' }, '/protocol'],
  ])('with %j is refused', async (more, pointer) => {
    const vendor = await makeVendor()
    const json = { name: 'x', base_url: 'https://a.example', protocol: 'openai', ...more }
    expect(problem(await call('POST', `/vendors/${vendor}/endpoints`, json))).toEqual([
      422,
      'invalid_request',
      pointer,
    ])
  })

  test('whose headers cannot be opened is still shown, keeps them, and takes new ones', async () => {
    const vendor = await makeVendor()
    const id = await makeEndpoint(vendor, { headers: { 'x-team': canary } })
    const lost = sealText(
      '{}',
      { purpose: 'headers', vendor_id: vendor, row_id: id },
      createMasterKeys(newMasterKey()),
    )
    await server.database.query(
      'UPDATE endpoints SET master_key = $2, wrapped_key = $3, sealed_headers = $4 WHERE endpoint_id = $1',
      [id, lost.master_key, lost.wrapped_key, lost.sealed],
    )
    const path = `/vendors/${vendor}/endpoints/${id}`
    const shown = await call('PATCH', path, { name: unique('renamed') })
    expect(shown.body.headers['…']).toContain('master key')
    const changed = await call('PATCH', path, { headers: { accept: 'x/y' } })
    expect(changed.body.headers).toEqual({ accept: 'x/y' })
  })
})

describe('a model', () => {
  const modelOf = (endpoint_id: string, more: object = {}) => ({
    name: unique('m'),
    upstream_name: 'upstream',
    endpoint_id,
    ...more,
  })

  test('is added, shown, changed and deleted', async () => {
    const vendor = await makeVendor()
    const endpoint = await makeEndpoint(vendor)
    const name = unique('org/model:v1.5')
    const made = await call('POST', `/vendors/${vendor}/models`, {
      ...modelOf(endpoint, { name }),
      version: '2026-01',
      prices: { input: 0.15, output: 0.6, cached_input: 0.075 },
      capabilities: ['tools'],
      context_window: 128_000,
    })
    expect(modelSchemas.view.parse(made.body)).toMatchObject({
      vendor_id: vendor,
      name,
      upstream_name: 'upstream',
      version: '2026-01',
      category: 'text',
      dialect: 'tools',
      context_window: 128_000,
      max_output: null,
      prices: { input: 0.15, output: 0.6, cached_input: 0.075, currency: 'USD' },
      response_format_id: null,
      capabilities: ['tools'],
      refuses_stop: false,
      status: 'active',
    })
    const path = `/vendors/${vendor}/models/${made.body.id}`
    const changed = await call('PATCH', path, { version: null, status: 'disabled' })
    expect(changed.body).toMatchObject({ name, version: null, status: 'disabled', capabilities: ['tools'] })
    const tested = await call('POST', `${path}/test`, { prompt: 'Hi' })
    expect(tested.body).toMatchObject({ ok: false, raw: { asked: 'Hi' }, error: { place: '/choices' } })
    expect((await call('POST', `${path}/test`)).body.raw).toEqual({ asked: null })
    await server.database.query(
      "INSERT INTO unread_answers (model_id, format_id, place, raw) VALUES ($1, NULL, '/choices', '{}')",
      [made.body.id],
    )
    expect((await call('GET', `${path}/unread-answers`)).body.data).toEqual([
      { id: expect.any(String), at: expect.any(String), format_id: null, place: '/choices', raw: '{}' },
    ])
    expect((await call('DELETE', path)).status).toBe(204)
    expect(problem(await call('GET', `${path}/unread-answers`))).toEqual([404, 'not_found'])
  })

  test('shows its health on its endpoint, and a key the models that it cannot be used with', async () => {
    const vendor = await makeVendor()
    const model = modelOf(await makeEndpoint(vendor))
    const id = await make(`/vendors/${vendor}/models`, model)
    const key = await make(`/vendors/${vendor}/keys`, { label: 'main', secret: canary })
    const last_error = { code: 'model_unavailable', message: 'answered 500', at: '2026-01-01T00:00:00.000Z' }
    const fail = (subject: string, subject_id: string, for_all: boolean) =>
      server.database.query(
        `INSERT INTO model_health (subject, subject_id, state, failures, for_all, until, last_error)
         VALUES ($1, $2, 'cooling', 1, $3, clock_timestamp() + interval '1 hour', $4::json)`,
        [subject, subject_id, for_all, JSON.stringify(last_error)],
      )
    await fail('model', id, false)
    await fail('key_model', `${key} ${id}`, true)
    const ofModel = () => call('GET', `/vendors/${vendor}/models/${id}`)
    const ofKey = async () => keyViewSchema.parse((await call('GET', `/vendors/${vendor}/keys/${key}`)).body)
    const shown = modelSchemas.view.parse((await ofModel()).body)
    expect(shown.health).toMatchObject({ state: 'cooling', closed_for: 'some', last_error })
    expect((await ofKey()).health).toMatchObject({
      state: 'healthy',
      closed_for: null,
      models: [{ model: model.name, state: 'cooling', closed_for: 'all', last_error }],
    })
    const changed = await call('PATCH', `/vendors/${vendor}/models/${id}`, { upstream_name: 'another' })
    expect(changed.body.health).toMatchObject({ state: 'healthy', closed_for: null })
    expect((await ofKey()).health.models).toEqual([])
    await fail('key_model', `${key} ${id}`, true)
    await call('POST', `/vendors/${vendor}/keys/${key}/enable`)
    expect((await ofKey()).health.models).toEqual([])
  })

  test('has an alias that no other model of any vendor has', async () => {
    const [vendor, other] = [await makeVendor(), await makeVendor()]
    const [endpoint, elsewhere] = [await makeEndpoint(vendor), await makeEndpoint(other)]
    const model = modelOf(endpoint)
    await make(`/vendors/${vendor}/models`, model)
    expect(
      problem(await call('POST', `/vendors/${other}/models`, modelOf(elsewhere, { name: model.name }))),
    ).toEqual([409, 'already_exists', '/name'])
  })

  test('names what is there, and goes with it', async () => {
    const [vendor, other] = [await makeVendor(), await makeVendor()]
    const [endpoint, elsewhere] = [await makeEndpoint(vendor), await makeEndpoint(other)]
    const textOnly = await makeEndpoint(vendor, { categories: ['text'] })
    const spoken = await makeEndpoint(vendor, { protocol: 'http' })
    const unasked = await make('/response-formats', { name: unique('f'), paths: { text: 'a' } })
    const asked = await make('/response-formats', {
      name: unique('f'),
      paths: { text: 'a' },
      request: { body: {} },
    })
    const refused = async (json: object) => problem(await call('POST', `/vendors/${vendor}/models`, json))
    for (const [json, ...pointers] of [
      [modelOf('end_none'), '/endpoint_id'],
      [modelOf(elsewhere), '/endpoint_id'],
      [modelOf(endpoint, { category: 'smell' }), '/category'],
      [modelOf(textOnly, { category: 'embedding' }), '/category'],
      [modelOf(endpoint, { response_format_id: 'fmt_none' }), '/response_format_id'],
      [modelOf(spoken), '/response_format_id'],
      [modelOf(spoken, { response_format_id: unasked }), '/response_format_id'],
      [modelOf('end_none', { category: 'smell' }), '/category', '/endpoint_id'],
      [modelOf(endpoint, { name: '-x' }), '/name'],
    ] as const)
      expect(await refused(json)).toEqual([422, 'invalid_request', ...pointers])
    const model = await make(`/vendors/${vendor}/models`, modelOf(spoken, { response_format_id: asked }))
    expect(usersOf(await call('DELETE', `/response-formats/${asked}`))).toEqual([['model', model]])
    expect(problem(await call('PATCH', `/response-formats/${asked}`, { request: null }))).toEqual([
      422,
      'invalid_request',
      '/request',
    ])
    expect(
      problem(await call('PATCH', `/vendors/${vendor}/endpoints/${spoken}`, { categories: ['embedding'] })),
    ).toEqual([422, 'invalid_request', '/categories'])
    const plain = await make(`/vendors/${vendor}/models`, modelOf(textOnly, { response_format_id: unasked }))
    await make(`/vendors/${vendor}/models`, modelOf(endpoint))
    expect(
      problem(await call('PATCH', `/vendors/${vendor}/endpoints/${endpoint}`, { protocol: 'http' })),
    ).toEqual([422, 'invalid_request', '/protocol'])
    expect(
      problem(await call('PATCH', `/vendors/${vendor}/endpoints/${textOnly}`, { protocol: 'http' })),
    ).toEqual([422, 'invalid_request', '/protocol'])
    expect(
      problem(await call('PATCH', `/vendors/${vendor}/models/${plain}`, { endpoint_id: spoken })),
    ).toEqual([422, 'invalid_request', '/response_format_id'])
  })

  test('is priced in the currency of its vendor', async () => {
    const vendor = await makeVendor()
    const endpoint = await makeEndpoint(vendor)
    const path = `/vendors/${vendor}/models`
    const only = await make(path, modelOf(endpoint, { prices: { input: 1, output: 2, currency: 'CNY' } }))
    expect(problem(await call('POST', path, modelOf(endpoint, { prices: { input: 1, output: 2 } })))).toEqual(
      [422, 'invalid_request', '/prices/currency'],
    )
    await make(path, modelOf(endpoint))
    const changed = await call('PATCH', `${path}/${only}`, {
      prices: { input: 1, output: 2, currency: 'EUR' },
    })
    expect(changed.body.prices.currency).toBe('EUR')
  })

  test('is neither renamed nor deleted while a route leads to it', async () => {
    const vendor = await makeVendor()
    const model = modelOf(await makeEndpoint(vendor))
    const id = await make(`/vendors/${vendor}/models`, model)
    const route = await make('/routes', { role: unique('role'), models: [{ model: model.name }] })
    const path = `/vendors/${vendor}/models/${id}`
    for (const reply of [await call('DELETE', path), await call('PATCH', path, { name: unique('m') })]) {
      expect(problem(reply)).toEqual([409, 'in_use'])
      expect(usersOf(reply)).toEqual([['route', route]])
    }
    await call('DELETE', `/routes/${route}`)
    expect((await call('PATCH', path, { name: unique('m') })).status).toBe(200)
  })
})

test('a change is in the view of this process once the request is answered', async () => {
  const vendor = await makeVendor()
  const endpoint = await makeEndpoint(vendor)
  const name = unique('seen')
  const id = await make(`/vendors/${vendor}/models`, { name, upstream_name: 'a', endpoint_id: endpoint })
  expect(server.registry.view.models.get(name)?.upstream_name).toBe('a')
  await call('PATCH', `/vendors/${vendor}/models/${id}`, { upstream_name: 'b' })
  expect(server.registry.view.models.get(name)?.upstream_name).toBe('b')
  const key = await make(`/vendors/${vendor}/keys`, { label: 'main', secret: canary })
  await call('POST', `/vendors/${vendor}/keys/${key}/rotate`, { secret: `${canary}-other` })
  const [entry] = server.registry.view.keysByVendor.get(vendor) ?? []
  expect(entry?.secret?.reveal()).toBe(`${canary}-other`)
})
