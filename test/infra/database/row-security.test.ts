// backends: both
// asserts: invariants

import pg from 'pg'
import { describe, expect } from 'vitest'
import { type Database, queryOne } from '../../../src/infra/database/database.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { asOwner } from '../../support/as-owner.ts'
import { test } from '../../support/integration-test.ts'
import { codeOf, count } from '../../support/runs.ts'

/** One row of each table for a business: columns and their values, in an order that foreign keys allow. */
/** The number of the memory of a business. */
const numberOf = (t: string): number => -t.charCodeAt(0)

const rowsOf = (t: string): Record<string, Record<string, unknown>> => ({
  businesses: { tenant: t },
  tokens: { tenant: t, token_id: 'k', token_hash: `hash of ${t}`, label: 'l', roles: ['read'] },
  users: { tenant: t, user_id: 'u' },
  sessions: { tenant: t, session_id: 's', user_id: 'u' },
  runs: { tenant: t, run_id: 'r', session_id: 's', turn: 1, status: 'queued', expires_at: new Date(0) },
  run_requests: { tenant: t, run_id: 'r', user_id: 'u', request: '{}', metadata: '{}' },
  run_metadata: { tenant: t, run_id: 'r', entry: '0'.repeat(32), created_at: new Date(0) },
  run_failures: { tenant: t, run_id: 'r', error: 'internal', node: null, created_at: new Date(0) },
  run_models: { tenant: t, run_id: 'r', model: 'm', created_at: new Date(0) },
  run_words: { tenant: t, run_id: 'r', word: 1, created_at: new Date(0) },
  unread_runs: { tenant: t, run_id: 'r', created_at: new Date(0) },
  run_changes: { tenant: t, run_id: 'r', session_id: 's', status: 'queued' },
  run_results: { tenant: t, run_id: 'r', result: '{}' },
  actions: {
    tenant: t,
    session_id: 's',
    seq: 1,
    run_id: 'r',
    turn: 1,
    epoch: 1,
    attempt_id: `of ${t}`,
    body: '{}',
    patch: '{}',
  },
  blobs: { tenant: t, sha256: 'h', bytes: Buffer.from('b') },
  files: { tenant: t, file_id: 'f', name: 'n', type: 't' },
  file_parts: { tenant: t, file_id: 'f', part: 0, bytes: Buffer.from('b') },
  budgets: { tenant: t, budget_id: `of ${t}`, currency: 'USD' },
  budget_requests: { tenant: t, budget_id: `of ${t}`, minute: new Date(0), requests: 1 },
  spending: { tenant: t, subject: 'business', currency: 'USD', day: '2026-01-01', cost_micro: 1 },
  request_counts: { tenant: t, minute: new Date(0), requests: 1 },
  blob_uses: { tenant: t, sha256: 'h', session_id: 's' },
  input_requests: {
    tenant: t,
    request_id: 'q',
    run_id: 'r',
    plan_seq: 1,
    call_index: 0,
    question: '""',
    schema: '{}',
    options: '[]',
    expires_at: new Date(0),
  },
  effects: {
    tenant: t,
    effect_id: 'e',
    run_id: 'r',
    class: 'keyed',
    request: Buffer.from('b'),
    request_hash: 'h',
    status: 'intent',
  },
  idempotency: { tenant: t, route: 'x', key: 'k', request_hash: 'h', response: '{}' },
  outbox: { tenant: t, run_id: 'r' },
  inbox: { tenant: t, source: 's', message_id: 'm' },
  usage_ledger: {
    tenant: t,
    request_id: `of ${t}`,
    role: 'planner',
    vendor_id: 'v',
    endpoint_id: 'e',
    model_id: 'm',
    model_name: 'm',
    upstream_name: 'm',
    status: 'succeeded',
    prompt_tokens: 1,
    completion_tokens: 1,
    total_tokens: 2,
    cost_micro: 0,
    currency: 'XXX',
    ms: 1,
  },
  prepared_files: { tenant: t, sha256: 'h', opened_as: '1:.csv', found: '{}', blobs: [] },
  waits: { tenant: t, run_id: 'r', plan_seq: 1, call_index: 0, part: 0, kind: 'job', ref_id: 'j' },
  run_outages: { tenant: t, run_id: 'r', seq: 1, tries: 1, reason: '{}', record: '{}' },
  schedules: {
    tenant: t,
    schedule_id: 's',
    name: 'n',
    cron: '* * * * *',
    time_zone: 'UTC',
    catch_up: 'last',
    status: 'paused',
    request: '{}',
  },
  business_secrets: {
    tenant: t,
    names: [],
    master_key: 'm',
    wrapped_key: Buffer.from('b'),
    sealed_secrets: Buffer.from('b'),
  },
  webhook_settings: { tenant: t },
  agent_cards: { tenant: t, card: '{}' },
  remote_agents: {
    ...{ tenant: t, agent_id: `of ${t}`, name: 'n', card_url: 'https://x/', allow_private: false },
    ...{ roles: '[]', headers: '{}', card: '{}' },
  },
  webhook_secrets: {
    tenant: t,
    secret_id: `of ${t}`,
    master_key: 'm',
    wrapped_key: Buffer.from('b'),
    sealed_secret: Buffer.from('b'),
    last_four: 'four',
  },
  webhook_deliveries: {
    tenant: t,
    webhook_id: `of ${t}`,
    type: 'run.completed',
    url: 'https://x/',
    host: 'https://x',
  },
  agent_pushes: {
    tenant: t,
    push_id: `of ${t}`,
    run_id: 'r',
    config_id: 'c',
    url: 'https://x/',
    protocol: '1.0',
    master_key: 'm',
    wrapped_key: Buffer.from('b'),
    sealed_secrets: Buffer.from('b'),
  },
  trusted_keys: { tenant: t, key_id: `of ${t}`, issuer: 'i', kid: 'k', roles: ['merchant'], x: 'x', y: 'y' },
  rejected_jobs: { tenant: t, job_id: `of ${t}`, data: '{}', faults: '[]' },
  held_jobs: {
    ...{ tenant: t, session_id: 's', job_id: `of ${t}`, data: '{}', data_hash: 'h', faults: '[]' },
    expires_at: new Date(0),
  },
  memories: {
    tenant: t,
    user_id: 'u',
    memory_id: 'm',
    kind: 'fact',
    content: 'c',
    origin: 'user',
    trusted: true,
    words: '',
    number: numberOf(t),
  },
  memory_words: { tenant: t, user_id: 'u', word: 1, number: numberOf(t) },
  memory_vectors: { tenant: t, user_id: 'u', memory_id: 'm', space: 's', embedding: '[1]' },
  memory_sources: { tenant: t, user_id: 'u', memory_id: 'm', session_id: 's', run_id: 'r' },
  turns: {
    ...{ tenant: t, session_id: 's', turn: 1, last_turn: 1, user_id: 'u', content: 'c', words: '' },
    ...{ said_at: '2026-01-01', number: numberOf(t) },
  },
  turn_words: { tenant: t, user_id: 'u', word: 1, number: numberOf(t) },
  turn_vectors: {
    ...{ tenant: t, user_id: 'u', number: numberOf(t), session_id: 's', said_at: '2026-01-01' },
    ...{ space: 's', embedding: '[1]' },
  },
  turn_cutoffs: { tenant: t, user_id: 'u' },
  distillations: { tenant: t, run_id: 'r' },
  bulk_jobs: { tenant: t, job_id: 'b', action: 'cancel' },
  bulk_runs: { tenant: t, job_id: 'b', run_id: 'r', position: 1 },
})

