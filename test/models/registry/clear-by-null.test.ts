// backends: either

import { describe, expect } from 'vitest'
import { startAgentServer } from '../../support/agent-servers.ts'
import { unique } from '../../support/backend.ts'
import type { Reply } from '../../support/http.ts'
import { adminToken, closing, runtimeTest } from '../../support/integration-test.ts'
import { newProvider, publishPaymentKeys } from '../../support/payments.ts'

const test = runtimeTest.extend(
  'agent',
  { scope: 'file' },
  closing(() => startAgentServer('1.0')),
)

type Body = Record<string, unknown>

/**
 * A resource with a value in each field that PATCH takes. `bare`: what one needs beside its required fields; `beside`: what
 * a change needs beside null; `also`: what the schema does not require, and a resource of its kind does.
 */
type Row = { body: () => Body | Promise<Body>; bare?: Body; beside?: Record<string, Body>; also?: string[] }

type Operation = { requestBody: { content: Record<string, { schema: { $ref: string } }> } }
type Document = {
  paths: Record<string, { post?: Operation; patch?: Operation }>
  components: { schemas: Record<string, { properties: Body; required?: string[] }> }
}

let call: (method: string, path: string, json?: unknown) => Promise<Reply>
let document: Document
let vendor: string
let endpoint: string
let agentUrl: string
const business = unique('acme')
const name = () => unique('name')

const create = async (list: string, body: Body): Promise<Body & { id: string }> => {
  const created = await call('POST', list, body)
  expect(created, JSON.stringify(created.body)).toMatchObject({ status: 201 })
  return created.body
}

/** By the path of PATCH in the OpenAPI document. */
const rows: Record<string, Row> = {
  '/admin/v1/operators/{id}': { body: () => ({ name: name() }) },
  '/admin/v1/businesses/{id}': {
    body: () => ({
      id: unique('firm'),
      learning: false,
      quotas: { storage_bytes: 5, queued_runs: 5, running_runs: 5, requests_per_minute: 5 },
      http_hosts: [{ host: 'api.example.com', headers: { authorization: 'plain' } }],
      secrets: { TOKEN: 'secret-value' },
    }),
  },
  '/admin/v1/businesses/{business_id}/agents/{id}': {
    body: () => ({
      ...{
        name: name(),
        card_url: agentUrl,
        roles: ['merchant'],
        headers: { 'x-a': 'a' },
        allow_private: true,
      },
    }),
  },
  '/admin/v1/tokens/{id}': {
    body: () => ({ business_id: business, label: 'x', roles: ['admin'] }),
  },
  '/admin/v1/budgets/{id}': {
    body: () => ({ business_id: unique('firm'), daily_cost: 1, monthly_cost: 1, requests_per_minute: 1 }),
  },
  '/admin/v1/users/{id}': {
    body: () => ({ user_id: unique('ann'), profile: { name: 'Ann' } }),
  },
  '/admin/v1/vendors/{id}': {
    body: () => ({ name: name(), homepage: 'https://a.example', status: 'disabled' }),
  },
  '/admin/v1/vendors/{vendor_id}/endpoints/{id}': {
    body: () => ({
      name: name(),
      base_url: 'https://api.a.example/v1',
      protocol: 'openai',
      categories: ['text'],
      headers: { 'x-a': 'a' },
      timeouts: { first_byte_ms: 5, idle_ms: 5, total_ms: 5 },
      allow_private: true,
      status: 'disabled',
    }),
  },
  '/admin/v1/vendors/{vendor_id}/keys/{id}': {
    body: () => ({ label: name(), secret: 'sk-1', limits: { rpm: 5, tpm: 5 }, status: 'disabled' }),
  },
  '/admin/v1/vendors/{vendor_id}/models/{id}': {
    body: async () => ({
      name: name(),
      upstream_name: 'x',
      version: '1',
      category: 'reasoning',
      endpoint_id: endpoint,
      dialect: 'tools',
      refuses_stop: false,
      context_window: 5,
      max_output: 5,
      prices: { input: 1, output: 1 },
      response_format_id: (await create('/response-formats', format())).id,
      capabilities: ['chat'],
      status: 'disabled',
    }),
  },
  '/admin/v1/categories/{id}': {
    body: () => ({ name: name(), description: 'about' }),
  },
  '/admin/v1/response-formats/{id}': {
    body: () => format(),
  },
  '/admin/v1/routes/{id}': {
    body: async () => ({
      role: unique('own-role'),
      models: [{ model: (await createModel()).name }],
      strategy: 'weighted',
    }),
    bare: { role: unique('own-role') },
  },
  '/admin/v1/grants/{id}': {
    body: async () => ({
      key_id: (await create(`/vendors/${vendor}/keys`, { label: name(), secret: 'sk-2' })).id,
      business_id: business,
      user_id: 'ann',
    }),
    bare: { user_id: 'ann' },
  },
  '/admin/v1/scenarios/{id}': {
    body: async () => ({
      name: name(),
      description: 'about',
      examples: ['one'],
      prompts: { planner: 'Plan.' },
      tools: ['recall'],
      output_tool: 'answer',
      limits: { max_steps: 5 },
      models: { planner: (await createModel()).name },
      rules: ['reflection'],
      status: 'disabled',
    }),
  },
  '/admin/v1/providers/{id}': {
    body: () =>
      newProvider({ allow_private: true, business_ids: [business], window_ms: 600_000, timeout_ms: 5000 }),
    bare: { test: true },
    also: ['base_url', 'api_key', 'webhook_secret'],
  },
  '/admin/v1/schedules/{id}': {
    body: () => ({
      name: name(),
      cron: '0 3 * * *',
      time_zone: 'Europe/Berlin',
      catch_up: 'all',
      request: { prompt: 'x', user_id: 'ann' },
    }),
    bare: { at: '2100-01-01T00:00:00Z' },
    // one of both is set
    beside: { cron: { at: '2100-01-01T00:00:00Z' }, at: { cron: '0 3 * * *' } },
  },
}
const format = (): Body => ({
  name: name(),
  category: 'reasoning',
  request: { body: { model: '{{model}}' } },
  paths: { text: 'a' },
  stream: { format: 'sse', done: '[DONE]', paths: { text: 'a' } },
  schema: { type: 'object' },
  samples: [{ raw: { a: 'x' }, expected: { text: 'x' } }],
})
const createModel = () =>
  create(`/vendors/${vendor}/models`, { name: name(), upstream_name: 'x', endpoint_id: endpoint })

