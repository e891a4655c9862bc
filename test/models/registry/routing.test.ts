// backends: either

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { categorySchemas } from '../../../src/models/schemas/catalog.ts'
import { formatSchemas } from '../../../src/models/schemas/response-format.ts'
import { grantSchemas, routeSchemas } from '../../../src/models/schemas/routing.ts'
import { unique } from '../../support/backend.ts'
import type { Reply } from '../../support/http.ts'
import { type RegistryServer, startRegistryServer } from '../../support/registry-server.ts'

let server: RegistryServer
let vendor: string
let key: string
let alias: string

const call: RegistryServer['call'] = (...args) => server.call(...args)
const make: RegistryServer['make'] = (...args) => server.make(...args)
const problem = ({ status, body }: Reply) => [
  status,
  body.code,
  ...((body.errors ?? []) as { pointer: string }[]).map(({ pointer }) => pointer),
]
const usersOf = ({ body }: Reply) =>
  (body.users as { kind: string; id: string }[]).map(({ kind, id }) => [kind, id])

const makeModel = async (more: object = {}): Promise<string> => {
  const endpoint_id = await make(`/vendors/${vendor}/endpoints`, {
    name: unique('door'),
    base_url: 'https://api.acme.example/v1',
    protocol: 'openai',
  })
  const name = unique('m')
  await make(`/vendors/${vendor}/models`, { name, upstream_name: 'm', endpoint_id, ...more })
  return name
}

beforeAll(async () => {
  server = await startRegistryServer()
  vendor = await make('/vendors', { name: unique('acme') })
  key = await make(`/vendors/${vendor}/keys`, { label: 'main', secret: 'sk-0123456789' })
  alias = await makeModel()
})
afterAll(() => server?.close())

describe('categories', () => {
  test('that are built in cannot be changed', async () => {
    const { body } = await call('GET', '/categories')
    const text = body.data.find(({ name }: { name: string }) => name === 'text')
    expect(categorySchemas.view.parse(text)).toMatchObject({ name: 'text', built_in: true })
    for (const reply of [
      await call('PATCH', `/categories/${text.id}`, { description: 'x' }),
      await call('DELETE', `/categories/${text.id}`),
    ])
      expect(problem(reply)).toEqual([403, 'forbidden'])
    expect(problem(await call('POST', '/categories', { name: 'text' }))).toEqual([
      409,
      'already_exists',
      '/name',
    ])
  })

  test('that were added cannot be deleted while they are used', async () => {
    const name = unique('smell')
    const id = await make('/categories', { name, description: 'what it smells like' })
    const endpoint = await make(`/vendors/${vendor}/endpoints`, {
      name: unique('nose'),
      base_url: 'https://nose.example',
      protocol: 'openai',
      categories: [name],
    })
    const model = await makeModel({ category: name })
    const route = await make('/routes', { category: name, models: [{ model }] })
    const format = await make('/response-formats', {
      name: unique('f'),
      category: name,
      paths: { text: 'a' },
    })
    const refused = await call('DELETE', `/categories/${id}`)
    expect(problem(refused)).toEqual([409, 'in_use'])
    expect(usersOf(refused)).toEqual([
      ['model', expect.any(String)],
      ['endpoint', endpoint],
      ['response format', format],
      ['route', route],
    ])
    expect(problem(await call('PATCH', `/categories/${id}`, { name: unique('odour') }))).toEqual([
      409,
      'in_use',
    ])
    expect((await call('PATCH', `/categories/${id}`, { description: '' })).body).toMatchObject({
      name,
      description: '',
    })
    const free = await make('/categories', { name: unique('touch') })
    expect((await call('PATCH', `/categories/${free}`, { name: unique('feel') })).status).toBe(200)
    expect((await call('DELETE', `/categories/${free}`)).status).toBe(204)
  })
})

