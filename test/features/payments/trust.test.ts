// backends: either
// asserts: invariants

import { generateKeyPairSync } from 'node:crypto'
import pg from 'pg'
import { describe, expect, onTestFinished } from 'vitest'
import { createTrust, type TrustAnswer } from '../../../src/features/payments/trust/trust.ts'
import type { TrustRole } from '../../../src/features/payments/trust/trust-schemas.ts'
import { createTrustedKeys, maxTrustedKeys } from '../../../src/features/payments/trust/trusted-keys.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { unique } from '../../support/backend.ts'
import type { Reply } from '../../support/http.ts'
import { adminToken, runtimeTest } from '../../support/integration-test.ts'
import { codeOf } from '../../support/runs.ts'

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, { worker: false }).extend(
  'admin',
  { scope: 'file' },
  ({ server }) =>
    (method: string, path = '', json?: object): Promise<Reply> =>
      server.call(method, `/admin/v1/trust${path}`, { token: adminToken, ...(json && { json }) }),
)

const newJwk = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
const newKey = (fields: object = {}) => ({
  ...{ business_id: null, issuer: unique('issuer'), kid: unique('kid'), roles: ['merchant'], jwk: newJwk() },
  ...fields,
})
const day = 24 * 3600 * 1000
const inDays = (days: number): string => new Date(Date.now() + days * day).toISOString()

/** The status of a key for a business and a role. */
const statusOf = async (
  sql: Sql,
  { kid, issuer }: { kid: string; issuer: string },
  business_id = 'default',
  role: TrustRole = 'merchant',
): Promise<TrustAnswer['status']> => (await createTrust(sql).find({ business_id, role, kid, issuer })).status

