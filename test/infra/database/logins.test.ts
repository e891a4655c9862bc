// backends: either
// asserts: invariants

import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { describe, expect, onTestFinished } from 'vitest'
import { businessSchemas } from '../../../src/accounts/account-schemas.ts'
import { openRuntime } from '../../../src/app/open-runtime.ts'
import { databaseRef } from '../../../src/features/core.ref.ts'
import { createUsageReport } from '../../../src/features/usage/usage-report.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import { loginRoles } from '../../../src/infra/database/login-roles.ts'
import { openDatabases } from '../../../src/infra/database/open-database.ts'
import { migratePostgres, openPostgresDatabase } from '../../../src/infra/database/postgres.ts'
import { checkPaymentLogin } from '../../../src/infra/database/server-databases.ts'
import { silentLog } from '../../../src/infra/lib/silent-log.ts'
import { type Backend, baseConfig } from '../../support/backend.ts'
import { test } from '../../support/integration-test.ts'
import { parseMetrics } from '../../support/metrics.ts'
import { codeOf, submitTo } from '../../support/runs.ts'
import { loginsOf, migrateServed, paymentUrlOf } from '../../support/served-logins.ts'
import { dropDatabase, runAsAdmin, urlOf } from '../../support/setup-served.ts'

const isServed = process.env.MASON_TEST_BACKEND === 'served'
const onServers = isServed ? '' : ' (on servers only: PGlite is one session of one user)'

const serverOf = ({ config }: Backend) => {
  if (config.database.kind !== 'postgres') throw new Error('not served')
  const { url, apiUrl = '', workerUrl = '' } = config.database
  return { url, apiUrl, workerUrl, paymentUrl: paymentUrlOf(url) }
}

/** A connection of a login until the test is over; `role` is what it asks for. */
const connect = async (url: string, role?: string) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query(`SET search_path = mason, public${role ? `; SET ROLE ${role}` : ''}`)
  return client
}

const newDatabase = async (login?: string): Promise<string> => {
  const name = `mason_test_${randomBytes(6).toString('hex')}`
  await runAsAdmin(`CREATE DATABASE ${name}`)
  onTestFinished(async () => {
    await dropDatabase(name)
    if (login) await runAsAdmin(`DROP ROLE IF EXISTS ${login}`)
  })
  return name
}

/** What no login may, whatever role it asks for. */
const ownersStatements = [
  'CREATE TABLE mason.theirs (id int)',
  'CREATE TABLE public.theirs (id int)',
  'CREATE SCHEMA theirs',
  'CREATE ROLE theirs',
  'ALTER TABLE mason.runs DISABLE ROW LEVEL SECURITY',
  'ALTER TABLE mason.runs ADD COLUMN theirs int',
  'DROP POLICY business ON mason.runs',
  'CREATE POLICY theirs ON mason.runs USING (true)',
  'DROP TABLE mason.runs',
  'TRUNCATE mason.runs CASCADE',
  'TRUNCATE mason.actions',
  `UPDATE mason.actions SET body = '{}'`,
  'DELETE FROM mason.usage_ledger',
  'DELETE FROM mason.migrations',
  `INSERT INTO mason.migrations (name, checksum) VALUES ('9999', '')`,
  'CREATE OR REPLACE FUNCTION mason.refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$',
  'ALTER TABLE mason.actions DISABLE TRIGGER ALL',
  'GRANT mason_worker TO CURRENT_USER',
]