const insertOf = (table: string, row: Record<string, unknown>) => ({
  text: `INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${Object.keys(row)
    .map((_, at) => `$${at + 1}`)
    .join(', ')})`,
  values: Object.values(row),
})

test.beforeAll(async ({ database }) => {
  for (const business of ['a', 'b'])
    for (const [table, row] of Object.entries(rowsOf(business))) {
      // a trigger has written it
      if (table === 'run_changes') continue
      const { text, values } = insertOf(table, row)
      await database.query(text, values)
    }
})

type Table = {
  name: string
  secured: boolean
  forced: boolean
  policies: string[]
  of_business: string[]
  has_tenant: boolean
}

const readTables = async (database: Database): Promise<Table[]> => {
  const { rows } = await database.query<Table>(
    `SELECT c.relname AS name, c.relrowsecurity AS secured, c.relforcerowsecurity AS forced,
       (SELECT COALESCE(json_agg(p.polname ORDER BY p.polname), '[]') FROM pg_policy p WHERE p.polrelid = c.oid) AS policies,
       (SELECT COALESCE(json_agg(r.rolname ORDER BY r.rolname), '[]') FROM pg_policy p JOIN pg_roles r ON r.oid = ANY(p.polroles)
        WHERE p.polrelid = c.oid AND p.polname = 'business') AS of_business,
       EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant') AS has_tenant
     FROM pg_class c WHERE c.relnamespace = 'mason'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY c.relname`,
  )
  return rows
}