describe('a trusted key', () => {
  test('is added, listed and returned, without what its JWK has beside the point', async ({ admin }) => {
    const key = newKey({ roles: ['merchant', 'payment-processor', 'merchant'] })
    const sent = { ...key, jwk: { ...key.jwk, kid: key.kid, alg: 'ES256', use: 'sig' } }
    const { status, body, headers } = await admin('POST', '', sent)
    expect(status).toBe(201)
    expect(body).toEqual({
      ...key,
      id: expect.stringMatching(/^trk_/),
      roles: ['merchant', 'payment-processor'],
      status: 'valid',
      valid_from: expect.any(String),
      ...{ valid_to: null, revoked_at: null, created_at: expect.any(String) },
    })
    expect(headers.get('location')).toBe(`/admin/v1/trust/${body.id}`)
    expect((await admin('GET', `/${body.id}`)).body).toEqual(body)
    expect((await admin('GET', `?issuer=${key.issuer}`)).body).toEqual({ data: [body], next_cursor: null })
    expect((await admin('GET', '/trk_none')).body.code).toBe('not_found')
  })

  test('belongs to one business, or to all: another one neither lists it nor sees its row', async ({
    admin,
    server,
    database,
  }) => {
    const firm = unique('firm')
    await server.call('POST', '/admin/v1/businesses', { token: adminToken, json: { id: firm } })
    const [own, all] = [newKey({ business_id: firm }), newKey()]
    for (const key of [own, all]) expect((await admin('POST', '', key)).status).toBe(201)
    const listed = async (business: string): Promise<unknown[]> =>
      (await admin('GET', `?business_id=${business}`)).body.data.map(({ kid }: { kid: string }) => kid)
    expect((await listed(firm)).slice(0, 2)).toEqual([all.kid, own.kid])
    expect(await listed('default')).not.toContain(own.kid)
    const rows = (business: string) =>
      database.asBusiness(business, async (sql) => {
        const found = await sql.query('SELECT kid FROM trusted_keys WHERE kid = ANY($1)', [
          [own.kid, all.kid],
        ])
        // the argument names the business, and so does the scope: a wrong argument shows nothing more
        return [found.rows.length, await statusOf(sql, own, firm), await statusOf(sql, all, business)]
      })
    expect(await rows(firm)).toEqual([2, 'valid', 'valid'])
    expect(await rows('default')).toEqual([1, 'unknown', 'valid'])
    expect(await statusOf(database, own, 'default')).toBe('unknown')
  })

  test('is refused with the field and what to do', async ({ admin }) => {
    const key = newKey()
    expect((await admin('POST', '', key)).status).toBe(201)
    const { jwk } = newKey()
    const other = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({ format: 'jwk' })
    const cases: [fields: object, ...errors: [pointer: string, detail: RegExp][]][] = [
      [{ jwk: other }, ['/jwk/crv', /must be P-256/], ['/jwk/x', /32 bytes/], ['/jwk/y', /32 bytes/]],
      [{ jwk: { ...jwk, y: jwk.x } }, ['/jwk/x', /no point of P-256/]],
      [
        { jwk: { kty: 'OKP', crv: 'Ed25519', x: jwk.x } },
        ['/jwk/kty', /must be EC/],
        ['/jwk/crv', /P-256/],
        ['/jwk/y', /./],
      ],
      [{ jwk: { ...jwk, x5u: 'https://evil.example/key' } }, ['/jwk/x5u', /unknown field/]],
      [{ jwk: { ...jwk, kid: 'another' } }, ['/jwk/kid', /is not the `kid` beside it/]],
      [{ jwk: null }, ['/jwk', /./]],
      [{ business_id: 'unknown-business' }, ['/business_id', /POST \/admin\/v1\/businesses creates it/]],
      [{ valid_to: inDays(-1) }, ['/valid_to', /not after valid_from/]],
      [{ valid_from: inDays(2), valid_to: inDays(1) }, ['/valid_to', /not after valid_from/]],
      [{ valid_from: '0000-01-01T00:00:00Z' }, ['/valid_from', /1970 to 9999/]],
      [{ valid_to: '9999-12-31T23:59:59-10:00' }, ['/valid_to', /1970 to 9999/]],
      [{ roles: [] }, ['/roles', /./]],
      [{ roles: ['owner'] }, ['/roles/0', /./]],
      [{ url: 'https://evil.example/jwks.json' }, ['/url', /unknown field/]],
    ]
    for (const [fields, ...errors] of cases) {
      const { status, body, text } = await admin('POST', '', newKey(fields))
      expect([status, text]).toEqual([422, text])
      expect(body.errors).toEqual(
        errors.map(([pointer, detail]) => ({ pointer, detail: expect.stringMatching(detail) })),
      )
    }
    const again = await admin('POST', '', newKey({ issuer: key.issuer, kid: key.kid }))
    expect(again).toMatchObject({ status: 409, body: { code: 'already_exists', remedy: /kid of its own/ } })
    // also for one business, where a key for all has the kid
    const ofOne = newKey({ business_id: 'default', issuer: key.issuer, kid: key.kid })
    expect((await admin('POST', '', ofOne)).body.code).toBe('already_exists')
  })

  test('that is private is refused, and no answer repeats it', async ({ admin }) => {
    const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
    const { status, body, text } = await admin('POST', '', newKey({ jwk }))
    expect(status).toBe(422)
    expect(body.errors).toEqual([{ pointer: '/jwk/d', detail: expect.stringContaining('private key') }])
    expect(text).not.toContain(jwk.d)
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })
    const secret = await admin('POST', '', newKey({ jwk: rsa }))
    expect(secret.status).toBe(422)
    for (const name of ['d', 'p', 'q', 'dp', 'dq', 'qi'] as const)
      expect(secret.text).not.toContain(rsa[name])
  })

  test('is looked up by its kid, its issuer and its role', async ({ admin, database }) => {
    const issuer = unique('issuer')
    const [first, second] = [newKey({ issuer, roles: ['merchant', 'shopper'] }), newKey({ issuer })]
    const elsewhere = newKey({ kid: first.kid })
    for (const key of [first, second, elsewhere]) await admin('POST', '', key)
    const trust = createTrust(database)
    const find = async (query: object) => {
      const { keys } = await trust.find({ business_id: 'default', role: 'merchant', ...query } as never)
      return keys.map((key) => ({ issuer: key.issuer, kid: key.kid, jwk: key.jwk }))
    }
    const [one, two, other] = [first, second, elsewhere].map(({ kid, jwk, ...key }) => ({
      issuer: key.issuer,
      kid,
      jwk,
    }))
    expect(await find({ issuer })).toEqual([one, two])
    // two issuers may have keys of one kid: the signature decides
    expect(await find({ kid: first.kid })).toEqual([one, other])
    expect(await find({ kid: first.kid, issuer })).toEqual([one])
    expect(await find({ issuer, role: 'shopper' })).toEqual([one])
    expect(await trust.find({ business_id: 'default', role: 'payment-processor', kid: first.kid })).toEqual({
      ...{ status: 'unknown', keys: [], key_id: null },
    })
  })

  test('is valid in its time by the clock of the database', async ({ admin, database, elsewhere }) => {
    const [future, brief] = [newKey({ valid_from: inDays(1) }), newKey({ valid_to: inDays(1) })]
    for (const key of [future, brief]) expect((await admin('POST', '', key)).status).toBe(201)
    expect(await statusOf(database, future)).toBe('not_yet_valid')
    expect(await statusOf(database, brief)).toBe('valid')
    const past = newKey({ valid_from: inDays(-2), valid_to: inDays(-1) })
    expect((await admin('POST', '', past)).body.status).toBe('ended')
    expect(await statusOf(database, past)).toBe('ended')
    // what a statement says the time is does not count
    const { body } = await admin('POST', '', newKey())
    await elsewhere.query(`UPDATE trusted_keys SET valid_to = '2001-01-01' WHERE key_id = $1`, [body.id])
    const { rows } = await elsewhere.query<{ ended_now: boolean }>(
      `SELECT valid_to > clock_timestamp() - interval '1 minute' AND valid_to <= clock_timestamp() AS ended_now
       FROM trusted_keys WHERE key_id = $1`,
      [body.id],
    )
    expect(rows).toEqual([{ ended_now: true }])
  })
})

