// backends: either

import { createHash } from 'node:crypto'
import { describe, expect } from 'vitest'
import { useLink } from '../../../../src/features/payments/consent/links.ts'
import { createAuthenticator } from '../../../support/authenticator.ts'
import { unique } from '../../../support/backend.ts'
import { adminToken } from '../../../support/integration-test.ts'
import {
  asProxy,
  enrol,
  expireLinks,
  newEnrolment,
  readPage,
  site,
  passkeyTest as test,
} from '../../../support/passkeys.ts'
import { codeOf, count, untilBlocked } from '../../../support/runs.ts'

const ofUser = (user: string): string => `passkeys WHERE user_id = '${user}'`

describe('a passkey', () => {
  test('is enrolled on the page of a one-time link, for the user of the link', async ({
    server,
    elsewhere,
  }) => {
    const user = unique('ann')
    const path = await newEnrolment(server, user)
    const { status, text, page, headers } = await readPage(server, path)
    expect(status).toBe(200)
    expect(text).toContain(user)
    expect(page.options).toMatchObject({
      rp: { id: site.rpId },
      authenticatorSelection: { userVerification: 'required' },
    })
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    const authenticator = createAuthenticator()
    expect((await enrol(server, path, authenticator)).status).toBe(204)
    const { rows } = await elsewhere.query('SELECT credential_id, tenant FROM passkeys WHERE user_id = $1', [
      user,
    ])
    expect(rows).toEqual([{ credential_id: authenticator.id, tenant: 'default' }])
  })

  test('is refused from another origin or site, without user verification, and for another challenge; the link stays good', async ({
    server,
    elsewhere,
  }) => {
    const user = unique('ann')
    const path = await newEnrolment(server, user)
    for (const changes of [
      { origin: 'https://pay.example.evil' },
      { rpId: 'example' },
      { verified: false },
      { challenge: Buffer.alloc(32).toString('base64url') },
    ]) {
      const reply = await enrol(server, path, createAuthenticator(), changes)
      expect([reply.status, reply.body.code]).toEqual([422, 'invalid_request'])
      expect(JSON.stringify(reply.body)).not.toContain(path.slice(10))
    }
    expect(await count(elsewhere, ofUser(user))).toBe(0)
    expect((await enrol(server, path, createAuthenticator())).status).toBe(204)
  })

  test('is enrolled once by a link, also by two requests at the same time', async ({ server, elsewhere }) => {
    const user = unique('ann')
    const path = await newEnrolment(server, user)
    const replies = await Promise.all([1, 2].map(() => enrol(server, path, createAuthenticator())))
    expect(replies.map(({ status }) => status).sort()).toEqual([204, 404])
    expect((await enrol(server, path, createAuthenticator())).status).toBe(404)
    expect((await readPage(server, path)).status).toBe(404)
    expect(await count(elsewhere, ofUser(user))).toBe(1)
  })

  test('is refused after the link has expired, and a page that was opened before is of no use', async ({
    server,
    elsewhere,
  }) => {
    const user = unique('ann')
    const path = await newEnrolment(server, user)
    const { page } = await readPage(server, path)
    await expireLinks(elsewhere, user)
    expect((await readPage(server, path)).status).toBe(404)
    const json = createAuthenticator().create({ ...site, challenge: page.options.challenge })
    expect((await server.call('POST', path, { json })).status).toBe(404)
  })

  test('of another user is not taken over, and no challenge is good for another link', async ({ server }) => {
    const [first, second] = [
      await newEnrolment(server, unique('ann')),
      await newEnrolment(server, unique('eve')),
    ]
    const authenticator = createAuthenticator()
    expect((await enrol(server, first, authenticator)).status).toBe(204)
    const reply = await enrol(server, second, authenticator)
    expect([reply.status, reply.body.code]).toEqual([409, 'already_exists'])
    const [third, fourth] = [
      await newEnrolment(server, unique('ann')),
      await newEnrolment(server, unique('eve')),
    ]
    const { page } = await readPage(server, third)
    const mixed = await enrol(server, fourth, createAuthenticator(), { challenge: page.options.challenge })
    expect(mixed.status).toBe(422)
  })

  test('is deleted with its user, and by itself; open links end with it', async ({ server, elsewhere }) => {
    for (const path of ['/admin/v1/users/USER', '/v1/users/USER/passkeys']) {
      const user = unique('ann')
      await enrol(server, await newEnrolment(server, user), createAuthenticator())
      const open = await newEnrolment(server, user)
      expect((await asProxy(server, 'DELETE', path.replace('USER', user))).status).toBe(204)
      expect(await count(elsewhere, ofUser(user))).toBe(0)
      expect((await readPage(server, open)).status).toBe(404)
    }
  })
})

