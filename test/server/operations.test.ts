import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { MasonError } from '../../src/state/errors.ts'
import { body, eventually, serve, serveGuarded } from './setting.ts'

describe('health', () => {
  it('lives', async () => {
    const { server } = await serve()
    expect(await server.call('GET', '/healthz')).toMatchObject({ status: 200, body: { ok: true } })
  })

  it('is ready, or says what is not', async () => {
    const { server, fake } = await serve()
    expect(await server.call('GET', '/readyz')).toMatchObject({ status: 200, body: fake.health })
    fake.health = { ok: false, checks: { queue: { ok: false, error: 'no answer' } } }
    expect(await server.call('GET', '/readyz')).toMatchObject({ status: 503, body: fake.health })
    fake.failing.set('health', new Error('secret'))
    const reply = await server.call('GET', '/readyz')
    expect([reply.status, reply.body.ok]).toEqual([503, false])
    expect(reply.text).not.toContain('secret')
  })
})

describe('metrics', () => {
  it('count requests by route template, runs by status and the process', async () => {
    const { server } = await serve()
    await server.call('GET', '/v1/runs/one')
    await server.call('GET', '/v1/runs/two')
    await server.call('GET', '/no/such/path')
    const { text, headers } = await server.call('GET', '/metrics')
    expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(text).toContain(
      'mason_http_request_duration_seconds_count{route="/v1/runs/:id",method="GET",status="404"} 2',
    )
    expect(text).toContain(
      'mason_http_request_duration_seconds_count{route="unknown",method="GET",status="404"} 1',
    )
    for (const line of [
      'mason_runs{status="queued"} 3',
      'mason_workers 4',
      'mason_outbox 5',
      'mason_stats_up 1',
    ])
      expect(text).toContain(line)
    expect(text).toContain('mason_process_cpu_seconds_total')
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1])
    expect(names.filter((name) => !name?.startsWith('mason_'))).toEqual([])
  })

  it('are there while the runtime cannot count', async () => {
    const { server, fake } = await serve()
    fake.failing.set('stats', new MasonError('database_unavailable', 'away'))
    const reply = await server.call('GET', '/metrics')
    expect(reply.status).toBe(200)
    expect(reply.text).toContain('mason_stats_up 0')
    expect(reply.text).not.toContain('mason_runs{')
  })
})

/** What admins can do with everything they manage. */
const managed = [
  'tokens',
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
].flatMap((path) => [
  `get /admin/v1/${path}`,
  `post /admin/v1/${path}`,
  ...['get', 'patch', 'delete'].map((method) => `${method} /admin/v1/${path}/{id}`),
])

