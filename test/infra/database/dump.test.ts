import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openEmbeddedDatabase } from '../../../src/infra/database/embedded.ts'
import { readMigrations } from '../../../src/infra/database/migrations.ts'
import { migratePglite, startPglite } from '../../../src/infra/database/pglite.ts'
import { readSeedImage, toSeedImageName, unpackSeedImage } from '../../../src/infra/database/seed-image.ts'
import { seededBytes } from '../../support/random.ts'
import { codeOf } from '../../support/runs.ts'
import { testInAll } from '../../support/tier.ts'

const logged = () => ({ debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() })

let folder: string
const torn = logged()
/** Made the long way in the test itself, whatever dist/ may hold, because the file that there is has been cut off. */
let tar: Buffer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mason-dump-'))
  const path = join(folder, 'torn.tar.gz')
  const whole = gzipSync(seededBytes(100_000), { level: 1 })
  await writeFile(path, whole.subarray(0, whole.length / 2))
  tar = await readSeedImage(torn, path)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Everything that decides how the database behaves, as Postgres itself words it. */
const shapeOf = async (pglite: PGlite): Promise<Record<string, unknown[]>> => {
  const mine = `nspname IN ('mason', 'public')`
  const queries = {
    relations: `SELECT nspname, relname, relkind, relrowsecurity, relforcerowsecurity, relacl::text, pg_get_userbyid(relowner) AS owner
      FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE ${mine}`,
    columns: `SELECT attrelid::regclass::text, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, pg_get_expr(adbin, adrelid)
      FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace
      LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE ${mine} AND attnum > 0`,
    indexes: 'SELECT indexdef FROM pg_indexes',
    constraints: 'SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint',
    policies: 'SELECT to_jsonb(p)::text FROM pg_policies p',
    functions: `SELECT oid::regprocedure::text, proacl::text, prosrc FROM pg_proc`,
    schemas: 'SELECT nspname, nspacl::text FROM pg_namespace',
    roles: `SELECT to_jsonb(r) - 'oid' AS role FROM pg_roles r`,
    members: 'SELECT roleid::regrole::text, member::regrole::text FROM pg_auth_members',
    roleSettings: 'SELECT setdatabase, setrole::regrole::text, setconfig FROM pg_db_role_setting',
    extensions: 'SELECT extname, extversion FROM pg_extension',
    // an extension's own settings show up once its library is loaded
    settings: `SELECT name, setting FROM pg_settings WHERE name NOT LIKE '%.%'`,
    database: `SELECT datname, encoding, datcollate, datctype, datlocprovider FROM pg_database WHERE datname = current_database()`,
    migrations: 'SELECT name, checksum FROM mason.migrations',
  }
  const shape: Record<string, unknown[]> = {}
  for (const [name, text] of Object.entries(queries))
    shape[name] = (await pglite.query(text)).rows.map((row) => JSON.stringify(row)).sort()
  return shape
}

describe('the dump that a new embedded database begins from', () => {
  // a second initdb with all migrations: each test on PGlite begins from a dump, and `infra/database/migrations` looks at what they make
  testInAll('gives a database equal to one of initdb and the migrations', async () => {
    const path = join(folder, 'pgdata')
    unpackSeedImage(tar, path)
    const begun = await startPglite({ dataDir: path })
    const made = await startPglite({})
    try {
      await migratePglite(begun)
      await migratePglite(made)
      const shape = await shapeOf(begun)
      expect(shape).toEqual(await shapeOf(made))
      expect(shape.migrations).toHaveLength((await readMigrations()).length)
      expect(shape.policies?.length).toBeGreaterThan(0)
    } finally {
      await begun.close()
      await made.close()
    }
  })

  test('has another name for other migrations, so that one of them is never taken', async () => {
    const migrations = await readMigrations()
    const [first, ...others] = migrations
    const name = await toSeedImageName(migrations)
    expect(await toSeedImageName(await readMigrations())).toBe(name)
    expect(
      await toSeedImageName([{ name: '', text: '', ...first, checksum: 'another' }, ...others]),
    ).not.toBe(name)
    expect(await toSeedImageName(others)).not.toBe(name)
  })

  test('is taken as it was built', async () => {
    const log = logged()
    const path = join(folder, 'whole.tar.gz')
    await writeFile(path, gzipSync(tar, { level: 1 }))
    expect((await readSeedImage(log, path)).equals(tar)).toBe(true)
    expect(log.warn).not.toHaveBeenCalled()
  })

  test('is left alone with a warning when it is damaged, and a new one is made', async () => {
    expect(torn.warn).toHaveBeenCalledOnce()
    const draft = join(folder, 'after-torn')
    unpackSeedImage(tar, draft)
    const pglite = await startPglite({ dataDir: draft })
    expect((await pglite.query('SELECT count(*)::int AS n FROM mason.runs')).rows).toEqual([{ n: 0 }])
    await pglite.close()
  })

  test('is unpacked again after a process was killed halfway', async () => {
    const path = join(folder, 'half')
    await mkdir(`${path}.new`)
    await writeFile(join(`${path}.new`, 'PG_VERSION'), '1')
    unpackSeedImage(tar, path)
    const pglite = await startPglite({ dataDir: path })
    await pglite.close()
  })

  test('never goes over files that are there', async () => {
    const dataDir = join(folder, 'taken')
    await mkdir(join(dataDir, 'pgdata'), { recursive: true })
    await writeFile(join(dataDir, 'pgdata', 'mine.txt'), 'mine')
    expect(await codeOf(openEmbeddedDatabase({ dataDir }))).toBe('invalid_settings')
    await rm(join(dataDir, 'pgdata', 'mine.txt'))
    await (await openEmbeddedDatabase({ dataDir })).close()
  })
})
