// backends: either
// asserts: invariants

import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect } from 'vitest'
import { coreSealedTables, rewrapRows } from '../../../src/app/cli/key-rotation.ts'
import { featureSources } from '../../../src/app/features.generated.ts'
import { loadFeatures } from '../../../src/features/load-features.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { queryOne } from '../../../src/infra/database/database.ts'
import {
  openSealedText,
  type SealBinding,
  type SealedText,
  sealText,
} from '../../../src/infra/secrets/envelope.ts'
import { createMasterKeys, type MasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { test } from '../../support/integration-test.ts'

let database: Database
test.beforeAll(async ({ database: d }) => {
  database = d
  await database.query(
    `INSERT INTO vendors (vendor_id, name, status) VALUES ('ven_1', 'one', 'active'), ('ven_2', 'two', 'active')`,
  )
})
beforeEach(async () => {
  await database.query('DELETE FROM vendor_keys')
  await database.query('DELETE FROM endpoints')
})

const newKey = (): string => randomBytes(32).toString('base64')
const [before, after] = [newKey(), newKey()]
const old = createMasterKeys(before)
const both = createMasterKeys(after, [before])
const never = new AbortController().signal

const keyPlace = (row_id: string, vendor_id = 'ven_1'): SealBinding => ({
  purpose: 'secret',
  vendor_id,
  row_id,
})
const endpointPlace = (row_id: string): SealBinding => ({ purpose: 'headers', vendor_id: 'ven_1', row_id })

const addKey = async (
  id: string,
  secret: string,
  keys: MasterKeys = old,
  vendor = 'ven_1',
): Promise<void> => {
  const { master_key, wrapped_key, sealed } = sealText(secret, keyPlace(id, vendor), keys)
  await database.query(
    `INSERT INTO vendor_keys (key_id, vendor_id, label, master_key, wrapped_key, sealed_secret, last_four, status)
     VALUES ($1, $2, $1, $3, $4, $5, 'xxxx', 'active')`,
    [id, vendor, master_key, wrapped_key, sealed],
  )
}
const addEndpoint = async (id: string, headers: string | null): Promise<void> => {
  const row = headers === null ? null : sealText(headers, endpointPlace(id), old)
  await database.query(
    `INSERT INTO endpoints (endpoint_id, vendor_id, name, base_url, protocol, master_key, wrapped_key, sealed_headers, status)
     VALUES ($1, 'ven_1', $1, 'https://h', 'openai', $2, $3, $4, 'active')`,
    [id, row?.master_key ?? null, row?.wrapped_key ?? null, row?.sealed ?? null],
  )
}
const readKey = async (id: string, keys: MasterKeys, sql: Sql = database): Promise<string> => {
  const row = await queryOne<SealedText & { vendor_id: string }>(
    sql,
    'SELECT vendor_id, master_key, wrapped_key, sealed_secret AS sealed FROM vendor_keys WHERE key_id = $1',
    [id],
  )
  if (!row) throw new Error(`no row ${id}`)
  return openSealedText(row, keyPlace(id, row.vendor_id), keys).reveal()
}
const countUnder = async (keys: MasterKeys): Promise<number> =>
  (
    await queryOne<{ rows: number }>(
      database,
      `SELECT ((SELECT count(*) FROM vendor_keys WHERE master_key = $1) + (SELECT count(*) FROM endpoints WHERE master_key = $1))::int AS rows`,
      [keys.current().name],
    )
  )?.rows ?? 0

describe('a stored secret', () => {
  test('opens in its row and shows nowhere in the table', async () => {
    await addKey('key_a', 'sk-nightjar-0123')
    expect(await readKey('key_a', old)).toBe('sk-nightjar-0123')
    const row = await queryOne<{ text: string }>(
      database,
      'SELECT to_json(k)::text AS text FROM vendor_keys k',
      [],
    )
    const hex = Buffer.from('nightjar').toString('hex')
    expect(row?.text).toContain('key_a')
    expect(row?.text).not.toMatch(new RegExp(`nightjar|${hex}`))
  })

  test('is refused in the row of another key, of another vendor, and after any change', async () => {
    await addKey('key_a', 'first-secret')
    await addKey('key_b', 'other-secret')
    const columns = 'master_key, wrapped_key, sealed_secret'
    await database.query(
      `UPDATE vendor_keys SET (${columns}) = (SELECT ${columns} FROM vendor_keys WHERE key_id = 'key_a') WHERE key_id = 'key_b'`,
    )
    const refused = { code: 'secret_unreadable', message: expect.stringContaining('key_b') }
    await expect(readKey('key_b', old)).rejects.toMatchObject(refused)
    await database.query(`UPDATE vendor_keys SET vendor_id = 'ven_2' WHERE key_id = 'key_a'`)
    await expect(readKey('key_a', old)).rejects.toMatchObject({ code: 'secret_unreadable' })
    await database.query(`UPDATE vendor_keys SET vendor_id = 'ven_1' WHERE key_id = 'key_a'`)
    expect(await readKey('key_a', old)).toBe('first-secret')
    await database.query(
      `UPDATE vendor_keys SET sealed_secret = set_bit(sealed_secret, 130, 1 - get_bit(sealed_secret, 130)) WHERE key_id = 'key_a'`,
    )
    await expect(readKey('key_a', old)).rejects.toMatchObject({ code: 'secret_unreadable' })
  })
})

describe('a rotation', () => {
  test('knows each table that has sealed rows', async ({ database }) => {
    const features = await loadFeatures(featureSources)
    const ofFeatures = features.flatMap(({ definition }) => definition.sealed ?? [])
    // those that this login may read: what the executor seals for itself is not among them
    const { rows } = await database.query<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.columns WHERE column_name = 'wrapped_key' ORDER BY table_name`,
      [],
    )
    const known = [...coreSealedTables, ...ofFeatures]
    expect(rows.map(({ name }) => name)).toEqual(known.map(({ name }) => name).sort())
  })

  test('rewraps every row and nothing else, and a second one finds nothing to do', async () => {
    for (let n = 0; n < 103; n++) await addKey(`key_${n}`, `secret-${n}`)
    await addEndpoint('end_1', '{"x-key":"hidden"}')
    await addEndpoint('end_2', null)
    const shown = () =>
      database.query(
        'SELECT key_id, encode(sealed_secret, $1) AS sealed, updated_at FROM vendor_keys ORDER BY key_id',
        ['hex'],
      )
    const rowsBefore = await shown()
    expect(await rewrapRows(database, both, never)).toEqual({ rewrapped: 104, unreadable: [], settled: true })
    expect(await rewrapRows(database, both, never)).toEqual({ rewrapped: 0, unreadable: [], settled: true })
    expect(await shown()).toEqual(rowsBefore)
    const only = createMasterKeys(after)
    for (const n of [0, 99, 100, 102]) expect(await readKey(`key_${n}`, only)).toBe(`secret-${n}`)
    const end = await queryOne<SealedText>(
      database,
      `SELECT master_key, wrapped_key, sealed_headers AS sealed FROM endpoints WHERE endpoint_id = 'end_1'`,
      [],
    )
    expect(openSealedText(end as SealedText, endpointPlace('end_1'), only).reveal()).toBe(
      '{"x-key":"hidden"}',
    )
  })

  test('fails no call of fifty who read and some who write meanwhile', async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `key_${n}`)
    for (const id of ids) await addKey(id, `secret of ${id}, version 0`)
    let reads = 0
    let going = true
    const reader = async (start: number): Promise<void> => {
      for (let n = start; going; n = (n + 7) % ids.length, reads++)
        expect(await readKey(ids[n] ?? '', both)).toMatch(new RegExp(`^secret of key_${n}, version \\d+$`))
    }
    /** A process that does not know the new master key yet, and still seals under the one before. */
    const writer = async (): Promise<void> => {
      for (let version = 1; version <= 3; version++)
        for (const id of ids.slice(0, 10)) {
          const { master_key, wrapped_key, sealed } = sealText(
            `secret of ${id}, version ${version}`,
            keyPlace(id),
            old,
          )
          await database.query(
            'UPDATE vendor_keys SET master_key = $2, wrapped_key = $3, sealed_secret = $4 WHERE key_id = $1',
            [id, master_key, wrapped_key, sealed],
          )
        }
    }
    const reading = Promise.all(Array.from({ length: 50 }, (_, n) => reader(n % ids.length)))
    const [first] = await Promise.all([rewrapRows(database, both, never), writer()])
    const last = await rewrapRows(database, both, never)
    going = false
    await reading
    expect(first.rewrapped).toBeGreaterThanOrEqual(40)
    expect([first.unreadable, last.unreadable]).toEqual([[], []])
    expect(reads).toBeGreaterThan(100)
    expect(await countUnder(both)).toBe(40)
    for (const id of ids.slice(0, 10)) expect(await readKey(id, both)).toBe(`secret of ${id}, version 3`)
  })

  test('does not put an old data key over a secret that changed meanwhile', async () => {
    await addKey('key_a', 'old secret')
    let changed = false
    const overtaken: Sql = {
      async query<Row>(text: string, values?: readonly unknown[]) {
        if (text.includes('UPDATE') && !changed) {
          changed = true
          const { wrapped_key, sealed } = sealText('new secret', keyPlace('key_a'), old)
          await database.query('UPDATE vendor_keys SET wrapped_key = $1, sealed_secret = $2', [
            wrapped_key,
            sealed,
          ])
        }
        return database.query<Row>(text, values)
      },
    }
    expect(await rewrapRows(overtaken, both, never)).toEqual({ rewrapped: 1, unreadable: [], settled: true })
    expect(await readKey('key_a', createMasterKeys(after))).toBe('new secret')
  })

  test('cut off after any statement leaves every row readable, and the next one ends it', async () => {
    const ids = ['key_0', 'key_1', 'key_2']
    for (let allowed = 0; allowed <= 5; allowed++) {
      await database.query('DELETE FROM vendor_keys')
      for (const id of ids) await addKey(id, `secret of ${id}`)
      let left = allowed
      const failing: Sql = {
        async query<Row>(text: string, values?: readonly unknown[]) {
          if (left-- <= 0) throw new Error('the process died')
          return database.query<Row>(text, values)
        },
      }
      await expect(rewrapRows(failing, both, never)).rejects.toThrow('the process died')
      for (const id of ids) expect(await readKey(id, both)).toBe(`secret of ${id}`)
      const done = await countUnder(both)
      expect(done).toBe(Math.max(0, Math.min(3, allowed - 1)))
      expect(await rewrapRows(database, both, never)).toEqual({
        rewrapped: 3 - done,
        unreadable: [],
        settled: true,
      })
      for (const id of ids) expect(await readKey(id, createMasterKeys(after))).toBe(`secret of ${id}`)
    }
  })

  test('goes past rows that it cannot read, and names them', async () => {
    const stranger = createMasterKeys(newKey())
    await addKey('key_a', 'a secret')
    await addKey('key_b', 'b secret', stranger)
    await addKey('key_c', 'c secret')
    await database.query(
      `UPDATE vendor_keys SET wrapped_key = set_bit(wrapped_key, 200, 1 - get_bit(wrapped_key, 200)) WHERE key_id = 'key_a'`,
    )
    const rotation = await rewrapRows(database, both, never)
    expect(rotation.rewrapped).toBe(1)
    expect(rotation.unreadable).toEqual([
      {
        row_id: 'key_a',
        reason: expect.stringContaining('was changed'),
        remedy: expect.stringContaining('backup'),
      },
      {
        row_id: 'key_b',
        reason: expect.stringContaining(stranger.current().name),
        remedy: expect.stringContaining('MASON_PREVIOUS_MASTER_KEYS'),
      },
    ])
    expect(await readKey('key_c', createMasterKeys(after))).toBe('c secret')
  })

  test('ends also when another process never stops writing under another master key, and says so', async () => {
    await addKey('key_a', 'a secret')
    const stubborn: Sql = {
      async query<Row>(text: string, values?: readonly unknown[]) {
        if (text.includes('UPDATE')) {
          const { master_key, wrapped_key, sealed } = sealText('a secret', keyPlace('key_a'), old)
          await database.query(
            'UPDATE vendor_keys SET master_key = $1, wrapped_key = $2, sealed_secret = $3',
            [master_key, wrapped_key, sealed],
          )
        }
        return database.query<Row>(text, values)
      },
    }
    expect(await rewrapRows(stubborn, both, never)).toEqual({ rewrapped: 0, unreadable: [], settled: false })
    expect(await readKey('key_a', both)).toBe('a secret')
  })

  test('stops when it is aborted', async () => {
    await addKey('key_a', 'a secret')
    const stopped = AbortSignal.abort(new Error('enough'))
    await expect(rewrapRows(database, both, stopped)).rejects.toThrow('enough')
    expect(await countUnder(old)).toBe(1)
  })
})