describe('a key that ends', () => {
  test('is refused from the next statement on, and its row says since when', async ({ admin, database }) => {
    const key = newKey({ valid_to: inDays(1) })
    const { body: added } = await admin('POST', '', key)
    const { status, body } = await admin('POST', `/${added.id}/end`)
    expect([status, body.status]).toEqual([200, 'ended'])
    expect(await statusOf(database, key)).toBe('ended')
    expect(await admin('POST', `/${added.id}/end`)).toMatchObject({ status: 200, body })
    // a kid is never used again
    expect((await admin('POST', '', newKey({ issuer: key.issuer, kid: key.kid }))).status).toBe(409)
    expect((await admin('POST', '/trk_none/end')).body.code).toBe('not_found')
  })

  test('is revoked in every row that has it, also after its end, and never trusted again', async ({
    admin,
    database,
  }) => {
    const jwk = newJwk()
    const [first, second] = [newKey({ jwk }), newKey({ jwk, business_id: 'default', valid_from: inDays(1) })]
    const { body: added } = await admin('POST', '', first)
    await admin('POST', '', second)
    await admin('POST', `/${added.id}/end`)
    expect((await admin('POST', `/${added.id}/revoke`)).body).toMatchObject({ status: 'revoked' })
    expect(await statusOf(database, first)).toBe('revoked')
    expect(await statusOf(database, second)).toBe('revoked')
    const again = await admin('POST', '', newKey({ jwk }))
    expect([again.status, again.body.errors]).toEqual([
      422,
      [{ pointer: '/jwk', detail: expect.stringContaining('was revoked') }],
    ])
    // the same bytes by another last character, whose two lowest bits say nothing
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const { x = '' } = jwk
    const x2 = x.slice(0, -1) + digits[digits.indexOf(x.slice(-1)) ^ 1]
    expect(Buffer.from(x2, 'base64url')).toEqual(Buffer.from(x, 'base64url'))
    const respelled = await admin('POST', '', newKey({ jwk: { ...jwk, x: x2 } }))
    expect([respelled.status, respelled.body.errors?.[0].pointer]).toEqual([422, '/jwk/x'])
    expect((await admin('POST', '/trk_none/revoke')).body.code).toBe('not_found')
  })

  test('ends once when two admins end it together, and is revoked while the same key is added', async ({
    admin,
    database,
  }) => {
    const [ended, revoked] = [
      (await admin('POST', '', newKey())).body,
      (await admin('POST', '', newKey())).body,
    ]
    const ends = await Promise.all([1, 2, 3, 4].map(() => admin('POST', `/${ended.id}/end`)))
    expect(ends.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(new Set(ends.map(({ body }) => body.valid_to)).size).toBe(1)
    const added = newKey({ jwk: revoked.jwk })
    const [one, two, third] = await Promise.all([
      admin('POST', `/${revoked.id}/revoke`),
      admin('POST', `/${revoked.id}/revoke`),
      admin('POST', '', added),
    ])
    expect([one.body.revoked_at, one.status]).toEqual([two.body.revoked_at, 200])
    expect([201, 422]).toContain(third.status)
    expect(await statusOf(database, added)).toBe(third.status === 201 ? 'revoked' : 'unknown')
  })
})

describe('the rows of trusted keys', () => {
  test('never change and are never deleted, by an admin or by the owner', async ({
    admin,
    database,
    elsewhere,
  }) => {
    const { body } = await admin('POST', '', newKey())
    await admin('POST', `/${body.id}/end`)
    await admin('POST', `/${body.id}/revoke`)
    const statements = [
      `UPDATE mason.trusted_keys SET roles = '{shopper}'`,
      `UPDATE mason.trusted_keys SET x = y`,
      `UPDATE mason.trusted_keys SET tenant = 'default'`,
      `UPDATE mason.trusted_keys SET revoked_at = NULL WHERE key_id = '${body.id}'`,
      `UPDATE mason.trusted_keys SET revoked_at = now() WHERE key_id = '${body.id}'`,
      `UPDATE mason.trusted_keys SET valid_to = NULL WHERE key_id = '${body.id}'`,
      'DELETE FROM mason.trusted_keys',
      'TRUNCATE mason.trusted_keys',
    ]
    const before = (await admin('GET', `/${body.id}`)).body
    for (const statement of statements) {
      expect(['42501', '23001'], statement).toContain(await codeOf(database.query(statement)))
      expect(['42501', '23001'], statement).toContain(await codeOf(elsewhere.query(statement)))
    }
    expect((await admin('GET', `/${body.id}`)).body).toEqual(before)
  })

  test.runIf(process.env.MASON_TEST_BACKEND === 'served')(
    'are read by the login of workers, and written by that of the API alone (on servers only)',
    async ({ admin, backend }) => {
      const { body } = await admin('POST', '', newKey())
      const {
        workerUrl = '',
        apiUrl = '',
        url,
      } = backend.config.database as { workerUrl?: string; apiUrl?: string; url: string }
      const insert = `INSERT INTO trusted_keys (key_id, issuer, kid, roles, x, y) VALUES ('w', 'i', 'w', '{merchant}', 'x', 'y')`
      const end = `UPDATE trusted_keys SET valid_to = clock_timestamp() WHERE key_id = '${body.id}'`
      const revoke = `UPDATE trusted_keys SET revoked_at = clock_timestamp() WHERE key_id = '${body.id}'`
      const connect = async (address: string) => {
        const client = new pg.Client({ connectionString: address })
        await client.connect()
        onTestFinished(() => client.end())
        await client.query('SET search_path = mason, public')
        return client
      }
      const worker = await connect(workerUrl)
      for (const role of ['mason_worker', 'mason_business']) {
        await worker.query(`SET ROLE ${role}; SELECT set_config('mason.business', 'default', false)`)
        expect((await worker.query('SELECT 1 FROM trusted_keys WHERE key_id = $1', [body.id])).rowCount).toBe(
          1,
        )
        for (const statement of [insert, end, revoke, 'DELETE FROM trusted_keys'])
          expect([role, statement, await codeOf(worker.query(statement))]).toEqual([role, statement, '42501'])
      }
      expect((await admin('GET', `/${body.id}`)).body).toEqual(body)
      const api = await connect(apiUrl)
      await api.query('SET ROLE mason_api')
      expect(await codeOf(api.query(insert))).toBe('42501')
      // the owner of the tables is bound by the trigger, whatever rights it gives itself
      const owner = await connect(url)
      await owner.query('BEGIN; ALTER TABLE trusted_keys NO FORCE ROW LEVEL SECURITY')
      expect(await codeOf(owner.query(`UPDATE trusted_keys SET x = 'x' WHERE key_id = '${body.id}'`))).toBe(
        '23001',
      )
      await owner.query('ROLLBACK; BEGIN')
      expect(await codeOf(owner.query('DELETE FROM trusted_keys'))).toBe('23001')
      await owner.query('ROLLBACK')
    },
  )

  test('are at most a thousand of one business that have not ended', async ({ elsewhere }) => {
    const business = unique('full')
    await elsewhere.query('INSERT INTO businesses (tenant) VALUES ($1)', [business])
    await elsewhere.query(
      `INSERT INTO trusted_keys (key_id, tenant, issuer, kid, roles, x, y)
       SELECT $1 || n, $1, 'i', n::text, '{merchant}', n::text, 'y' FROM generate_series(1, $2::int) n`,
      [business, maxTrustedKeys],
    )
    const keys = createTrustedKeys(elsewhere)
    const add = () => keys.create({}, { ...newKey({ business_id: business }), valid_to: null } as never)
    await expect(add()).rejects.toMatchObject({
      code: 'invalid_request',
      detail: { errors: [{ pointer: '/business_id', detail: expect.stringContaining('end those') }] },
    })
    await keys.end(`${business}7`)
    expect(await add()).toMatchObject({ business_id: business, status: 'valid' })
  })
})