// two that wait for each other need a connection each
describe.runIf(process.env.MASON_TEST_BACKEND === 'served')('a passkey that is being enrolled', () => {
  test('is gone with the others of its user, and the tenth is the last, also of two at once', async ({
    server,
    database,
    elsewhere,
  }) => {
    for (const path of ['/admin/v1/users/USER', '/v1/users/USER/passkeys']) {
      const user = unique('ann')
      const link = await newEnrolment(server, user)
      const deleting = await elsewhere.transaction(async (sql) => {
        await useLink(sql, 'enrol', link.slice(10))
        await sql.query(
          `INSERT INTO passkeys (credential_id, tenant, user_id, public_key, counter) VALUES ($1, 'default', $1, '', 0)`,
          [user],
        )
        const deleted = asProxy(server, 'DELETE', path.replace('USER', user))
        await untilBlocked(database, deleted)
        return { deleted }
      })
      expect((await deleting.deleted).status).toBe(204)
      expect(await count(elsewhere, ofUser(user))).toBe(0)
    }
    const user = unique('ann')
    await elsewhere.query(
      `INSERT INTO passkeys (credential_id, tenant, user_id, public_key, counter)
       SELECT $1 || n, 'default', $1, '', 0 FROM generate_series(1, 9) n`,
      [user],
    )
    const links = [await newEnrolment(server, user), await newEnrolment(server, user)]
    const replies = await Promise.all(links.map((link) => enrol(server, link, createAuthenticator())))
    expect(replies.map(({ status }) => status).sort()).toEqual([204, 409])
    expect(await count(elsewhere, ofUser(user))).toBe(10)
  })
})

describe('a link', () => {
  test('for a consent enrols no passkey', async ({ server, elsewhere }) => {
    const user = unique('ann')
    const path = await newEnrolment(server, user)
    await expireLinks(elsewhere, user, { purpose: 'consent', ref_id: 'c', seconds: 60 })
    expect((await readPage(server, path)).status).toBe(404)
    const challenge = createHash('sha256')
      .update(`enrol ${path.slice(10)}`)
      .digest('base64url')
    expect((await enrol(server, path, createAuthenticator(), { challenge })).status).toBe(404)
  })

  test('is requested by a token of the role "consent", for its own business alone, and never without one', async ({
    server,
    elsewhere,
  }) => {
    const user = unique('ann')
    const path = `/v1/users/${user}/passkeys`
    expect((await server.call('POST', path)).status).toBe(401)
    await newEnrolment(server, user, '?business_id=other')
    const { rows } = await elsewhere.query(`SELECT tenant FROM consent_links WHERE user_id = '${user}'`)
    expect(rows).toEqual([{ tenant: 'other' }])
    const newToken = async (...roles: string[]) =>
      (await asProxy(server, 'POST', '/admin/v1/tokens', { label: 't', roles })).body
    const other = await newToken('submit', 'read', 'delete', 'agent')
    expect((await server.call('POST', path, { token: other.token })).status).toBe(403)
    const own = await newToken('consent')
    expect((await server.call('POST', path, { token: own.token })).status).toBe(201)
    expect((await server.call('POST', `${path}?business_id=other`, { token: own.token })).status).toBe(403)
  })

  test('is stored as its hash alone, and no response repeats it', async ({ server, elsewhere }) => {
    const path = await newEnrolment(server, unique('ann'))
    const secret = path.slice('/passkeys/'.length)
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32)
    const { rows } = await elsewhere.query('SELECT json_agg(l)::text AS text FROM consent_links l')
    expect((rows[0] as { text: string }).text).not.toContain(secret)
    for (const wrong of [
      `${path}x`,
      `${path}/more`,
      path.replace('passkeys', 'consent'),
      `/passkeys/${secret.slice(1)}`,
    ]) {
      const { status, text } = await server.call('GET', wrong, { token: adminToken })
      expect([wrong, status, text.includes(secret.slice(1))]).toEqual([wrong, 404, false])
    }
  })

  test.runIf(process.env.MASON_TEST_BACKEND === 'served')(
    'is neither read nor made by the login of workers, and no passkey is (on servers only)',
    async ({ database, server }) => {
      await enrol(server, await newEnrolment(server, unique('ann')), createAuthenticator())
      for (const table of ['passkeys', 'consent_links']) {
        expect(await count(database, table)).toBe(0)
        const insert = {
          passkeys: `INSERT INTO passkeys (credential_id, tenant, user_id, public_key, counter) VALUES ('c', 'default', 'u', '', 0)`,
          consent_links: `INSERT INTO consent_links (link_hash, tenant, user_id, purpose, expires_at) VALUES ('h', 'default', 'u', 'enrol', now())`,
        }[table] as string
        expect(await codeOf(database.query(insert))).toBe('42501')
      }
    },
  )
})
