import { describe, expect, it } from 'vitest'
import { listBodies, listUndescribedFields } from '../../support/openapi.ts'
import { serve, serveGuarded } from './test-server.ts'

describe('/openapi.json', () => {
  it('the OpenAPI document is 3.1 and has a route with its responses and problems', async () => {
    const { server } = await serveGuarded()
    const { body: document } = await server.call('GET', '/openapi.json')
    expect(document.openapi).toBe('3.1.0')
    const submit = document.paths['/v1/runs'].post
    expect(submit.security).toEqual([{ bearer: ['submit'] }])
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
