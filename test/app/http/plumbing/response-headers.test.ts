import { describe, expect, it } from 'vitest'
import { serve, serveGuarded } from '../test-server.ts'

describe('pages of other origins', () => {
  const preflight = { origin: 'https://app.example', 'access-control-request-method': 'POST' }

  it('a page of another origin may not call unless the origin is allowed', async () => {
    const { server } = await serve()
    const reply = await server.call('OPTIONS', '/v1/runs', { headers: preflight })
    expect(reply.status).toBe(405)
    expect(reply.headers.get('access-control-allow-origin')).toBeNull()
  })

  it('a page of an allowed origin may call', async () => {
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

  it('an OPTIONS request that is no preflight of an allowed origin gets a problem', async () => {
    const { server } = await serve({ corsOrigins: ['https://app.example'] })
    const options = (path: string, headers: Record<string, string>) =>
      server.call('OPTIONS', path, { headers })
    for (const headers of [
      {},
      { origin: 'https://app.example' },
      { ...preflight, origin: 'https://evil.example' },
    ]) {
      expect(await options('/v1/runs', headers)).toMatchObject({
        status: 405,
        body: { code: 'method_not_allowed' },
      })
      expect((await options('/nowhere', headers)).status).toBe(404)
    }
  })
})

it('every response has the security headers, and none forces HTTPS', async () => {
  const { server } = await serve()
  for (const path of ['/healthz', '/v1/runs/none', '/nowhere']) {
    const { headers } = await server.call('GET', path)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-security-policy': expect.stringMatching(/^default-src 'self';.*object-src 'none'/),
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'origin-agent-cluster': '?1',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-dns-prefetch-control': 'off',
      'x-download-options': 'noopen',
      'x-frame-options': 'SAMEORIGIN',
      'x-permitted-cross-domain-policies': 'none',
      'x-xss-protection': '0',
    })
    expect(headers.get('content-security-policy')).not.toContain('upgrade-insecure-requests')
    expect(headers.get('strict-transport-security')).toBeNull()
  }
})
