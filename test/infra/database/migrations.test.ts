// backends: both

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import pg from 'pg'
import { describe, expect } from 'vitest'
import { renderSchema, schemaPath } from '../../../scripts/schema.ts'
import type { AppliedMigration, MigrationTarget } from '../../../src/infra/database/migration.ts'
import {
  applyMigrations,
  findMigrationGap,
  findRemovedFeatures,
  readMigrations,
} from '../../../src/infra/database/migrations.ts'
import { startPglite, toMigrationTarget } from '../../../src/infra/database/pglite.ts'
import { migratePostgres } from '../../../src/infra/database/postgres.ts'
import { SeededMemoryFS } from '../../../src/infra/database/seed-image.ts'
import type { Backend } from '../../support/backend.ts'
import { test as integrationTest } from '../../support/integration-test.ts'
import { codeOf } from '../../support/runs.ts'
import { dropDatabase, runAsAdmin, urlOf } from '../../support/setup-served.ts'
import { isSaidByServers } from '../../support/tier.ts'

/** The owner's own connection, without a role of ours. */
type Owner = MigrationTarget & { close(): Promise<void> }

const openOwner = async (backend: Backend): Promise<Owner> => {
  if (backend.config.database.kind === 'postgres') {
    const client = new pg.Client({ connectionString: backend.config.database.url })
    await client.connect()
    return {
      run: async (text) => void (await client.query(text)),
      query: async (text, values) => (await client.query(text, values as unknown[])).rows,
      close: () => client.end(),
    }
  }
  const pglite = await startPglite({ fs: new SeededMemoryFS(backend.loadDataDir as Uint8Array) })
  return { ...toMigrationTarget(pglite), close: () => pglite.close() }
}

const test = integrationTest.extend('owner', { scope: 'file' }, async ({ backend }, { onCleanup }) => {
  const owner = await openOwner(backend)
  onCleanup(() => owner.close())
  return owner
})

const isServed = process.env.MASON_TEST_BACKEND === 'served'