/** What the executor of payments writes, and who else sees it: test/features/payments/rows.test.ts tries these. */
const ofPayments: Record<string, string[]> = {
  consents: ['admin', 'business', 'executor', 'only_the_api', 'worker'],
  consent_links: ['admin', 'only_the_api', 'worker'],
  mandate_spend: ['executor'],
  open_mandates: ['admin', 'business', 'executor', 'only_the_api_delete', 'only_the_api_update', 'worker'],
  passkeys: ['admin', 'executor', 'only_the_api', 'worker'],
  mandates: ['business', 'executor'],
  payment_events: ['business', 'executor'],
  payment_inbox: ['executor', 'webhooks'],
  payment_keys: ['admin', 'business', 'executor', 'worker'],
  payment_nonces: ['business', 'executor', 'worker'],
  payment_providers: ['admin', 'executor', 'only_the_api', 'worker'],
  payment_operations: ['business', 'executor'],
  payment_orders: ['admin', 'business', 'executor', 'only_admins', 'worker'],
  payments: ['admin', 'business', 'executor', 'worker'],
}

describe('the catalogue', () => {
  test('every table is secured, also from its owner, and has its policies; a new one must come with them', async ({
    database,
  }) => {
    const tables = await readTables(database)
    expect(tables.length).toBeGreaterThan(15)
    for (const table of tables.filter(({ name }) => name !== 'migrations')) {
      expect(table).toMatchObject({ secured: true, forced: true })
      if (table.name in ofPayments) {
        expect(table.policies, table.name).toEqual(ofPayments[table.name])
        continue
      }
      // what the API needs of it across businesses, what workers see or write nothing of, and what the executor reads
      const others = [
        'tokens',
        'trusted_keys',
        'agent_cards',
        'operators',
        'audit_log',
        'console_sessions',
      ].includes(table.name)
        ? ['admin', 'only_the_api', 'executor']
        : ['admin', 'only_the_api_insert', 'only_the_api_update', 'only_the_api_delete']
      // the executor reads the agents of others too, to pay by them
      if (table.name === 'remote_agents') others.push('executor')
      // a change on behalf of a business is logged, and it sees nothing of the log
      if (table.name === 'audit_log') others.push('only_inserts')
      // the measure of a space is the same for all
      if (table.name === 'memory_spaces') others.push('reader')
      // an admission of the queue locks the lease of its leader
      if (table.name === 'intake_lease') others.push('fence')
      // a business sees the names of vendors, and no other column of them
      if (table.name === 'vendors') others.push('names')
      const policies = table.policies.filter((name) => !others.includes(name))
      expect(policies, table.name).toEqual(table.has_tenant ? ['business', 'worker'] : ['worker'])
      if (table.has_tenant) expect(table.of_business, table.name).toEqual(['mason_api', 'mason_business'])
    }
  })

  test('for one business a worker may what the API may, except the tokens and the trail of payments; a new table must say so for both', async ({
    database,
  }) => {
    const { rows } = await database.query(
      `SELECT c.relname AS name, privilege FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
       WHERE c.relnamespace = 'mason'::regnamespace AND c.relkind IN ('r', 'p')
         AND has_table_privilege('mason_api', c.oid, privilege) <> has_table_privilege('mason_business', c.oid, privilege)
       ORDER BY 1`,
    )
    const names = ['mandates', 'payment_events', 'tokens']
    expect(rows).toEqual([
      { name: 'audit_log', privilege: 'INSERT' },
      ...names.map((name) => ({ name, privilege: 'SELECT' })),
    ])
  })

  test('every table of a business is tried below', async ({ database }) => {
    const named = (await readTables(database))
      .filter((table) => table.has_tenant && !(table.name in ofPayments))
      .map((table) => table.name)
    expect(Object.keys(rowsOf('x')).sort()).toEqual(named)
  })

  test('the five roles can neither bypass row security nor log in nor change the list of migrations', async ({
    database,
  }) => {
    const { rows } = await database.query(
      `SELECT rolname, rolsuper, rolbypassrls, rolcanlogin, rolcreaterole,
         has_table_privilege(oid, 'mason.migrations', 'INSERT, UPDATE, DELETE') AS migrates
       FROM pg_roles WHERE rolname IN ('mason_admin', 'mason_api', 'mason_business', 'mason_payments', 'mason_worker') ORDER BY rolname`,
    )
    const powers = {
      rolsuper: false,
      rolbypassrls: false,
      rolcanlogin: false,
      rolcreaterole: false,
      migrates: false,
    }
    expect(rows).toEqual([
      { rolname: 'mason_admin', ...powers },
      { rolname: 'mason_api', ...powers },
      { rolname: 'mason_business', ...powers },
      { rolname: 'mason_payments', ...powers },
      { rolname: 'mason_worker', ...powers },
    ])
  })

  test.runIf(process.env.MASON_TEST_BACKEND === 'served')(
    'the owner of the tables sees what a policy shows and nothing else (on servers only: the owner in PGlite is a superuser)',
    async ({ backend }) => {
      const client = new pg.Client({ connectionString: (backend.config.database as { url: string }).url })
      await client.connect()
      try {
        await client.query('BEGIN; DROP POLICY worker ON mason.runs; DROP POLICY admin ON mason.runs')
        const { rows } = await client.query('SELECT count(*)::int AS runs FROM mason.runs')
        expect(rows).toEqual([{ runs: 0 }])
        await client.query('ROLLBACK')
      } finally {
        await client.end()
      }
    },
  )
})

