// backends: either

import { describe, expect, onTestFinished } from 'vitest'
import type { Sql } from '../../src/state/ports/sql.ts'
import { unique } from '../support/backend.ts'
import { minutesUntil } from '../support/clock.ts'
import { type Call, type Reply, startServer, type TestServer } from '../support/http.ts'
import { adminToken, runtimeTest } from '../support/integration-test.ts'

const own = { 'sec-fetch-site': 'same-origin' }

/** A browser: it keeps one cookie, and says where its requests come from. */
const openBrowser = (server: TestServer, site: Record<string, string> = own) => {
  let cookie: string | null = null
  const call = async (method: string, path: string, more: Call = {}): Promise<Reply> => {
    const headers = { ...site, ...(cookie !== null && { cookie }), ...more.headers }
    const reply = await server.call(method, path, { ...more, headers })
    const set = reply.headers.get('set-cookie')
    if (set !== null) cookie = set.includes('Max-Age=0') ? null : (set.split(';')[0] as string)
    return reply
  }
  return {
    call,
    signIn: (token: string) => call('POST', '/console/session', { json: { token } }),
    signOut: () => call('DELETE', '/console/session', { headers: { 'content-type': 'application/json' } }),
    get cookie(): string {
      return cookie ?? ''
    },
  }
}

const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, { worker: false })
  // of a test, since failed tokens are counted
  .extend('ownServer', async ({ runtime }, { onCleanup }) => {
    const server = await startServer({ runtime, auth: 'required', adminToken })
    onCleanup(() => server.close())
    return server
  })
  .extend('newToken', ({ server }) => async (roles: string[], business_id = unique('acme')) => {
    const json = { business_id, label: 'Ann', roles }
    const { body } = await server.call('POST', '/admin/v1/tokens', { token: adminToken, json })
    return body as { id: string; token: string; business_id: string }
  })
  .extend('elsewhereOrigin', { scope: 'file' }, async ({ runtime }, { onCleanup }) => {
    const publicOrigin = 'https://mason.example'
    const server = await startServer({ runtime: { ...runtime, publicOrigin }, auth: 'required', adminToken })
    onCleanup(() => server.close())
    return server
  })

/** Has the sessions and codes of a token expire now: their rows cannot be changed. */
const expire = async (sql: Sql, tokenId: string): Promise<void> => {
  const { rows } = await sql.query<Record<'secret_hash' | 'kind', string>>(
    'DELETE FROM console_sessions WHERE token_id = $1 RETURNING secret_hash, kind',
    [tokenId],
  )
  expect(rows.length).toBeGreaterThan(0)
  for (const { secret_hash, kind } of rows)
    await sql.query(
      'INSERT INTO console_sessions (secret_hash, kind, token_id, expires_at) VALUES ($1, $2, $3, clock_timestamp())',
      [secret_hash, kind, tokenId],
    )
}

const codes = (replies: Reply[]) => replies.map(({ status, body }) => [status, body?.code])