describe('migrations', () => {
  test('applied a second time do nothing', async ({ owner }) => {
    expect(await applyMigrations(owner)).toEqual([])
  })

  test('make the schema that migrations/schema.sql shows, on every database', async ({ owner }) => {
    expect(await renderSchema(owner)).toBe(await readFile(schemaPath, 'utf8'))
  })

  test('one that was changed after it was applied is refused, and nothing is done', async ({ owner }) => {
    const [first] = await owner.query('SELECT name, checksum FROM migrations ORDER BY name')
    const change = (checksum: unknown) =>
      owner.run(`UPDATE migrations SET checksum = '${checksum}' WHERE name = '${first?.name}'`)
    await change('another')
    expect(await codeOf(applyMigrations(owner))).toBe('invalid_settings')
    await change(first?.checksum)
    expect(await applyMigrations(owner)).toEqual([])
  })

  test('on a server with an older pgvector nothing is done, and what to do is said', async ({ owner }) => {
    const [last] = await owner.query('SELECT * FROM migrations ORDER BY name DESC LIMIT 1')
    await owner.query('DELETE FROM migrations WHERE name = $1', [last?.name])
    // no server has two versions of it, and only a superuser may say that it is another
    const facts = [{ vector: '0.6.2', vector_available: '0.8.0' }]
    const older: typeof owner = {
      ...owner,
      query: async (text, values) => (text.includes('pg_extension') ? facts : owner.query(text, values)),
    }
    await expect(applyMigrations(older)).rejects.toMatchObject({
      code: 'invalid_settings',
      message: 'pgvector 0.6.2 is too old: 0.7.0 or later is needed',
      remedy: expect.stringContaining('ALTER EXTENSION vector UPDATE'),
    })
    await owner.query('INSERT INTO migrations (name, checksum) VALUES ($1, $2)', [last?.name, last?.checksum])
    expect(await applyMigrations(owner)).toEqual([])
  })

  test('of a feature that this build does not have keep nothing from starting', async ({ owner }) => {
    await owner.run(`INSERT INTO migrations (name, checksum) VALUES ('gone/20200101_gone.sql', 'x')`)
    const applied = (await owner.query('SELECT name, checksum FROM migrations')) as AppliedMigration[]
    expect(await findMigrationGap(applied)).toBe(null)
    expect(await findRemovedFeatures(applied)).toEqual(['gone'])
    await owner.run(`DELETE FROM migrations WHERE name LIKE 'gone/%'`)
    const newer = [...applied, { name: '99990101_core.sql', checksum: 'x' }]
    expect(await findMigrationGap(newer)).toMatchObject({
      problem: expect.stringContaining('99990101_core.sql'),
    })
  })

  test.skipIf(isSaidByServers)(
    'of a product open no table across businesses, and one that does leaves nothing behind',
    async ({ owner }) => {
      const create = 'CREATE TABLE notes (tenant text NOT NULL REFERENCES businesses);'
      const close = `ALTER TABLE notes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
      CREATE POLICY worker ON notes TO mason_worker USING (true);`
      const apply = async (...texts: string[]) => {
        const own = { path: 'notes.sql', tables: ['notes', 'all_notes'], functions: ['count_notes'] }
        const files = texts.map((text, at) => ({
          ...{ name: `notes/20991231_0${at + 1}_notes.sql`, text, checksum: 'x' },
          own: { ...own, isFollowed: at + 1 < texts.length },
        }))
        return applyMigrations(owner, [...(await readMigrations()), ...files])
      }
      const remove = () => owner.run(`DROP TABLE notes; DELETE FROM migrations WHERE name LIKE 'notes/%'`)
      await expect(apply(create)).rejects.toMatchObject({
        code: 'invalid_settings',
        message:
          'notes.sql leaves the table "notes" without ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY, policy, grant',
      })
      await expect(apply(create + close)).rejects.toMatchObject({
        message: 'notes.sql leaves the table "notes" without grant',
      })
      const served =
        'GRANT INSERT, UPDATE (tenant) ON notes TO mason_admin; GRANT SELECT ON notes TO mason_business;'
      await expect(apply(create + close + served)).rejects.toMatchObject({
        message:
          'notes.sql leaves the table "notes" without GRANT INSERT TO mason_worker and GRANT SELECT TO mason_api, which the embedded database uses in place of mason_admin and mason_business',
      })
      // a file that is deployed cannot be edited: a later one adds the grants
      expect(
        await apply(
          create + close + served,
          'GRANT INSERT ON notes TO mason_worker; GRANT SELECT, UPDATE ON notes TO mason_worker, mason_api;',
        ),
      ).toHaveLength(2)
      await remove()
      await expect(apply(create, 'SELECT 1')).rejects.toMatchObject({
        message: expect.stringContaining('without ENABLE ROW LEVEL SECURITY'),
      })
      await expect(apply(create.replace('text', 'txt'))).rejects.toMatchObject({
        code: 'invalid_settings',
        message: 'notes.sql failed: type "txt" does not exist',
      })
      const grant = 'GRANT SELECT ON notes TO mason_worker, mason_api;'
      for (const roles of ['mason_api', 'PUBLIC'])
        await expect(
          apply(`${create}${close}${grant}CREATE POLICY anyone ON notes FOR SELECT TO ${roles} USING (true)`),
        ).rejects.toMatchObject({
          message: 'notes.sql leaves the table "notes" without mason.business in the policy anyone',
        })
      const view = 'CREATE VIEW all_notes AS SELECT * FROM notes; GRANT SELECT ON all_notes TO mason_api;'
      await expect(apply(create + close + grant + view)).rejects.toMatchObject({
        message: 'notes.sql leaves the table "all_notes" without security_invoker',
      })
      for (const [change, object] of [
        ['GRANT SELECT ON ALL TABLES IN SCHEMA mason TO mason_business', 'table'],
        ['DROP POLICY business ON schedules', 'table schedules'],
        ['ALTER TABLE runs ADD mine int', 'table runs'],
        ['ALTER TABLE runs NO FORCE ROW LEVEL SECURITY', 'table runs'],
        ['CREATE TABLE others ()', 'table others'],
        [
          'CREATE OR REPLACE FUNCTION release_ongoing_work(p_tenant text, p_run_id text) RETURNS TABLE(kind text, id text) LANGUAGE sql AS $$ SELECT p_tenant, p_run_id $$',
          'function release_ongoing_work',
        ],
      ])
        await expect(apply(`${create}${close}${grant}${change}`)).rejects.toMatchObject({
          message: expect.stringContaining(`notes.sql changes the ${object}`),
          remedy: 'name the table in feature.ts if it is its own, or remove the statement',
        })
      expect(await owner.query(`SELECT to_regclass('mason.notes') AS notes`)).toEqual([{ notes: null }])
      const closed = `CREATE POLICY business ON notes TO mason_api USING (tenant = current_setting('mason.business', true));
      CREATE POLICY added ON notes FOR INSERT TO mason_api WITH CHECK (tenant = current_setting('mason.business', true));
      CREATE FUNCTION count_notes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
      CREATE TRIGGER count_notes AFTER DELETE ON runs EXECUTE FUNCTION count_notes();`
      const safe = view.replace(' AS ', ' WITH (security_invoker) AS ')
      expect(await apply(`${create}${close}${grant}${closed}${safe}-- the end`)).toEqual([
        'notes/20991231_01_notes.sql',
      ])
      await owner.run('DROP TRIGGER count_notes ON runs; DROP FUNCTION count_notes; DROP VIEW all_notes')
      await remove()
    },
  )

  test('one that fails leaves nothing behind', async ({ owner }) => {
    await owner.run('DELETE FROM migrations')
    // its tables are there already
    await expect(applyMigrations(owner)).rejects.toThrow(/^migrations\/\S+\.sql failed: .+ already exists$/)
    expect(await owner.query('SELECT name FROM migrations')).toEqual([])
    expect(await owner.query('SELECT count(*)::int AS n FROM mason.runs')).toEqual([{ n: 0 }])
  })

  test.runIf(isServed)(
    'two processes at once on a new database: one applies them, the other waits (on servers only: PGlite takes one process)',
    async () => {
      const name = `mason_test_${randomBytes(6).toString('hex')}`
      await runAsAdmin(`CREATE DATABASE ${name}`)
      try {
        const done = await Promise.all([1, 2, 3].map(() => migratePostgres(urlOf(name))))
        expect(done.filter((names) => names.length > 0)).toHaveLength(1)
        expect(done.flat()).toContain('20261127_01_accounts.sql')
      } finally {
        await dropDatabase(name)
      }
    },
  )
})