const refused = ['42501', 'no error']

const turnTables = ['turns', 'turn_words', 'turn_vectors', 'turn_cutoffs']
/** What of a business belongs to one of its users each; `*` stands for all of them. */
const ofUsers = ['memories', 'memory_words', 'memory_vectors', 'memory_sources', ...turnTables]

describe.each(Object.keys(rowsOf('x')))('%s: one business', (table) => {
  const asA = <T>(database: Database, work: (sql: Sql) => Promise<T>): Promise<T> =>
    database.asBusiness('a', async (sql) => {
      if (ofUsers.includes(table)) await sql.query(`SELECT set_config('mason.user', '*', true)`)
      return work(sql)
    })
  const ofB = (database: Database) =>
    queryOne(database, `SELECT to_json(t) AS row FROM ${table} t WHERE tenant = 'b'`, [])

  test('cannot read, insert, change or delete what is of another', async ({ database }) => {
    const before = await ofB(database)
    expect(before).not.toBeNull()
    expect(await asA(database, (sql) => count(sql, `${table} WHERE tenant = 'b'`))).toBe(0)
    expect(await asA(database, (sql) => count(sql, table))).toBe(1)

    const extra = insertOf(table, { ...rowsOf('b')[table], ...(table === 'businesses' && { tenant: 'c' }) })
    expect(await codeOf(asA(database, (sql) => sql.query(extra.text, extra.values)))).toBe('42501')

    const statements = [
      `UPDATE ${table} SET tenant = 'a' WHERE tenant = 'b'`,
      `DELETE FROM ${table} WHERE tenant = 'b'`,
      `DELETE FROM ${table} t USING businesses other WHERE t.tenant <> 'a'`,
    ]
    for (const text of statements)
      expect(refused, text).toContain(await codeOf(asA(database, (sql) => sql.query(text))))
    const given = await codeOf(
      asA(database, (sql) => sql.query(`UPDATE ${table} SET tenant = 'b' WHERE tenant = 'a'`)),
    )
    expect(given).toBe('42501')
    expect(await ofB(database)).toEqual(before)
  })

  test('sees nothing at all when it has no name', async ({ database }) => {
    expect(await database.asBusiness('', (sql) => count(sql, table))).toBe(0)
  })
})