describe('a browser that signs in', () => {
  test('gets a cookie that no script reads, and reads what its token may', async ({ server, newToken }) => {
    const { id, token, business_id } = await newToken(['read'])
    const browser = openBrowser(server)
    expect((await browser.call('GET', '/console/session')).body).toEqual({
      ...{ auth: 'required', signed_in: false, problem: null, admin: false, roles: [], businesses: [] },
      ...{ token: null, expires_at: null },
    })
    const reply = await browser.signIn(token)
    expect(reply.status).toBe(200)
    expect(reply.headers.get('set-cookie')).toMatch(
      /^mason-[0-9a-f]{8}=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
    )
    expect(reply.body).toEqual({
      ...{ auth: 'required', signed_in: true, problem: null, admin: false, roles: ['read'] },
      ...{ businesses: [business_id], token: { id, label: 'Ann' }, expires_at: expect.any(String) },
    })
    expect(minutesUntil(reply.body.expires_at)).toBe(8 * 60)
    expect((await browser.call('GET', '/console/session')).body).toEqual(reply.body)
    const runs = await browser.call('GET', '/v1/runs')
    expect([runs.status, runs.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(codes([await browser.call('POST', '/v1/runs', { json: { prompt: 'x', user_id: 'u' } })])).toEqual([
      [403, 'forbidden'],
    ])
    expect(codes([await browser.call('GET', '/admin/v1/tokens')])).toEqual([[403, 'forbidden']])
  })

  test('with the admin token may what the admin may', async ({ server }) => {
    const browser = openBrowser(server)
    expect((await browser.signIn(adminToken)).body).toMatchObject({
      ...{ admin: true, businesses: null, token: { id: null, label: 'the admin token' } },
    })
    expect((await browser.call('GET', '/admin/v1/tokens')).status).toBe(200)
  })

  test('with the token of an operator changes things under their name', async ({ server }) => {
    const operator = await server.call('POST', '/admin/v1/operators', {
      token: adminToken,
      json: { name: 'Bea' },
    })
    const browser = openBrowser(server)
    const { id, token } = operator.body
    expect((await browser.signIn(token)).body).toMatchObject({
      admin: true,
      businesses: null,
      token: { id, label: 'Bea' },
    })
    const json = { business_id: unique('acme'), label: 'Cy', roles: ['read'] }
    const made = await browser.call('POST', '/admin/v1/tokens', { json })
    expect(made.status).toBe(201)
    const audit = await browser.call('GET', `/admin/v1/audit?resource_id=${made.body.id}`)
    expect(audit.body.data).toMatchObject([{ token_id: id, token_label: 'Bea' }])
    await server.call('DELETE', `/admin/v1/operators/${id}`, { token: adminToken })
    expect((await browser.call('GET', '/admin/v1/tokens')).status).toBe(401)
  })

  test('ends with the admin token that it began with', async ({ server, runtime }) => {
    const browser = openBrowser(server)
    await browser.signIn(adminToken)
    const after = await startServer({ runtime, auth: 'required', adminToken: 'another-admin-token' })
    onTestFinished(() => after.close())
    const headers = { ...own, cookie: browser.cookie }
    expect((await after.call('GET', '/admin/v1/tokens', { headers })).status).toBe(401)
    expect((await after.call('GET', '/console/session', { headers })).body.signed_in).toBe(false)
  })

  test('may at once what its token may now', async ({ server, newToken }) => {
    const { id, token } = await newToken(['read', 'submit'])
    const browser = openBrowser(server)
    await browser.signIn(token)
    const change = { token: adminToken, json: { roles: ['submit'] } }
    expect((await server.call('PATCH', `/admin/v1/tokens/${id}`, change)).status).toBe(200)
    expect((await browser.call('GET', '/console/session')).body.roles).toEqual(['submit'])
    expect((await browser.call('GET', '/v1/runs')).status).toBe(403)
  })

  test('is signed out with its token, and at its expiry', async ({ server, newToken, elsewhere }) => {
    const { id, token } = await newToken(['read'])
    const browser = openBrowser(server)
    await browser.signIn(token)
    await server.call('DELETE', `/admin/v1/tokens/${id}`, { token: adminToken })
    expect(codes([await browser.call('GET', '/v1/runs')])).toEqual([[401, 'unauthorized']])
    expect((await browser.call('GET', '/console/session')).body.signed_in).toBe(false)
    const late = openBrowser(server)
    const second = await newToken(['read'])
    await late.signIn(second.token)
    await expire(elsewhere, second.id)
    expect(codes([await late.call('GET', '/v1/runs')])).toEqual([[401, 'unauthorized']])
  })

  test('over https gets a cookie of this host alone', async ({ elsewhereOrigin, newToken }) => {
    const { token } = await newToken(['read'])
    const browser = openBrowser(elsewhereOrigin)
    const reply = await browser.signIn(token)
    expect(reply.headers.get('set-cookie')).toMatch(
      /^__Host-mason-[0-9a-f]{8}=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
    )
    expect((await browser.call('GET', '/v1/runs')).status).toBe(200)
  })

  test('is kept out of the database: it has neither secrets nor tokens', async ({
    server,
    newToken,
    elsewhere,
  }) => {
    const { token } = await newToken(['read'])
    const browser = openBrowser(server)
    await browser.signIn(token)
    await browser.signIn(adminToken)
    const { rows } = await elsewhere.query<{ text: string }>(
      'SELECT json_agg(s)::text AS text FROM console_sessions s',
    )
    for (const secret of [token, adminToken, browser.cookie.split('=')[1] as string])
      expect(rows[0]?.text).not.toContain(secret)
  })
})

describe('what is refused', () => {
  test('a session that was signed out is over, wherever its cookie is sent from', async ({
    server,
    newToken,
  }) => {
    const { token } = await newToken(['read'])
    const browser = openBrowser(server)
    await browser.signIn(token)
    const headers = { ...own, cookie: browser.cookie }
    const out = await browser.signOut()
    expect([out.status, out.headers.get('set-cookie')]).toEqual([
      204,
      expect.stringMatching(/^mason-[0-9a-f]{8}=; Path=\/; HttpOnly; SameSite=Strict; Max-Age=0$/),
    ])
    expect(codes([await server.call('GET', '/v1/runs', { headers })])).toEqual([[401, 'unauthorized']])
    expect((await server.call('GET', '/console/session', { headers })).body.signed_in).toBe(false)
  })

  test.for([
    ['another site', 'cross-site'],
    ['another port of this host', 'same-site'],
    ['the address bar', 'none'],
    ['a browser that does not say', undefined],
  ] as const)(
    'a request of %s is none of the person who is signed in',
    async ([, site], { server, newToken }) => {
      const { token } = await newToken(['admin'])
      const browser = openBrowser(server)
      await browser.signIn(token)
      const headers: Record<string, string> = {
        cookie: browser.cookie,
        ...(site && { 'sec-fetch-site': site }),
      }
      const json = { prompt: 'x', user_id: 'u' }
      const type = { ...headers, 'content-type': 'application/json' }
      expect(
        codes([
          await server.call('GET', '/v1/runs', { headers }),
          await server.call('POST', '/v1/runs', { headers, json }),
          await server.call('GET', '/console/session', { headers }),
          await server.call('DELETE', '/console/session', { headers: type }),
          await server.call('POST', '/console/session', { headers, json: { token } }),
        ]),
      ).toEqual(Array.from({ length: 5 }, () => [403, 'forbidden']))
      expect((await browser.call('GET', '/v1/runs')).status).toBe(200)
    },
  )

  test('a write that is not JSON, as a form sends it, changes nothing', async ({ server, newToken }) => {
    const { token } = await newToken(['admin'])
    const browser = openBrowser(server)
    await browser.signIn(token)
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x'])
      expect(
        codes([
          await browser.call('POST', '/v1/runs', { raw: '{}', headers: { 'content-type': type } }),
          await browser.call('DELETE', '/v1/sessions/s', { headers: { 'content-type': type } }),
          await browser.call('DELETE', '/console/session', { headers: { 'content-type': type } }),
        ]),
      ).toEqual(Array.from({ length: 3 }, () => [415, 'unsupported_media_type']))
    expect(codes([await browser.call('DELETE', '/v1/sessions/s')])).toEqual([[415, 'unsupported_media_type']])
    const json = { 'content-type': 'application/json' }
    expect(codes([await browser.call('DELETE', '/v1/sessions/s', { headers: json })])).toEqual([
      [404, 'not_found'],
    ])
    expect((await browser.call('GET', '/v1/runs')).status).toBe(200)
  })

  test('a session that an attacker chose is never taken over, and signing in again ends the one before', async ({
    server,
    newToken,
  }) => {
    const { token } = await newToken(['read'])
    const attacker = openBrowser(server)
    await attacker.signIn((await newToken(['read'])).token)
    const [name] = attacker.cookie.split('=')
    const victim = openBrowser(server)
    for (const cookie of [attacker.cookie, `${name}=${'a'.repeat(43)}`]) {
      await victim.call('POST', '/console/session', { json: { token }, headers: { cookie } })
      expect(victim.cookie).not.toBe(cookie)
    }
    expect((await attacker.call('GET', '/v1/runs')).status).toBe(401)
    const before = victim.cookie
    await victim.signIn(token)
    expect((await server.call('GET', '/v1/runs', { headers: { ...own, cookie: before } })).status).toBe(401)
    const twice = `${victim.cookie}; ${name}=${'a'.repeat(43)}`
    expect((await server.call('GET', '/v1/runs', { headers: { ...own, cookie: twice } })).status).toBe(401)
  })

  test('a request with Authorization never uses the cookie', async ({ server, newToken }) => {
    const { token } = await newToken(['read'])
    const browser = openBrowser(server)
    await browser.signIn(token)
    for (const authorization of ['Bearer wrong', 'Basic YTpi', 'Bearer'])
      expect((await browser.call('GET', '/v1/runs', { headers: { authorization } })).status).toBe(401)
    const foreign = { cookie: browser.cookie, 'sec-fetch-site': 'cross-site' }
    expect((await server.call('GET', '/v1/runs', { token, headers: foreign })).status).toBe(200)
  })

  test('no page of another origin is allowed to send the cookie', async ({ runtime }) => {
    const server = await startServer({
      ...{ runtime, auth: 'required', adminToken, corsOrigins: ['https://app.example', '*'] },
    })
    onTestFinished(() => server.close())
    const page = { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' }
    const browser = openBrowser(server)
    await browser.signIn(adminToken)
    const replies = [
      await server.call('OPTIONS', '/v1/runs', {
        headers: { ...page, 'access-control-request-method': 'POST' },
      }),
      await server.call('GET', '/v1/runs', { headers: { ...page, cookie: browser.cookie } }),
    ]
    expect(replies.map(({ status }) => status)).toEqual([204, 403])
    for (const { headers } of replies) expect(headers.get('access-control-allow-credentials')).toBeNull()
  })

  test('there is no sign-in where browsers do not say which page sent a request', async ({ server }) => {
    const headers = { host: 'mason.internal:8080' }
    const { origin } = new URL(server.url)
    const { request } = await import('node:http')
    const send = (method: string, more: Record<string, string> = {}) =>
      new Promise<{ status: number; body: Record<string, unknown> }>((resolve, reject) => {
        const sent = request(
          `${origin}/console/session`,
          { method, headers: { ...headers, ...more } },
          (response) => {
            let text = ''
            response.setEncoding('utf8')
            response.on('data', (chunk: string) => {
              text += chunk
            })
            response.on('end', () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) }))
          },
        ).on('error', reject)
        if (method === 'POST') sent.write(JSON.stringify({ token: adminToken }))
        sent.end()
      })
    expect((await send('GET')).body).toMatchObject({
      signed_in: false,
      problem: {
        detail: expect.stringContaining('sign-in is not possible'),
        remedy: expect.stringContaining('https'),
      },
    })
    const post = await send('POST', { ...own, 'content-type': 'application/json' })
    expect([post.status, post.body.detail]).toEqual([403, expect.stringContaining('sign-in is not possible')])
  })
})

