// backends: either
// asserts: invariants

import { randomBytes } from 'node:crypto'
import { compactVerify, importJWK } from 'jose'
import { describe, expect } from 'vitest'
import { rewrapRows } from '../../../src/app/cli/key-rotation.ts'
import { openPaymentKeys, replacePairs } from '../../../src/features/payments/keys/payment-keys.ts'
import { listSigningKeys } from '../../../src/features/payments/keys/public-keys.ts'
import { sealForExecutor } from '../../../src/features/payments/keys/sealed-texts.ts'
import { signJws } from '../../../src/features/payments/mandates/tokens/jws.ts'
import paymentKeys from '../../../src/features/payments/payments.keys.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { createMasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import { paymentTest as test } from '../../support/payments.ts'
import { codeOf } from '../../support/runs.ts'

const newKey = (): string => randomBytes(32).toString('base64')
const [before, after] = [newKey(), newKey()]
const [old, both, other] = [
  createMasterKeys(before),
  createMasterKeys(after, [before]),
  createMasterKeys(newKey()),
]
const third = createMasterKeys(newKey(), [after, before])
const never = new AbortController().signal

const countPairs = async (database: Database): Promise<number> =>
  (await database.query<{ pairs: number }>('SELECT count(*)::int AS pairs FROM payment_keys')).rows[0]
    ?.pairs ?? 0

/** Pairs are never deleted: a test opens the keys that it starts with. */
describe('the keys of the executor', () => {
  test('are made once at the first start, also by several executors, and open what the API sealed to them', async ({
    executor,
    database,
  }) => {
    await expect(sealForExecutor(database, 'sk-1', 'provider:p')).rejects.toMatchObject({
      code: 'secret_unreadable',
      remedy: expect.stringContaining('mason payments'),
    })
    const opened = await Promise.all([1, 2, 3].map(() => openPaymentKeys(executor, old)))
    expect(await countPairs(database)).toBe(3)
    const sealed = await sealForExecutor(database, 'sk-nightjar', 'provider:p')
    expect(sealed).not.toContain(Buffer.from('nightjar').toString('base64url'))
    for (const keys of opened) expect(await keys.unseal(sealed, 'provider:p')).toBe('sk-nightjar')
  })

  test('refuse a sealed text for another use, a changed one, and one to an unknown key', async ({
    executor,
    database,
  }) => {
    const keys = await openPaymentKeys(executor, old)
    const sealed = await sealForExecutor(database, 'sk-nightjar', 'provider:p https://a.example')
    const [header = '', ...rest] = sealed.split('.')
    const claims = JSON.parse(Buffer.from(header, 'base64url').toString())
    const withHeader = (change: object): string =>
      [Buffer.from(JSON.stringify({ ...claims, ...change })).toString('base64url'), ...rest].join('.')
    const refused = { code: 'secret_unreadable', remedy: 'enter it again' }
    await expect(keys.unseal(sealed, 'provider:p https://evil.example')).rejects.toMatchObject(refused)
    const moved = withHeader({ use: 'provider:p https://evil.example' })
    await expect(keys.unseal(moved, 'provider:p https://evil.example')).rejects.toMatchObject(refused)
    for (const change of [{ kid: 'unknown' }, { alg: 'dir' }, { enc: 'A128GCM' }, { zip: 'DEF' }])
      await expect(keys.unseal(withHeader(change), claims.use)).rejects.toMatchObject(refused)
    await expect(keys.unseal(`${sealed.slice(0, -3)}AAA`, claims.use)).rejects.toMatchObject(refused)
  })

  test('sign with a key that the public list has, and both stay when it is replaced', async ({
    executor,
    database,
  }) => {
    let nowMs = 0
    const keys = await openPaymentKeys(executor, old, () => nowMs)
    const verify = async (token: string) => {
      const listed = await listSigningKeys(database)
      const { protectedHeader } = await compactVerify(token, async ({ kid }) =>
        importJWK(listed.find((one) => one.kid === kid) ?? {}, 'ES256'),
      )
      return [protectedHeader.kid, listed.map(({ kid }) => kid)]
    }
    const first = await signJws({ receipt: 1 }, await keys.signingKey())
    const [kid, kids] = await verify(first)
    expect(kids).toEqual([kid])

    expect(await replacePairs(executor, both)).toBe(3)
    const rotated = await openPaymentKeys(executor, both)
    const next = (await rotated.signingKey()).kid
    expect(next).not.toBe(kid)
    expect(await verify(first)).toEqual([kid, [next, kid]])
    // an executor that was running meanwhile, and has the new key in its settings already
    const running = await openPaymentKeys(executor, both, () => nowMs)
    nowMs = 5_000
    expect((await running.signingKey()).kid).toBe(next)
    expect(Object.keys((await listSigningKeys(database))[0] ?? {})).toEqual([
      'kty',
      'crv',
      'x',
      'y',
      'kid',
      'alg',
      'use',
    ])
  })

  test('are rotated as the master key is: what is sealed opens before, meanwhile and after, and a second rotation does nothing', async ({
    executor,
    database,
  }) => {
    await openPaymentKeys(executor, both)
    const sealed = await sealForExecutor(database, 'sk-nightjar', 'u')
    expect(await replacePairs(executor, third)).toBe(3)
    expect(await replacePairs(executor, third)).toBe(0)
    const fresh = await sealForExecutor(database, 'sk-new', 'u')
    const rotation = await rewrapRows(executor, third, never, paymentKeys.tables)
    expect(rotation).toMatchObject({ unreadable: [], settled: true })
    expect(rotation.rewrapped).toBeGreaterThan(0)
    expect(await rewrapRows(executor, third, never, paymentKeys.tables)).toMatchObject({ rewrapped: 0 })
    const keys = await openPaymentKeys(executor, third)
    expect(await keys.unseal(sealed, 'u')).toBe('sk-nightjar')
    expect(await keys.unseal(fresh, 'u')).toBe('sk-new')
  })

  test('refuse a start with another key, the master key too, and say what to do', async ({ executor }) => {
    await openPaymentKeys(executor, third)
    await expect(openPaymentKeys(executor, other)).rejects.toMatchObject({
      code: 'secret_unreadable',
      message: expect.stringMatching(
        /encrypted under payment key [0-9a-f]{16}, which this process does not have/,
      ),
      remedy: expect.stringMatching(/MASON_PREVIOUS_PAYMENT_KEYS, or run `mason keys rotate --payments`/),
    })
  })

  test('are no rows that the API or a worker can read, add or change', async ({ executor, database }) => {
    const statements = [
      'SELECT sealed_private FROM payment_keys',
      'SELECT wrapped_key FROM payment_keys',
      'SELECT * FROM payment_keys',
      "INSERT INTO payment_keys (kid, purpose, x, y, master_key, wrapped_key, sealed_private) VALUES ('k', 'sealing', 'x', 'y', 'm', '', '')",
      'UPDATE payment_keys SET ended_at = clock_timestamp()',
      'DELETE FROM payment_keys',
    ]
    for (const statement of statements) {
      expect([statement, await codeOf(database.query(statement))]).toEqual([statement, '42501'])
      const asBusiness = database.asBusiness('default', (sql) => sql.query(statement))
      expect([statement, await codeOf(asBusiness)]).toEqual([statement, '42501'])
    }
    const kept = ["UPDATE payment_keys SET x = 'x'", 'DELETE FROM payment_keys']
    for (const statement of kept)
      expect([statement, await codeOf(executor.query(statement))]).toEqual([statement, '42501'])
  })
})