describe('response formats', () => {
  const odd = (more: object = {}) => ({
    name: unique('odd'),
    paths: { text: 'reply.words', usage: { prompt_tokens: 'cost.in', completion_tokens: 'cost.out' } },
    samples: [
      {
        raw: { reply: { words: 'hello' }, cost: { in: 3, out: 4 } },
        expected: { text: 'hello', usage: { prompt_tokens: 3, completion_tokens: 4 } },
      },
    ],
    ...more,
  })

  test('are added, shown, tried out, changed and deleted', async () => {
    const input = odd({ request: { body: { ask: '{{prompt}}', of: '\ud800', nothing: null } } })
    const made = await call('POST', '/response-formats', input)
    expect(formatSchemas.view.parse(made.body)).toMatchObject({
      name: input.name,
      category: 'text',
      paths: input.paths,
      samples: input.samples,
      request: {
        method: 'POST',
        path: '',
        headers: {},
        body: { ask: '{{prompt}}', of: '\ud800', nothing: null },
      },
      stream: null,
      poll: null,
      schema: null,
      built_in: false,
    })
    const path = `/response-formats/${made.body.id}`
    expect((await call('GET', path)).body).toEqual(made.body)
    const raw = { reply: { words: 'yes' }, cost: { in: 1, out: 2 } }
    const read = await call('POST', `${path}/test`, { raw })
    expect(read.body).toMatchObject({ ok: true, raw, parsed: { text: 'yes' } })
    const unread = await call('POST', `${path}/test`, { raw: { reply: 7 } })
    expect(unread.body).toMatchObject({
      ok: false,
      raw: { reply: 7 },
      parsed: null,
      place: expect.any(String),
    })
    const changed = await call('PATCH', path, { name: unique('odd'), request: null })
    expect(changed.body).toMatchObject({ request: null, paths: input.paths })
    expect((await call('DELETE', path)).status).toBe(204)
    expect(problem(await call('POST', `${path}/test`, { raw: {} }))).toEqual([404, 'not_found'])
  })

  test('keep the long numbers of their schema as numbers', async () => {
    const schema = { properties: { cost: { properties: { in: { maximum: 2 ** 63 } } } } }
    const { body } = await call('POST', '/response-formats', odd({ schema }))
    expect(body.schema).toEqual(schema)
  })

  test('that do not parse, or whose samples fail, are refused with the position', async () => {
    const broken = { raw: { reply: { words: 'hello' } }, expected: { text: 'bye' } }
    for (const [more, pointer] of [
      [{ paths: { text: 'reply.[' }, samples: [] }, '/paths/text'],
      [{ paths: { colour: 'a' } }, '/paths/colour'],
      [{ samples: [broken] }, '/samples/0/expected/text'],
      [{ category: 'smell' }, '/category'],
      [{ request: { body: { a: '{{nonsense}}' } } }, '/request/body/a'],
    ] as const) {
      const [status, code, ...pointers] = problem(await call('POST', '/response-formats', odd(more)))
      expect([status, code]).toEqual([422, 'invalid_request'])
      expect(pointers).toContain(pointer)
    }
    const id = await make('/response-formats', odd())
    expect(
      problem(await call('PATCH', `/response-formats/${id}`, { paths: { text: 'reply.other' } })),
    ).toEqual([422, 'invalid_request', expect.stringMatching(/^\/samples\/0/)])
    expect((await call('GET', `/response-formats/${id}`)).body.paths.text).toBe('reply.words')
  })

  test('that are built in can be copied and not changed', async () => {
    const { body } = await call('GET', '/response-formats')
    const builtIn = body.data.find(({ built_in }: { built_in: boolean }) => built_in)
    for (const reply of [
      await call('PATCH', `/response-formats/${builtIn.id}`, { name: 'mine' }),
      await call('DELETE', `/response-formats/${builtIn.id}`),
    ]) {
      expect(problem(reply)).toEqual([403, 'forbidden'])
      expect(reply.body.remedy).toContain('POST /admin/v1/response-formats')
    }
    const { id: _, built_in: __, created_at: ___, updated_at: ____, ...copy } = builtIn
    expect((await call('POST', '/response-formats', copy)).body).toMatchObject({ code: 'already_exists' })
    const copied = await call('POST', '/response-formats', { ...copy, name: unique('copy') })
    expect(copied.body).toMatchObject({ built_in: false, paths: builtIn.paths, samples: builtIn.samples })
  })
})

describe('routes', () => {
  test('are added, shown, changed and deleted', async () => {
    const role = unique('role')
    const other = await makeModel()
    const made = await call('POST', '/routes', {
      role,
      models: [{ model: alias, weight: 3 }, { model: other }],
    })
    expect(routeSchemas.view.parse(made.body)).toMatchObject({
      role,
      category: null,
      models: [{ model: alias, weight: 3 }, { model: other }],
      strategy: 'priority',
    })
    const path = `/routes/${made.body.id}`
    expect((await call('PATCH', path, { strategy: 'weighted' })).body).toMatchObject({
      role,
      models: made.body.models,
      strategy: 'weighted',
    })
    expect((await call('GET', `/routes?role=${role}`)).body.data.map(({ id }: { id: string }) => id)).toEqual(
      [made.body.id],
    )
    expect(server.registry.view.routesByRole.get(role)?.strategy).toBe('weighted')
    expect(problem(await call('POST', '/routes', { role, models: [{ model: alias }] }))).toEqual([
      409,
      'already_exists',
      '/role',
    ])
    expect((await call('DELETE', path)).status).toBe(204)
    expect(server.registry.view.routesByRole.has(role)).toBe(false)
  })

  test.each([
    [{ models: [{ model: 'alias' }] }, '/role'],
    [{ role: 'x', category: 'text', models: [{ model: 'alias' }] }, '/role'],
    [{ role: 'x', models: [] }, '/models'],
    [{ role: 'Planer', models: [{ model: 'alias' }] }, '/role'],
    [{ role: 'embeddings', models: [{ model: 'alias' }] }, '/role'],
    [{ role: 'x', models: [{ model: 'alias' }, { model: 'none' }] }, '/models/1/model'],
    [{ role: 'x', models: [{ model: 'alias' }, { model: 'alias' }] }, '/models/1/model'],
    [{ role: 'x', models: [{ model: 'alias', weight: 0 }] }, '/models/0/weight'],
    [{ category: 'smell', models: [{ model: 'alias' }] }, '/category'],
    [{ role: 'x', models: [{ model: 'alias' }], strategy: 'random' }, '/strategy'],
  ])('%j is refused', async (json, pointer) => {
    const named = JSON.parse(JSON.stringify(json).replaceAll('"alias"', JSON.stringify(alias)))
    expect(problem(await call('POST', '/routes', named))).toEqual([422, 'invalid_request', pointer])
  })

  test('keep what they are for', async () => {
    const id = await make('/routes', { role: unique('role'), models: [{ model: alias }] })
    expect(problem(await call('PATCH', `/routes/${id}`, { role: 'y' }))).toEqual([
      422,
      'invalid_request',
      '/role',
    ])
    expect(problem(await call('PATCH', `/routes/${id}`, { models: [{ model: 'none' }] }))).toEqual([
      422,
      'invalid_request',
      '/models/0/model',
    ])
  })
})