describe('a code of `mason console`', () => {
  test('signs in once', async ({ ownServer: server, newToken }) => {
    for (const token of [(await newToken(['submit'])).token, adminToken]) {
      const { status, body } = await server.call('POST', '/console/codes', { token })
      expect(status).toBe(201)
      expect(minutesUntil(body.expires_at)).toBe(1)
      const browser = openBrowser(server)
      const exchange = () => browser.call('POST', '/console/session', { json: { code: body.code } })
      expect((await exchange()).body.signed_in).toBe(true)
      expect((await browser.call('GET', '/console/session')).body.signed_in).toBe(true)
      expect(codes([await exchange()])).toEqual([[401, 'unauthorized']])
    }
  })

  test('is no session, expires, ends with its token, and is made for bearer tokens alone', async ({
    ownServer: server,
    newToken,
    elsewhere,
  }) => {
    const { id, token } = await newToken(['read'])
    const newCode = async () => (await server.call('POST', '/console/codes', { token })).body.code as string
    const browser = openBrowser(server)
    await browser.signIn(token)
    expect((await browser.call('POST', '/console/codes', { json: {} })).status).toBe(401)
    const [name] = browser.cookie.split('=')
    const cookie = `${name}=${await newCode()}`
    expect((await server.call('GET', '/v1/runs', { headers: { ...own, cookie } })).status).toBe(401)
    const late = await newCode()
    await expire(elsewhere, id)
    const orphan = await newCode()
    await server.call('DELETE', `/admin/v1/tokens/${id}`, { token: adminToken })
    for (const code of [late, orphan])
      expect(codes([await browser.call('POST', '/console/session', { json: { code } })])).toEqual([
        [401, 'unauthorized'],
      ])
  })
})