describe('/openapi.json', () => {
  it('is 3.1 and has every route with its answers and problems', async () => {
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
        'get /v1/models',
        'get /v1/models/{id}',
        'delete /v1/sessions/{id}',
        'get /admin/v1/businesses',
        'post /admin/v1/businesses',
        'get /admin/v1/businesses/{id}',
        'patch /admin/v1/businesses/{id}',
        'delete /v1/memories',
        'delete /v1/memories/{id}',
        'get /v1/memories',
        'get /v1/memories/export',
        'get /',
        'get /healthz',
        'get /metrics',
        'get /openapi.json',
        'get /readyz',
        'get /v1/runs',
        'get /v1/runs/{id}',
        'get /v1/runs/{id}/blobs/{sha256}',
        'get /v1/runs/{id}/events',
        'get /v1/runs/{id}/state',
        'get /v1/sessions',
        'get /v1/sessions/{id}',
        'get /v1/sessions/{id}/events',
        'post /v1/runs',
        'post /v1/runs/wait',
        'post /v1/runs/{id}/cancel',
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
    expect(document.paths['/v1/runs/{id}/events'].get.responses['200'].content).toHaveProperty(
      'text/event-stream',
    )
    expect(document.paths['/healthz'].get.security).toEqual([])
  })

  it('has only references that lead somewhere, and every operation under its own name', async () => {
    const { server } = await serve()
    const { text, body: document } = await server.call('GET', '/openapi.json')
    const references = new Set([...text.matchAll(/"\$ref":"([^"]*)"/g)].map((match) => match[1] as string))
    for (const reference of references) {
      expect(reference).toMatch(/^#\/components\/schemas\/\w+$/)
      expect(document.components.schemas).toHaveProperty(reference.split('/').at(-1) as string)
    }
    expect(text).not.toContain('$defs')
    const ids = [...text.matchAll(/"operationId":"(\w+)"/g)].map((match) => match[1])
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('describes the body that is checked', async () => {
    const { server } = await serve()
    const { body: document } = await server.call('GET', '/openapi.json')
    const { RunRequest, Run, RuntimeState } = document.components.schemas
    expect(RunRequest.required).toEqual(['prompt', 'user_id'])
    expect(RunRequest.properties).not.toHaveProperty('webhook_url')
    expect(Run.properties.usage).toEqual({ $ref: '#/components/schemas/Usage' })
    expect(Object.keys(RuntimeState.properties)).toHaveLength(13)
  })
})

it('/docs shows the document, with nothing from elsewhere', async () => {
  const { server } = await serve()
  const page = await server.call('GET', '/docs')
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
  expect(page.text).not.toMatch(/(src|href)="https?:/)
  for (const path of ['/docs/static/swagger-ui-bundle.js', '/docs/static/swagger-ui.css'])
    expect((await server.call('GET', path)).status).toBe(200)
  expect((await server.call('GET', '/docs/static/swagger-initializer.js')).text).toContain('/openapi.json')
})

describe('pages of other origins', () => {
  const preflight = { origin: 'https://app.example', 'access-control-request-method': 'POST' }

  it('may not call unless they are named', async () => {
    const { server } = await serve()
    const reply = await server.call('OPTIONS', '/v1/runs', { headers: preflight })
    expect(reply.status).toBe(405)
    expect(reply.headers.get('access-control-allow-origin')).toBeNull()
  })

  it('may call when they are', async () => {
    const { server } = await serveGuarded({ corsOrigins: ['https://app.example'] })
    const reply = await server.call('OPTIONS', '/v1/runs', { headers: preflight })
    expect(reply.status).toBe(204)
    expect(reply.headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(reply.headers.get('access-control-allow-headers')).toContain('authorization')
    const get = await server.call('GET', '/v1/runs', { headers: { origin: 'https://app.example' } })
    expect([get.status, get.headers.get('access-control-allow-origin')]).toEqual([401, 'https://app.example'])
    const other = await server.call('GET', '/healthz', { headers: { origin: 'https://evil.example' } })
    expect(other.headers.get('access-control-allow-origin')).toBeNull()
  })
})

describe('the log', () => {
  it('has one line a request, with neither body nor token', async () => {
    const lines: string[] = []
    const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
    const { server, fake } = await serveGuarded({ logger })
    fake.failing.set('cancel', new Error('broken'))
    const headers = { 'x-request-id': 'id-1' }
    await server.call('POST', '/v1/runs?business_id=acme', {
      json: { ...body, prompt: 'private words' },
      token: 'all',
      headers,
    })
    await server.call('POST', '/v1/runs/run_1/cancel', { token: 'all', headers })
    await eventually(() => lines.filter((line) => line.includes('"answered"')).length === 2)
    const answered = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'answered')
    expect(answered[0]).toMatchObject({ request_id: 'id-1', method: 'POST', path: '/v1/runs', status: 202 })
    expect(lines.join('')).toContain('broken')
    expect(lines.join('')).not.toMatch(/private words|Bearer|"all"/)
  })
})

it('a request being answered is finished before the server closes, a new one is told to go elsewhere', async () => {
  const { server, fake } = await serve()
  let finish = (): void => undefined
  fake.gate = new Promise((resolve) => {
    finish = resolve
  })
  const slow = server.call('POST', '/v1/runs', { json: body })
  await eventually(() => fake.calls.length === 1)
  const closed = server.close()
  await eventually(async () => (await server.call('GET', '/healthz')).status === 503)
  finish()
  expect((await slow).status).toBe(202)
  await closed
})
