import { describe, expect, it } from 'vitest'
import { listBodies, listUndescribedFields } from '../support/openapi.ts'
import { serve, serveGuarded } from './test-server.ts'

/** The operations of every resource of admins. */
const managed = [
  'tokens',
  'operators',
  'budgets',
  'users',
  'vendors',
  'vendors/{vendor_id}/keys',
  'vendors/{vendor_id}/endpoints',
  'vendors/{vendor_id}/models',
  'categories',
  'response-formats',
  'routes',
  'grants',
  'scenarios',
  'schedules',
].flatMap((path) => [
  `get /admin/v1/${path}`,
  `post /admin/v1/${path}`,
  ...['get', 'patch', 'delete'].map((method) => `${method} /admin/v1/${path}/{id}`),
])

describe('/openapi.json', () => {
  it('the OpenAPI document is 3.1 and has every route with its responses and problems', async () => {
    const { server } = await serveGuarded()
    const { body: document } = await server.call('GET', '/openapi.json')
    expect(document.openapi).toBe('3.1.0')
    const operations = Object.entries<Record<string, { operationId: string }>>(document.paths).flatMap(
      ([path, methods]) => Object.keys(methods).map((method) => `${method} ${path}`),
    )
    expect(operations.sort()).toEqual(
      [
        ...managed,
        ...['disable', 'enable', 'probe', 'rotate'].map(
          (action) => `post /admin/v1/vendors/{vendor_id}/keys/{id}/${action}`,
        ),
        'post /admin/v1/vendors/{vendor_id}/models/{id}/test',
        'get /admin/v1/vendors/{vendor_id}/models/{id}/unread-answers',
        'get /admin/v1/usage',
        'post /admin/v1/usage/reconcile',
        'post /admin/v1/vendors/{vendor_id}/keys/find',
        'post /admin/v1/response-formats/infer',
        'post /admin/v1/response-formats/{id}/test',
        'post /v1/chat/completions',
        'post /v1/embeddings',
        'post /v1/images/generations',
        'post /v1/audio/speech',
        'post /v1/audio/transcriptions',
        'get /v1/models',
        'get /v1/models/{id}',
        'delete /v1/sessions/{id}',
        'get /admin/v1/businesses',
        'post /admin/v1/businesses',
        'get /admin/v1/businesses/{id}',
        'patch /admin/v1/businesses/{id}',
        'get /admin/v1/businesses/{id}/webhook',
        'patch /admin/v1/businesses/{id}/webhook',
        'post /admin/v1/businesses/{id}/webhook/ping',
        'post /admin/v1/businesses/{id}/webhook/rotate',
        ...['get', 'put', 'delete'].map((method) => `${method} /admin/v1/businesses/{id}/agent-card`),
        ...['get', 'post'].map((method) => `${method} /admin/v1/businesses/{business_id}/agents`),
        ...['get', 'patch', 'delete'].map(
          (method) => `${method} /admin/v1/businesses/{business_id}/agents/{id}`,
        ),
        'get /.well-known/agent-card.json',
        'get /a2a/agents/{business_id}/.well-known/agent-card.json',
        'post /a2a/agents/{business_id}',
        ...['get', 'post', 'delete'].map((method) => `${method} /a2a/agents/{business_id}/{operation}`),
        'post /a2a/push/{id}',
        ...['pause', 'resume', 'run'].map((action) => `post /admin/v1/schedules/{id}/${action}`),
        'get /.well-known/ap2-jwks.json',
        'get /v1/payments/{id}',
        'post /payments/webhooks/{provider_id}',
        ...['refund', 'settle'].map((action) => `post /admin/v1/payments/{id}/${action}`),
        ...['get', 'post'].map((method) => `${method} /admin/v1/providers`),
        ...['get', 'patch'].map((method) => `${method} /admin/v1/providers/{id}`),
        'post /admin/v1/providers/{id}/end',
        ...['post', 'delete'].map((method) => `${method} /v1/users/{id}/passkeys`),
        ...['get', 'post'].map((method) => `${method} /passkeys/{link}`),
        ...['get /v1/users/{id}/open-mandates', 'post /v1/open-mandates/{id}/revoke'],
        ...['get', 'post'].map((method) => `${method} /v1/payments/{id}/consent`),
        ...['get', 'post'].map((method) => `${method} /consent/{link}`),
        ...['get /consent.js', 'get /consent.css'],
        ...['get', 'post', 'delete'].map((method) => `${method} /console/session`),
        'post /console/codes',
        'get /admin/v1/trust',
        'post /admin/v1/trust',
        'get /admin/v1/trust/{id}',
        ...['end', 'revoke'].map((action) => `post /admin/v1/trust/{id}/${action}`),
        'get /admin/v1/rejected-jobs',
        'get /admin/v1/rejected-jobs/{id}',
        'delete /admin/v1/rejected-jobs/{id}',
        'post /admin/v1/rejected-jobs/{id}/resubmit',
        'get /admin/v1/webhooks',
        'get /admin/v1/webhooks/{id}',
        'post /admin/v1/webhooks/{id}/replay',
        'delete /v1/memories',
        'delete /v1/memories/{id}',
        'get /v1/memories',
        'get /v1/memories/export',
        'get /',
        'get /healthz',
        'get /metrics',
        'get /openapi.json',
        'get /readyz',
        'post /v1/files',
        ...['get', 'patch', 'delete'].map((method) => `${method} /v1/files/{id}`),
        'get /v1/events',
        'get /v1/runs',
        'get /v1/runs/{id}',
        'get /v1/runs/{id}/blobs/{sha256}',
        'get /v1/runs/{id}/events',
        'get /v1/runs/{id}/state',
        'get /v1/runs/{id}/trajectory',
        'get /v1/sessions',
        'get /v1/sessions/{id}',
        'get /v1/graph',
        'get /v1/input-requests',
        'get /admin/v1/audit',
        'get /admin/v1/workers',
        'get /admin/v1/overview',
        'get /admin/v1/effects',
        'post /admin/v1/effects/{id}/resolve',
        'get /v1/sessions/{id}/actions',
        'get /v1/sessions/{id}/actions/{action}',
        'get /v1/sessions/{id}/actions/{action}/prompt',
        'get /v1/sessions/{id}/events',
        'get /v1/sessions/{id}/state',
        'post /v1/runs',
        'post /v1/runs/wait',
        'post /v1/runs/bulk',
        'get /v1/runs/bulk/{id}',
        'post /v1/runs/bulk/{id}/cancel',
        'post /v1/runs/{id}/cancel',
        'post /v1/runs/{id}/retry',
        'post /v1/runs/{id}/rerun',
        'post /v1/runs/{id}/input',
        'post /v1/sessions/{id}/fork',
      ].sort(),
    )
    const submit = document.paths['/v1/runs'].post
    expect(submit.security).toEqual([{ bearer: [] }])
    expect(Object.keys(submit.responses)).toEqual(
      expect.arrayContaining([
        '200',
        '202',
        '400',
        '401',
        '403',
        '409',
        '413',
        '415',
        '422',
        '429',
        '500',
        '503',
      ]),
    )
    const request = submit.requestBody.content['application/json'].schema
    const { output } = (request.$ref ? document.components.schemas.RunRequest : request).properties
    expect(output.properties.structure).toMatchObject({
      anyOf: [
        { type: 'array', maxItems: 50, items: { $ref: '#/components/schemas/StructureEntry' } },
        { type: 'string', const: 'session' },
      ],
    })
    expect(document.paths['/v1/runs/{id}/events'].get.responses['200'].content).toHaveProperty(
      'text/event-stream',
    )
    expect(document.paths['/healthz'].get.security).toEqual([])
  })

  it('every reference of the OpenAPI document resolves, and every operation has its own id', async () => {
    const { server } = await serve()
    const { text, body: document } = await server.call('GET', '/openapi.json')
    const references = new Set([...text.matchAll(/"\$ref":"([^"]*)"/g)].map((match) => match[1] as string))
    for (const reference of references) {
      expect(reference).toMatch(/^#\/components\/(schemas|parameters|responses|headers)\/\w+$/)
      const [, , kind = '', name = ''] = reference.split('/')
      expect(document.components[kind]).toHaveProperty(name)
    }
    expect(text).not.toContain('$defs')
    const ids = [...text.matchAll(/"operationId":"(\w+)"/g)].map((match) => match[1])
    // no schema is written out twice
    expect(text.length / ids.length).toBeLessThan(2250)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('every request field of the OpenAPI document has a description, every JSON body an example', async () => {
    const { server } = await serve()
    const { body: document } = await server.call('GET', '/openapi.json')
    expect(document.info.title).toBe('Mason API')
    expect(listUndescribedFields(document)).toEqual([])
    const bodies = listBodies(document).filter(({ type }) => type === 'application/json')
    expect(bodies.length).toBeGreaterThan(40)
    expect(bodies.filter(({ examples }) => examples.length === 0)).toEqual([])
  })

  it('the streams of events refer to the schema of an event, which has one for the data of each name', async () => {
    const { server } = await serve()
    const { body: document } = await server.call('GET', '/openapi.json')
    for (const path of ['/v1/runs/{id}/events', '/v1/sessions/{id}/events'])
      expect(document.paths[path].get.responses['200'].content['text/event-stream'].schema).toEqual({
        $ref: '#/components/schemas/RunEvent',
      })
    const data = document.components.schemas.RunEvent.oneOf.map(
      ({ properties }: { properties: Record<string, { const: string; $ref: string }> }) => [
        properties.event?.const,
        properties.data?.$ref.split('/').at(-1),
      ],
    )
    expect(Object.fromEntries(data)).toEqual({
      action: 'ActionEvent',
      status: 'StatusEvent',
      todos: 'TodosEvent',
      input_required: 'InputEvent',
      consent_required: 'ConsentEvent',
      delta: 'Delta',
      done: 'Run',
    })
  })

  it('the OpenAPI document describes the body that is validated', async () => {
    const { server } = await serve()
    const { body: document } = await server.call('GET', '/openapi.json')
    const { RunRequest, Run, RuntimeState } = document.components.schemas
    expect(RunRequest.required).toEqual(['prompt', 'user_id'])
    expect(Run.properties.usage).toEqual({ $ref: '#/components/schemas/Usage' })
    expect(Object.keys(RuntimeState.properties)).toHaveLength(13)
  })
})

it('GET /docs shows the document and loads nothing from other hosts', async () => {
  const { server } = await serve()
  const page = await server.call('GET', '/docs')
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(page.text).toContain('<title>Mason API</title>')
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
  expect(page.text).not.toMatch(/(src|href)="https?:/)
  for (const path of ['/docs/static/swagger-ui-bundle.js', '/docs/static/swagger-ui.css'])
    expect((await server.call('GET', path)).status).toBe(200)
  expect((await server.call('GET', '/docs/static/swagger-initializer.js')).text).toContain('/openapi.json')
})
