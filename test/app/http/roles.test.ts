import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { tokenRoles } from '../../../src/accounts/account-schemas.ts'
import type { TestServer } from '../../support/http.ts'
import { listRoutes } from '../../support/openapi.ts'
import { serve } from './test-server.ts'

/** The status of a request, and the body of an error of authentication, without a connection and without waiting for the end of a stream. */
const request = async ({ app }: TestServer, method: string, url: string, token?: string) => {
  const response = await app.inject({
    ...{ method: method as 'GET', url, payloadAsStream: true },
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    ...(method !== 'GET' && { payload: '[]' }),
  })
  const { statusCode: status } = response
  const body = response.stream()
  const error = [401, 403].includes(status) ? await text(body) : ''
  body.destroy()
  return { status, error }
}

const callers = [...tokenRoles, 'operator', null] as const

/** A server with one token a role, and all of its routes with their role. */
const serveRoles = async () => {
  const { server, fake } = await serve({ auth: 'required', adminToken: 'operator' })
  for (const role of tokenRoles) fake.tokens.set(role, { business_id: 'acme', roles: [role] })
  const { body } = await server.call('GET', '/openapi.json')
  return { server, routes: listRoutes(body) }
}

describe('a token', () => {
  test('of one role opens the routes of this role and no other one', async () => {
    const { server, routes } = await serveRoles()
    expect(routes.length).toBeGreaterThan(150)
    for (const { method, path, role } of routes) {
      const url = path.replaceAll('{business_id}', 'acme').replaceAll(/\{\w+\}/g, 'x')
      const admitted: (typeof callers)[number][] = []
      for (const caller of callers) {
        const { status, error } = await request(server, method, url, caller ?? undefined)
        const isRefused = status === 401 || /the token has no role|only the admin token/.test(error)
        if (!isRefused) admitted.push(caller)
      }
      const expected = callers.filter(
        (caller) =>
          // a code for the console: any token
          (role === null ? caller !== null || path !== '/console/codes' : caller === role) ||
          caller === 'operator' ||
          (caller === 'admin' && role !== 'operator'),
      )
      expect(admitted, `${method} ${path}`).toEqual(expected)
    }
  })

  test('of an agent opens A2A alone, and A2A opens to no other role', async () => {
    const { routes } = await serveRoles()
    const isOfAgents = ({ path }: { path: string }) => /^\/a2a\/agents\/[^/]+(\/\{operation\})?$/.test(path)
    expect(routes.filter(({ role }) => role === 'agent')).toEqual(routes.filter(isOfAgents))
    expect(routes.filter(isOfAgents)).toHaveLength(4)
  })

  test('without the role "consent" enrols no passkey and approves nothing; without "delete" it deletes nothing', async () => {
    const { routes } = await serveRoles()
    const ofBusiness = routes.filter(({ path }) => path.startsWith('/v1/'))
    const deletions = ofBusiness.filter(({ method }) => method === 'DELETE')
    expect(deletions).toHaveLength(5)
    expect(ofBusiness.filter(({ role }) => role === 'delete')).toEqual(deletions)
    const consents = ofBusiness.filter(
      (route) => /passkeys|consent|open-mandates/.test(route.path) && !deletions.includes(route),
    )
    expect(consents.length).toBeGreaterThan(4)
    expect(ofBusiness.filter(({ role }) => role === 'consent')).toEqual(consents)
  })

  test.each([
    ['submit', 'POST', '/a2a/agents/acme', 'agent'],
    ['agent', 'POST', '/v1/runs', 'submit'],
    ['agent', 'POST', '/v1/users/ann/passkeys', 'consent'],
    ['submit', 'POST', '/v1/payments/pay_1/consent', 'consent'],
    ['consent', 'DELETE', '/v1/users/ann/passkeys', 'delete'],
    ['submit', 'DELETE', '/v1/sessions/ses_1', 'delete'],
  ])('of the role %s gets for %s %s the command that creates one with the role %s', async (own, ...rest) => {
    const [method, path, role] = rest
    const { server } = await serveRoles()
    const { status, error } = await request(server, method, path, own)
    expect([status, JSON.parse(error)]).toMatchObject([
      403,
      {
        code: 'forbidden',
        detail: `the token has no role "${role}"`,
        remedy: `use a token with this role: mason tokens create --business acme --name NAME --role ${role}`,
      },
    ])
  })

  test('gets one response, and no second one is tried: a refusal of the HTTP binding of A2A is no failure of the server', async () => {
    const logged: unknown[][] = []
    const add = (...line: unknown[]) => void logged.push(line)
    const logger = {
      level: 'info',
      silent() {},
      trace() {},
      debug() {},
      info() {},
      warn: add,
      error: add,
      fatal: add,
    }
    const { server, fake } = await serve({
      auth: 'required',
      logger: Object.assign(logger, { child: () => logger as never, setBindings() {} }),
    })
    fake.tokens.set('submit', { business_id: 'acme', roles: ['submit'] })
    expect((await request(server, 'POST', '/a2a/agents/acme/message:send', 'submit')).status).toBe(403)
    expect(logged).toEqual([])
  })
})