describe.runIf(isServed)(`the logins of processes${onServers}`, () => {
  test.beforeAll(async ({ database }) => {
    await submitTo(database, 'a', { prompt: 'secret of a' })
    await database.query(
      `INSERT INTO tokens (tenant, token_id, token_hash, label, roles) VALUES ('a', 't', 'h', 'l', '{submit}')`,
    )
  })

  test.for([
    ['API', 'apiUrl', ['mason_admin', 'mason_api']],
    ['worker', 'workerUrl', ['mason_worker', 'mason_business']],
    ['executor of payments', 'paymentUrl', ['mason_payments']],
  ] as const)(
    'the one of the %s owns nothing and can become nothing else',
    async ([, address, roles], { backend }) => {
      const server = serverOf(backend)
      const client = await connect(server[address])
      const others = [
        'mason_admin',
        'mason_api',
        'mason_worker',
        'mason_business',
        'mason_payments',
        'mason_owner',
        new URL(server.url).username,
      ]
      for (const role of others) {
        const expected = roles.some((own) => own === role) ? 'no error' : '42501'
        expect([role, await codeOf(client.query(`SET ROLE ${role}`))]).toEqual([role, expected])
        await client.query('RESET ROLE')
      }
      const { rows } = await client.query(
        `SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb,
         (SELECT count(*)::int FROM pg_shdepend WHERE refobjid = r.oid AND deptype = 'o') AS owned
       FROM pg_roles r WHERE rolname = session_user`,
      )
      expect(rows).toEqual([
        { rolsuper: false, rolbypassrls: false, rolcreaterole: false, rolcreatedb: false, owned: 0 },
      ])
      for (const role of [null, ...roles])
        for (const statement of ownersStatements) {
          await client.query(role ? `SET ROLE ${role}` : 'RESET ROLE')
          expect([role, statement, await codeOf(client.query(statement))]).toEqual([role, statement, '42501'])
        }
    },
  )

  test('the API sees of the work of businesses how much there is, and only of the one it acts for what it is', async ({
    backend,
  }) => {
    const { apiUrl } = serverOf(backend)
    const admin = await connect(apiUrl, 'mason_admin')
    const counted = await admin.query('SELECT tenant, status FROM runs')
    expect(counted.rows).toEqual([{ tenant: 'a', status: 'queued' }])
    const contents = [
      'SELECT request FROM run_requests',
      'SELECT metadata FROM run_requests',
      'SELECT result FROM run_results',
      'SELECT body FROM actions',
      'SELECT patch FROM actions',
      'SELECT bytes FROM blobs',
      'SELECT question FROM input_requests',
      'SELECT request FROM effects',
      'SELECT content FROM memories',
      'SELECT embedding FROM memory_vectors',
      'SELECT summary FROM sessions',
      'SELECT user_id FROM sessions',
      'SELECT found FROM prepared_files',
      'SELECT data FROM rejected_jobs',
      'SELECT data FROM held_jobs',
      'SELECT * FROM runs',
      'SELECT * FROM sessions',
      `UPDATE runs SET status = 'completed'`,
      'DELETE FROM runs',
    ]
    for (const statement of contents)
      expect([statement, await codeOf(admin.query(statement))]).toEqual([statement, '42501'])

    const scoped = await connect(apiUrl, 'mason_api')
    expect((await scoped.query('SELECT request FROM run_requests')).rows).toEqual([])
    await scoped.query(`SET mason.business = 'b'`)
    expect((await scoped.query('SELECT request FROM run_requests')).rows).toEqual([])
    await scoped.query(`SET mason.business = 'a'`)
    expect(JSON.stringify((await scoped.query('SELECT request FROM run_requests')).rows)).toContain(
      'secret of a',
    )
  })

  test('a worker neither sees nor makes tokens; for one business it sees that one', async ({ backend }) => {
    const { workerUrl } = serverOf(backend)
    const insert = `INSERT INTO tokens (tenant, token_id, token_hash, label, roles) VALUES ('a', 'x', 'x', 'x', '{submit}')`
    const worker = await connect(workerUrl, 'mason_worker')
    expect((await worker.query('SELECT tenant FROM runs')).rows).toEqual([{ tenant: 'a' }])
    expect((await worker.query('SELECT token_hash FROM tokens')).rows).toEqual([])
    expect(await codeOf(worker.query(insert))).toBe('42501')

    const scoped = await connect(workerUrl, 'mason_business')
    expect((await scoped.query('SELECT tenant FROM runs')).rows).toEqual([])
    await scoped.query(`SET mason.business = 'a'`)
    expect((await scoped.query('SELECT tenant FROM runs')).rows).toEqual([{ tenant: 'a' }])
    expect(await codeOf(scoped.query('SELECT token_hash FROM tokens'))).toBe('42501')
  })

  test('an API process does all that is its own with its login alone', async ({ backend }) => {
    const { apiUrl } = serverOf(backend)
    const config = { ...backend.config, database: { kind: 'postgres' as const, url: apiUrl, apiUrl } }
    await using runtime = { ...(await openRuntime(config)), [Symbol.asyncDispose]: () => opened.close() }
    const opened = runtime
    const { businesses, tokens, users } = runtime.admin
    await businesses.create({}, businessSchemas.input.parse({ id: 'shop' }))
    await businesses.change({}, 'shop', { learning: false })
    const { id, token } = await tokens.create(
      {},
      {
        business_id: 'shop',
        label: 'web',
        roles: ['submit', 'read'],
      },
    )
    expect(await runtime.authenticate(token)).toEqual({
      business_id: 'shop',
      token_id: id,
      roles: ['submit', 'read'],
    })
    await tokens.change({}, id, { label: 'shop' })
    expect(await tokens.remove({}, id)).toBe(true)
    await users.create({}, { business_id: 'shop', user_id: 'ann', profile: { name: 'Ann' } })
    expect(await users.change({ business_id: 'shop' }, 'ann', { profile: {} })).toMatchObject({ profile: {} })
    expect(await users.remove({ business_id: 'shop' }, 'ann')).toBe(true)
    const api = runtime.of('shop')
    const { run } = await api.submit({ prompt: 'hello', user_id: 'ann' })
    expect(await api.cancel(run.id, undefined)).toMatchObject({ status: 'cancelled' })
    await api.deleteSession(run.session_id)
    const metrics = parseMetrics(await runtime.metrics.text())
    const names = ['mason_stats_up', 'mason_workers', 'mason_runs{status="running"}']
    expect(names.map((name) => metrics.get(name))).toEqual([1, 0, 0])
    expect(metrics.get('mason_runs_ready_oldest_seconds')).toBeGreaterThanOrEqual(0)
    expect(await runtime.health()).toMatchObject({ ok: true })
    const report = createUsageReport(runtime.features.get(databaseRef))
    expect(await report({ from: '2026-01-01', to: '2026-12-31', group_by: 'model', limit: 10 })).toBeDefined()
  })

  test('`mason migrate` creates them on a database that works already, and gives its tables to their owner role', async () => {
    const name = await newDatabase()
    await migratePostgres(urlOf(name))
    const before = openPostgresDatabase({ url: urlOf(name), max: 1 })
    await submitTo(before, 'a', { prompt: 'from before' })
    // several at once, and again
    await Promise.all([1, 2, 3].map(() => migrateServed(urlOf(name))))
    expect(await migrateServed(urlOf(name))).toEqual([])

    const owners = await connect(urlOf(name))
    const { rows } = await owners.query(
      `SELECT DISTINCT relowner::regrole::text AS owner FROM pg_class WHERE relnamespace = 'mason'::regnamespace AND relkind = 'r'
       UNION SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'mason'`,
    )
    expect(rows).toEqual([{ owner: 'mason_owner' }])
    const config = {
      ...baseConfig,
      database: { kind: 'postgres' as const, url: urlOf(name), ...loginsOf(urlOf(name)) },
      redisUrl: null,
    }
    const after = await openDatabases(config, silentLog)
    expect((await after.worker.query('SELECT tenant FROM runs')).rows).toEqual([{ tenant: 'a' }])
    // the shared login goes on as before, also while migrations follow
    expect((await before.query('SELECT tenant FROM runs')).rows).toEqual([{ tenant: 'a' }])
    await Promise.all([before.close(), after.close()])
  })

  test('a setting that names a login with more rights is refused, with what to run and without its password', async () => {
    const login = `mason_test_${randomBytes(4).toString('hex')}`
    const name = await newDatabase(login)
    const url = new URL(urlOf(name))
    Object.assign(url, { username: login, password: 'hunter22' })
    const logins = [{ roles: loginRoles.api, setting: 'MASON_API_DATABASE_URL' as const, url: url.href }]
    const refused = async (message: RegExp, remedy: RegExp) => {
      const error = await migratePostgres(urlOf(name), logins).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({
        code: 'invalid_settings',
        message: expect.stringMatching(message),
        remedy: expect.stringMatching(remedy),
      })
      expect(JSON.stringify(error) + String(error)).not.toContain('hunter22')
    }
    await runAsAdmin(`CREATE ROLE ${login} LOGIN CREATEDB`)
    await refused(/may do more than a process needs/, /ALTER ROLE .* NOCREATEDB/)
    await runAsAdmin(`ALTER ROLE ${login} NOCREATEDB; GRANT mason_worker TO ${login}`)
    await refused(/can become mason_worker/, /REVOKE "mason_worker" FROM/)
    await runAsAdmin(`REVOKE mason_worker FROM ${login}; GRANT CREATE ON DATABASE ${name} TO ${login}`)
    await refused(/may create tables/, /REVOKE CREATE/)
    await runAsAdmin(`REVOKE CREATE ON DATABASE ${name} FROM ${login}`)
    await migratePostgres(urlOf(name), logins)
  })

  test('a start refuses an older and a newer database with the remedy, and --migrate updates the older one', async () => {
    const name = await newDatabase()
    const config = {
      ...baseConfig,
      database: { kind: 'postgres' as const, url: urlOf(name), ...loginsOf(urlOf(name)) },
      redisUrl: null,
    }
    const start = async (schema?: 'migrate') =>
      (await openDatabases(config, silentLog, schema && { schema })).close()
    const expectRefused = (message: RegExp, remedy: RegExp) =>
      expect(start()).rejects.toMatchObject({
        code: 'invalid_settings',
        message: expect.stringMatching(message),
        remedy: expect.stringMatching(remedy),
      })
    await expectRefused(/is not migrated/, /mason migrate/)
    await start('migrate')
    await start()
    const owner = await connect(urlOf(name))
    const { rows } = await owner.query('SELECT * FROM migrations ORDER BY name DESC LIMIT 1')
    await owner.query('DELETE FROM migrations WHERE name = $1', [rows[0].name])
    await expectRefused(new RegExp(`older than this version.*${rows[0].name}`), /mason migrate.*--migrate/)
    await owner.query('INSERT INTO migrations (name, checksum) VALUES ($1, $2)', [
      rows[0].name,
      rows[0].checksum,
    ])
    await owner.query(`INSERT INTO migrations (name, checksum) VALUES ('9999_of_tomorrow.sql', 'x')`)
    await expectRefused(/newer than this version.*9999_of_tomorrow/, /start the version that migrated it/)
    await owner.query(`DELETE FROM migrations WHERE name LIKE '9999%'`)
  })

  test('the executor does not start with the login of a worker', async ({ backend }) => {
    const { paymentUrl, workerUrl } = serverOf(backend)
    const start = async (paymentUrl: string) =>
      (
        await openDatabases(
          { ...backend.config, database: { kind: 'postgres', url: paymentUrl, paymentUrl } },
          silentLog,
        )
      ).close()
    await start(paymentUrl)
    await expect(start(workerUrl)).rejects.toMatchObject({ code: 'invalid_settings' })
  })

  test.runIf(process.env.TEST_SUPERUSER_URL)(
    'the executor does not start while its login can become another, or that of a worker can become the executor',
    async () => {
      // never committed: roles belong to the whole server, and other executors start on it
      const client = await connect(process.env.TEST_SUPERUSER_URL ?? '')
      const login = `mason_test_${randomBytes(4).toString('hex')}`
      const check = (me: string, grant: string) => async () => {
        await client.query(`BEGIN; CREATE ROLE ${login} LOGIN NOINHERIT; ${grant};
          SET LOCAL SESSION AUTHORIZATION ${me}`)
        const sql = { query: (text: string) => client.query(text) } as unknown as Database
        await checkPaymentLogin(sql, 'MASON_PAYMENT_DATABASE_URL').finally(() => client.query('ROLLBACK'))
      }
      const refused = (message: RegExp, remedy: RegExp) => ({
        code: 'invalid_settings',
        message: expect.stringMatching(message),
        remedy: expect.stringMatching(remedy),
      })
      await check(login, `GRANT mason_payments TO ${login}`)()
      await expect(check(login, `GRANT mason_payments, mason_worker TO ${login}`)()).rejects.toMatchObject(
        refused(/which can become mason_worker/, /another name.*mason migrate/),
      )
      await expect(check(login, `ALTER ROLE ${login} BYPASSRLS`)()).rejects.toMatchObject(
        refused(/row-level security does not bind/, /another name/),
      )
      await expect(
        check('mason_test_payments', `GRANT mason_payments, mason_worker TO ${login}`)(),
      ).rejects.toMatchObject(
        refused(
          new RegExp(`but "${login}", a login of API or workers`),
          new RegExp(`REVOKE mason_payments FROM "${login}"`),
        ),
      )
    },
  )

  test('`mason migrate` makes no other login a member of the executor', async () => {
    const name = await newDatabase()
    await migrateServed(urlOf(name))
    const owners = await connect(urlOf(name))
    const { rows } = await owners.query(
      `SELECT rolname FROM pg_roles WHERE rolname LIKE 'mason_test_%' AND pg_has_role(oid, 'mason_payments', 'MEMBER')
       AND rolname IN ('mason_test_api', 'mason_test_worker', 'mason_test_payments')`,
    )
    expect(rows).toEqual([{ rolname: 'mason_test_payments' }])
    const error = await migratePostgres(urlOf(name), [
      { setting: 'MASON_WORKER_DATABASE_URL', url: paymentUrlOf(urlOf(name)), roles: loginRoles.worker },
    ]).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ message: expect.stringContaining('which can become mason_payments') })
  })

  test('a user that does not own the database cannot migrate it, and the error has the statement', async () => {
    const url = urlOf(await newDatabase())
    await migrateServed(urlOf(await newDatabase()))
    await expect(migratePostgres(loginsOf(url).apiUrl)).rejects.toMatchObject({
      code: 'invalid_settings',
      remedy: expect.stringMatching(
        /^let it own the database: ALTER DATABASE mason_test_\w+ OWNER TO mason_test_api$/,
      ),
    })
  })

  test.runIf(process.env.TEST_SUPERUSER_URL)('the start warns of a superuser', async ({ backend }) => {
    const url = new URL(process.env.TEST_SUPERUSER_URL ?? '')
    url.pathname = new URL(serverOf(backend).url).pathname
    const warnings: string[] = []
    const log = { ...silentLog, warn: (_fields: unknown, text?: string) => void warnings.push(text ?? '') }
    const config = { ...backend.config, database: { kind: 'postgres' as const, url: url.href } }
    await (await openDatabases(config, log)).close()
    expect(warnings).toEqual([expect.stringContaining('the database login is a superuser')])
    warnings.length = 0
    await (await openDatabases(backend.config, log)).close()
    expect(warnings).toEqual([])
  })
})