describe('guessing', () => {
  test('ends after five failed tokens in a minute, on whatever routes, but not for tokens that are known', async ({
    runtime,
    newToken,
  }) => {
    const server = await startServer({ runtime, auth: 'required', adminToken })
    onTestFinished(() => server.close())
    const { token } = await newToken(['read'])
    const fresh = await newToken(['read'])
    const browser = openBrowser(server)
    expect((await server.call('GET', '/v1/runs', { token })).status).toBe(200)
    await browser.signIn(adminToken)
    expect(
      codes([
        await server.call('GET', '/v1/runs', { token: 'wrong-1' }),
        await server.call('GET', '/admin/v1/tokens', { token: 'wrong-2' }),
        await openBrowser(server).signIn('wrong-3'),
        await browser.call('POST', '/console/session', { json: { code: 'wrong-4' } }),
        await server.call('POST', '/console/codes', { token: 'wrong-5' }),
      ]),
    ).toEqual(Array.from({ length: 5 }, () => [401, 'unauthorized']))
    for (const refused of [
      await server.call('GET', '/v1/runs', { token: 'wrong-6' }),
      await openBrowser(server).signIn(fresh.token),
      await server.call('GET', '/v1/runs', { token: fresh.token }),
    ]) {
      expect([refused.status, refused.body.code]).toEqual([429, 'too_many_requests'])
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(30)
    }
    expect((await server.call('GET', '/v1/runs', { token })).status).toBe(200)
    expect((await browser.call('GET', '/v1/runs')).status).toBe(200)
  })

  test('gets no more tries at once than one after the other, while a burst of valid tokens passes', async ({
    ownServer: server,
    newToken,
  }) => {
    const tokens = await Promise.all(Array.from({ length: 8 }, () => newToken(['read'])))
    const get = ({ token }: { token: string }) => server.call('GET', '/v1/runs', { token })
    const valid = await Promise.all([...tokens, ...tokens, ...tokens].map(get))
    expect(valid.map(({ status }) => status)).toEqual(valid.map(() => 200))
    const guesses = Array.from({ length: 40 }, () => get({ token: unique('wrong') }))
    const statuses = (await Promise.all(guesses)).map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array(5).fill(401), ...Array(35).fill(429)])
  })

  test('is counted by the address that trusted proxies name, and by no other', async ({ runtime }) => {
    const guess = (server: TestServer, address: string) =>
      server.call('GET', '/v1/runs', { token: unique('wrong'), headers: { 'x-forwarded-for': address } })
    for (const [trustedProxies, last] of [
      [[], 429],
      [['127.0.0.0/8'], 401],
    ] as const) {
      const server = await startServer({ runtime, auth: 'required', adminToken, trustedProxies })
      onTestFinished(() => server.close())
      for (let one = 0; one < 5; one++) expect((await guess(server, '192.0.2.1')).status).toBe(401)
      expect((await guess(server, '192.0.2.1')).status).toBe(429)
      expect((await guess(server, '192.0.2.2')).status).toBe(last)
    }
  })
})

