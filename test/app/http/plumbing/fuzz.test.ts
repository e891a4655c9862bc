import fc from 'fast-check'
import { expect, it } from 'vitest'
import { serve } from '../test-server.ts'

const posts = ['/v1/runs', '/v1/runs/r/cancel', '/v1/runs/r/input', '/v1/sessions/s/fork']
const field = fc.oneof(
  fc.constantFrom(
    'prompt',
    'user_id',
    'files',
    'output',
    'limits',
    'metadata',
    'answer',
    'request_id',
    'action_id',
  ),
  fc.constantFrom('__proto__', 'constructor', 'toString', '', 'a/b', '\u0000', '\ud800'),
)
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 6 }),
  fc.string({ unit: 'binary', maxLength: 50 }),
  fc.constantFrom(1e308, -0, 2 ** 53, 2 ** 31, '\u0000', '\ud800', 'x'.repeat(1000), { $ref: '#' }),
)
const nearJson = fc
  .array(fc.tuple(field, value), { maxLength: 8 })
  .map(
    (fields) =>
      `{${fields.map(([key, item]) => `${JSON.stringify(key)}:${JSON.stringify(item)}`).join(',')}}`,
  )
const bodies = fc.oneof(
  { weight: 6, arbitrary: nearJson.map((text) => Buffer.from(text)) },
  { weight: 2, arbitrary: fc.json().map((text) => Buffer.from(text)) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
)

it('no body gets a 5xx, and every refusal is a problem', async () => {
  const { server } = await serve()
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...posts), bodies, async (url, payload) => {
      const headers = { 'content-type': 'application/json' }
      const reply = await server.app.inject({ method: 'POST', url, headers, payload })
      expect(reply.statusCode).toBeLessThan(500)
      expect(reply.headers['x-request-id']).toMatch(/^req_/)
      if (reply.statusCode >= 400)
        expect(reply.json()).toMatchObject({ status: reply.statusCode, instance: url })
    }),
    { numRuns: 300 },
  )
})

it('no path, query or header gets a 5xx', async () => {
  const { server } = await serve()
  const piece = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }).map((text) => encodeURIComponent(text.toWellFormed())),
    fc.constantFrom('%', '%00', '%ff', '%2F', '..', ':id', '*', '%ED%A0%80', '9'.repeat(400), 'runs', 'wait'),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('GET', 'DELETE', 'HEAD', 'POST', 'PUT'),
      fc.array(piece, { minLength: 1, maxLength: 3 }),
      fc.constantFrom('limit', 'cursor', 'after', 'user_id', 'inline', 'status', '__proto__', 'business_id'),
      piece,
      async (method, pieces, name, given) => {
        const url = `/v1/${pieces.join('/')}?${name}=${given}`
        const headers = { 'last-event-id': given, 'idempotency-key': given, 'x-request-id': given }
        const reply = await server.app.inject({ method: method as 'GET', url, headers })
        expect(reply.statusCode).toBeLessThan(500)
        expect(reply.headers['x-request-id']).toBeTruthy()
      },
    ),
    { numRuns: 300 },
  )
})