describe('acting for a business', () => {
  test('ends with the transaction, also with one that failed: the worker sees every business again', async ({
    database,
  }) => {
    await expect(database.asBusiness('a', (sql) => sql.query('SELECT 1/0'))).rejects.toThrow(/division/)
    await Promise.all(
      ['a', 'b', 'a', 'b'].map(async (business) => {
        const { rows } = await database.asBusiness(business, (sql) => sql.query('SELECT tenant FROM runs'))
        expect(rows).toEqual([{ tenant: business }])
      }),
    )
    expect(await count(database, 'runs')).toBe(2)
  })

  test('takes any name as data', async ({ database }) => {
    const name = `o'b"; RESET ROLE; --\\`
    const { rows } = await database.asBusiness(name, (sql) =>
      sql.query(`SELECT current_setting('mason.business') AS business, current_user AS me`),
    )
    expect(rows).toEqual([{ business: name, me: 'mason_api' }])
  })
})

describe('the log of what admins changed', () => {
  test('cannot be changed by any role, nor read for a business', async ({ backend, database }) => {
    await database.query(
      `INSERT INTO audit_log (audit_id, token_label, address, request_id, operation, resource, fields)
       VALUES ('aud_1', 'l', 'a', 'r', 'o', '/', '{}')`,
    )
    for (const change of [
      'UPDATE mason.audit_log SET resource = NULL',
      'DELETE FROM mason.audit_log',
      'TRUNCATE mason.audit_log',
    ]) {
      expect(await codeOf(database.asBusiness('a', (sql) => sql.query(change)))).toBe('42501')
      expect(await codeOf(database.query(change))).toBe('42501')
      expect(await codeOf(asOwner(backend, database, change))).toBe('23001')
    }
    expect(await codeOf(database.asBusiness('a', (sql) => count(sql, 'audit_log')))).toBe('42501')
    const { rows } = await database.query(
      `SELECT DISTINCT rolname FROM pg_roles, unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) AS privilege
       WHERE rolname LIKE 'mason\\_%' AND rolname NOT IN ('mason_owner', 'mason_ci') AND has_table_privilege(oid, 'mason.audit_log', privilege)`,
    )
    expect(rows).toEqual([])
  })
})

describe('actions', () => {
  const change = `UPDATE mason.actions SET body = '{"changed":true}'`

  test('cannot be changed by the API, the worker or the owner', async ({ backend, database }) => {
    expect(await codeOf(database.asBusiness('a', (sql) => sql.query(change)))).toBe('42501')
    expect(await codeOf(database.query(change))).toBe('42501')
    expect(await codeOf(asOwner(backend, database, change))).toBe('23001')
    expect(await count(database, `actions WHERE body::text = '{}'`)).toBe(2)
  })
})