describe('an open stream', () => {
  test.for(['the cookie', 'the token'] as const)(
    'of %s ends after the token was revoked or lost its role, or the session ended',
    async (by, { server, runtime, newToken }) => {
      for (const end of [
        'revoked',
        'changed',
        ...(by === 'the cookie' ? (['signed out'] as const) : []),
      ] as const) {
        const { id, token, business_id } = await newToken(['read', 'submit'])
        const { run } = await runtime.of(business_id).submit({ prompt: 'Hello', user_id: 'ann' })
        const browser = openBrowser(server)
        await browser.signIn(token)
        const call = by === 'the cookie' ? { headers: { ...own, cookie: browser.cookie } } : { token }
        const { status, headers, events } = await server.follow(`/v1/runs/${run.id}/events`, call)
        expect([status, headers.get('cache-control')]).toEqual([200, 'no-store, no-transform'])
        const last = (async () => {
          let name = ''
          for await (const { event } of events) name = event
          return name
        })()
        if (end === 'revoked') await server.call('DELETE', `/admin/v1/tokens/${id}`, { token: adminToken })
        else if (end === 'signed out') await browser.signOut()
        else
          await server.call('PATCH', `/admin/v1/tokens/${id}`, {
            ...{ token: adminToken, json: { roles: ['submit'] } },
          })
        expect([end, await last]).not.toContain('done')
      }
    },
  )
})

test('with auth off the console says so, and there is no sign-in', async ({ runtime }) => {
  const server = await startServer({ runtime, auth: 'off' })
  onTestFinished(() => server.close())
  const browser = openBrowser(server)
  expect((await browser.call('GET', '/console/session')).body).toEqual({
    ...{
      auth: 'off',
      signed_in: true,
      problem: null,
      admin: true,
      roles: ['admin'],
      businesses: ['default'],
    },
    ...{ token: null, expires_at: null },
  })
  expect(codes([await browser.signIn('whatever')])).toEqual([[403, 'forbidden']])
  expect((await browser.call('GET', '/v1/runs')).status).toBe(200)
  for (const site of ['same-site', 'cross-site']) {
    const reply = await openBrowser(server, { 'sec-fetch-site': site }).call('GET', '/v1/runs')
    expect(reply.status).toBe(403)
  }
})
