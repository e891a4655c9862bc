// backends: both

import { randomBytes } from 'node:crypto'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import pg from 'pg'
import { describe, expect } from 'vitest'
import { toMetadataEntries } from '../../src/engine/runs/metadata-entries.ts'
import { applyMigrations, type MigrationTarget } from '../../src/infra/database/migrations.ts'
import { migratePostgres } from '../../src/infra/database/postgres.ts'
import type { Backend } from '../support/backend.ts'
import { test as integrationTest } from '../support/integration-test.ts'
import { codeOf } from '../support/runs.ts'
import { dropDatabase, runAsAdmin, urlOf } from '../support/setup-served.ts'

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
  const loadDataDir = backend.loadDataDir as Blob
  const pglite = await PGlite.create({ loadDataDir, extensions: { vector } })
  return {
    run: async (text) => void (await pglite.exec(text)),
    query: async (text, values) => (await pglite.query<never>(text, values as unknown[])).rows,
    close: () => pglite.close(),
  }
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

  test('0005 finds the sessions that hold existing blobs, also for an owner to whom the policies show nothing', async ({
    owner,
  }) => {
    const [large, file] = ['a'.repeat(64), 'b'.repeat(64)]
    const tables = ['actions', 'runs', 'run_requests']
    const show = (to: string) =>
      owner.run(tables.map((table) => `ALTER POLICY worker ON ${table} USING (${to})`).join('; '))
    await owner.run(`
      INSERT INTO businesses (tenant) VALUES ('old');
      INSERT INTO sessions (tenant, session_id, user_id) VALUES ('old', 's', 'u');
      INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at) VALUES ('old', 'r', 's', 1, 'queued', now());
      INSERT INTO run_requests (tenant, run_id, user_id, request, metadata)
        VALUES ('old', 'r', 'u', '{"files":[{"local_path":"blob:${file}"}]}', '{}');
      INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, body, patch)
        VALUES ('old', 's', 1, 'r', 1, 1, 'old-1', '{"result":{"blob":"${large}","bytes":9}}', '{}'),
          ('old', 's', 2, 'r', 1, 1, 'old-2', '{"result":{"text":"\\u0000 no blob"}}', '{}');
      DROP TABLE blob_uses, scenarios; DROP INDEX blobs_by_age, rejected_jobs_by_age;
      DELETE FROM migrations WHERE name = '0005_scenarios.sql'`)
    await show(`current_user = 'mason_worker'`)
    expect(await applyMigrations(owner)).toEqual(['0005_scenarios.sql'])
    await show('true')
    expect(await owner.query('SELECT session_id, sha256 FROM blob_uses ORDER BY sha256')).toEqual([
      { session_id: 's', sha256: large },
      { session_id: 's', sha256: file },
    ])
    await owner.run(
      `DELETE FROM blob_uses; DELETE FROM actions; DELETE FROM sessions; DELETE FROM businesses WHERE tenant = 'old'`,
    )
  })

  test('0021 finds the metadata of existing runs as admission does', async ({ owner }) => {
    const metadata = {
      a: 'é',
      b: 1e21,
      c: true,
      d: null,
      e: [1],
      f: {},
      'n\u0000': 'half \ud83d',
      g: 'x'.repeat(9_000),
    }
    await owner.run(`
      INSERT INTO businesses (tenant) VALUES ('old');
      INSERT INTO sessions (tenant, session_id, user_id) VALUES ('old', 's', 'u');
      INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at) VALUES ('old', 'r', 's', 1, 'queued', now());
      DROP TABLE run_metadata; DELETE FROM migrations WHERE name = '0021_run_metadata.sql'`)
    await owner.query(
      `INSERT INTO run_requests (tenant, run_id, user_id, request, metadata) VALUES ('old', 'r', 'u', '{}', $1)`,
      [JSON.stringify(metadata)],
    )
    expect(await applyMigrations(owner)).toEqual(['0021_run_metadata.sql'])
    const stored = await owner.query(`SELECT replace(entry::text, '-', '') AS entry FROM run_metadata`)
    expect(stored.map(({ entry }) => entry).sort()).toEqual(toMetadataEntries(metadata).sort())
    await owner.run(`DELETE FROM sessions; DELETE FROM businesses WHERE tenant = 'old'`)
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

  test('one that fails leaves nothing behind', async ({ owner }) => {
    await owner.run('DELETE FROM migrations')
    // its tables are there already
    expect(await codeOf(applyMigrations(owner))).toBe('42P07')
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
        expect(done.flat()).toContain('0001_spine.sql')
      } finally {
        await dropDatabase(name)
      }
    },
  )
})