describe('a database with the migrations of before the baseline', () => {
  const old = JSON.parse(readFileSync('test/support/old-migrations.json', 'utf8')) as AppliedMigration[]
  const toBaseline = async (owner: Owner, rows: readonly AppliedMigration[]): Promise<void> => {
    await owner.run('DROP SCHEMA mason CASCADE')
    const baseline = (await readMigrations()).filter(({ name }) => name.includes('20261127_'))
    await applyMigrations(owner, baseline)
    await owner.run('DELETE FROM migrations')
    for (const { name, checksum } of rows)
      await owner.query('INSERT INTO migrations (name, checksum) VALUES ($1, $2)', [name, checksum])
  }
  const listNames = async (owner: Owner) =>
    (await owner.query('SELECT name FROM migrations')).map(({ name }) => name)

  test('is taken over as it is, with its rows', async ({ owner }) => {
    await toBaseline(owner, old)
    await owner.run(`INSERT INTO businesses (tenant) VALUES ('kept')`)
    const later = (await readMigrations()).filter(({ name }) => !name.includes('20261127_'))
    expect(await applyMigrations(owner)).toEqual(later.map(({ name }) => name))
    expect((await listNames(owner)).sort()).toEqual((await readMigrations()).map(({ name }) => name).sort())
    expect(await owner.query(`SELECT tenant FROM businesses`)).toEqual([{ tenant: 'kept' }])
  })

  test.skipIf(isSaidByServers)(
    'is refused, and nothing is done, where a migration is missing or the schema is another',
    async ({ owner }) => {
      await toBaseline(owner, old.slice(0, -1))
      await expect(applyMigrations(owner)).rejects.toMatchObject({
        message: 'the database is older than 0063_turns.sql, or has other migrations',
      })
      await toBaseline(owner, old)
      await owner.run(
        'ALTER TABLE runs ADD COLUMN mine int; DROP POLICY business ON sessions; DROP FUNCTION poll_job_now',
      )
      await expect(applyMigrations(owner)).rejects.toMatchObject({
        code: 'invalid_settings',
        message: 'the schema was changed by hand: function poll_job_now(text), table runs, table sessions',
      })
      expect(await listNames(owner)).toHaveLength(63)
    },
  )
})