test.beforeAll(async ({ server, backend, database, agent }) => {
  agentUrl = agent.url
  await publishPaymentKeys(backend, database)
  call = (method, path, json) => server.call(method, `/admin/v1${path}`, { token: adminToken, json })
  document = (await server.call('GET', '/openapi.json')).body
  vendor = (await create('/vendors', { name: name() })).id
  const input = { name: name(), base_url: 'https://api.b.example/v1', protocol: 'openai' }
  endpoint = (await create(`/vendors/${vendor}/endpoints`, input)).id
})

const readBody = (operation: Operation | undefined) => {
  const { $ref = '' } = operation?.requestBody.content['application/json']?.schema ?? {}
  return document.components.schemas[$ref.split('/').at(-1) as string]
}

/** The fields of the body of each PATCH of the admin API, by path. */
const readChanges = (): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(document.paths).flatMap(([path, { patch }]) => {
      const body = readBody(patch)
      return path.startsWith('/admin/') && body ? [[path, Object.keys(body.properties)]] : []
    }),
  )

describe('null in a PATCH of the admin API', () => {
  const webhook = '/admin/v1/businesses/{id}/webhook'

  test('is tried on every route of the document', () => {
    expect(Object.keys(readChanges()).sort()).toEqual([...Object.keys(rows), webhook].sort())
  })

  test.each(Object.entries(rows))(
    'clears every field of %s, or says that it is required',
    async (path, { body, bare = {}, beside = {}, also = [] }) => {
      const list = path
        .replace('/admin/v1', '')
        .replace('/{id}', '')
        .replace('{vendor_id}', vendor)
        .replace('{business_id}', 'default')
      const ofSchema = readBody(document.paths[path.replace('/{id}', '')]?.post)?.required ?? []
      const required = [...ofSchema, ...also]
      const needed = Object.entries(await body()).filter(([field]) => required.includes(field))
      const cleared: Body = await create(list, { ...Object.fromEntries(needed), ...bare })
      const { id } = await create(list, await body())
      // what is absent stays
      const whole = await call('GET', `${list}/${id}`)
      const same = await call('PATCH', `${list}/${id}`, {})
      expect([same.status, { ...same.body, updated_at: 0 }]).toEqual([200, { ...whole.body, updated_at: 0 }])
      for (const field of readChanges()[path] ?? []) {
        const changed = await call('PATCH', `${list}/${id}`, { [field]: null, ...beside[field] })
        if (required.includes(field))
          expect([changed.status, changed.body.errors]).toEqual([
            422,
            [{ pointer: `/${field}`, detail: expect.any(String) }],
          ])
        else
          expect([field, changed.status, changed.body[field]]).toEqual([
            field,
            200,
            field in bare ? null : cleared[field],
          ])
      }
    },
  )

  test('clears the address of webhooks, and the right to private ones', async () => {
    const id = unique('firm')
    await create('/businesses', { id })
    const path = `/businesses/${id}/webhook`
    const set = { url: 'https://hooks.example/x', allow_private: true }
    expect((await call('PATCH', path, set)).body).toMatchObject(set)
    const fields = readChanges()[webhook] ?? []
    const cleared = await call('PATCH', path, Object.fromEntries(fields.map((field) => [field, null])))
    expect(cleared.body).toMatchObject({ url: null, allow_private: false })
  })
})