describe('grants', () => {
  test('are added, shown, changed and deleted', async () => {
    const business = unique('globex')
    const made = await call('POST', '/grants', { key_id: key, business_id: business })
    expect(grantSchemas.view.parse(made.body)).toMatchObject({
      key_id: key,
      business_id: business,
      user_id: null,
    })
    const path = `/grants/${made.body.id}`
    expect((await call('PATCH', path, { user_id: 'ann' })).body).toMatchObject({
      business_id: business,
      user_id: 'ann',
    })
    expect((await call('GET', `/grants?key_id=${key}&business_id=${business}`)).body.data).toHaveLength(1)
    expect((await call('GET', '/grants?user_id=stranger')).body.data).toEqual([])
    const entry = server.registry.view.keysByVendor.get(vendor)?.find(({ id }) => id === key)
    expect(entry?.grants).toEqual([{ business_id: business, user_id: 'ann' }])
    expect((await call('DELETE', path)).status).toBe(204)
  })

  test('name an existing key and one grantee, once', async () => {
    expect(problem(await call('POST', '/grants', { key_id: key }))).toEqual([
      422,
      'invalid_request',
      '/business_id',
    ])
    expect(problem(await call('POST', '/grants', { key_id: 'key_none', user_id: 'ann' }))).toEqual([
      422,
      'invalid_request',
      '/key_id',
    ])
    const id = await make('/grants', { key_id: key, user_id: 'ben' })
    expect(problem(await call('POST', '/grants', { key_id: key, user_id: 'ben' }))).toEqual([
      409,
      'already_exists',
      '/key_id',
    ])
    // a user alone is one of the business "default": another business could send the same id
    expect((await call('GET', `/grants/${id}`)).body).toMatchObject({
      business_id: 'default',
      user_id: 'ben',
    })
    const none = { business_id: null, user_id: null }
    expect(problem(await call('PATCH', `/grants/${id}`, none))).toEqual([
      422,
      'invalid_request',
      '/business_id',
    ])
    expect((await call('PATCH', `/grants/${id}`, { user_id: 'ben' })).status).toBe(200)
  })
})

describe('tokens and users', () => {
  test('a change of one field leaves the others as they are', async () => {
    const made = await call('POST', '/tokens', {
      business_id: unique('acme'),
      label: 'reader',
      roles: ['read'],
    })
    expect((await call('PATCH', `/tokens/${made.body.id}`, { label: 'renamed' })).body).toMatchObject({
      label: 'renamed',
      roles: ['read'],
    })
    expect((await call('PATCH', `/tokens/${made.body.id}`, { roles: ['submit'] })).body).toMatchObject({
      label: 'renamed',
      roles: ['submit'],
    })
    expect(problem(await call('PATCH', `/tokens/${made.body.id}`, { label: 'a\u0000' }))).toEqual([
      422,
      'invalid_request',
      '/label',
    ])
  })

  test('are listed of one business', async () => {
    const business_id = unique('acme')
    await make('/tokens', { business_id, label: 'x' })
    await make('/users', { business_id, user_id: 'ann', profile: {} })
    for (const kind of ['tokens', 'users']) {
      const { body } = await call('GET', `/${kind}?business_id=${business_id}`)
      expect(body.data.map((item: { business_id: string }) => item.business_id)).toEqual([business_id])
    }
    expect((await call('GET', `/users/ann?business_id=${business_id}`)).status).toBe(200)
    expect(problem(await call('GET', '/users/ann'))).toEqual([404, 'not_found'])
  })
})
