// backends: either
// asserts: invariants

import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { describe, expect, onTestFinished } from 'vitest'
import { ensureBusiness } from '../../../src/accounts/businesses.ts'
import { openPaymentKeys } from '../../../src/features/payments/keys/payment-keys.ts'
import { createProviders } from '../../../src/features/payments/providers/provider-rows.ts'
import { providerSchemas } from '../../../src/features/payments/providers/provider-schemas.ts'
import { createMasterKeys } from '../../../src/infra/secrets/master-keys.ts'
import { newProvider, paymentTest as test } from '../../support/payments.ts'
import { codeOf } from '../../support/runs.ts'
import { loginsOf } from '../../support/served-logins.ts'

const isServed = process.env.MASON_TEST_BACKEND === 'served'

/** What the ledger says of money. */
const moneyStatement = `SELECT json_build_object('payments', (SELECT json_agg(p) FROM payments p),
  'operations', (SELECT json_agg(o) FROM payment_operations o), 'spend', (SELECT json_agg(s) FROM mandate_spend s),
  'inbox', (SELECT count(*) FROM payment_inbox), 'keys', (SELECT json_agg(k) FROM payment_keys k),
  'providers', (SELECT json_agg(p) FROM payment_providers p), 'consents', (SELECT json_agg(c) FROM consents c)) AS money`

const tables = [
  'payments',
  'payment_operations',
  'payment_events',
  'payment_nonces',
  'payment_inbox',
  'payment_keys',
  'payment_providers',
  'mandates',
  'mandate_spend',
]

/** Columns that hold secrets, or bytes that are sent to a provider. */
const secretColumns = [
  'payment_keys.sealed_private',
  'payment_keys.wrapped_key',
  'payment_providers.sealed_api_key',
  'payment_providers.sealed_webhook_secret',
  'payment_operations.request',
  'payment_inbox.body',
  'payment_inbox.headers',
]

/** What moves money, makes the executor move it, or says where it goes, where it succeeds. */
const moves = [
  `INSERT INTO payments (payment_id, tenant, order_id, status) VALUES ('pay_x', 'default', 'ord_x', 'released')`,
  `UPDATE payments SET status = 'succeeded'`,
  `UPDATE payments SET amount_minor = 1`,
  `UPDATE payments SET refunded_minor = 0`,
  `INSERT INTO payment_operations (operation_id, tenant, payment_id, order_id, kind, amount_minor, currency, request_hash)
     VALUES ('op_x', 'default', 'pay_1', 'ord_x', 'authorize', 1, 'USD', 'h')`,
  `UPDATE payment_operations SET status = 'intent'`,
  `UPDATE mandate_spend SET reserved_minor = 0, spent_minor = 0`,
  `INSERT INTO mandate_spend (spend_id, tenant, currency) VALUES ('x', 'default', 'USD')`,
  `INSERT INTO mandates (payment_id, kind, tenant, raw, issuer_key, signing_hash) VALUES ('pay_1', 'cart', 'default', '', '', '')`,
  `UPDATE payment_nonces SET used_at = NULL`,
  `INSERT INTO payment_keys (kid, purpose, x, y, master_key, wrapped_key, sealed_private) VALUES ('k', 'sealing', 'x', 'y', 'm', '', '')`,
  `UPDATE payment_keys SET ended_at = clock_timestamp()`,
  `UPDATE payment_orders SET kind = 'pay', request = '{}'`,
  `UPDATE payment_orders SET done_at = NULL, outcome = NULL`,
  `INSERT INTO payment_orders (order_id, tenant, kind, payment_id, request) VALUES ('ord_r', 'default', 'refund', 'pay_1', '{"amount_minor":1}')`,
  `INSERT INTO payment_orders (order_id, tenant, kind, payment_id, request) VALUES ('ord_s', 'default', 'settle', 'pay_1', '{"status":"declined"}')`,
  `INSERT INTO payment_orders (order_id, tenant, kind, payment_id, request) VALUES ('ord_c', 'default', 'capture', 'pay_1', '{}')`,
  `INSERT INTO trusted_keys (key_id, tenant, issuer, kid, roles, x, y) VALUES ('t', NULL, 'i', 'k', '{trusted-surface}', 'x', 'y')`,
  `UPDATE trusted_keys SET revoked_at = NULL`,
  `INSERT INTO passkeys (credential_id, tenant, user_id, public_key, counter) VALUES ('c', 'default', 'u', '', 0)`,
  `UPDATE consents SET status = 'signed', answer = '"e30.e30.e30"'`,
  `SELECT base_url FROM payment_providers`,
  `UPDATE payment_providers SET base_url = 'https://evil.example'`,
  `INSERT INTO payment_providers (provider_id, name, kind, base_url, allow_private, is_test, window_ms, timeout_ms, sealed_api_key,
     api_key_end, sealed_webhook_secret, webhook_secret_end) VALUES ('prv_x', 'x', 'card', 'https://evil.example', false, true, 300000,
     1000, 's', 's', 's', 's')`,
  `CREATE OR REPLACE FUNCTION mason.refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`,
]

/** Whose login it is, its roles, and what of `moves` is its own work. */
const stolen = [
  ['a worker', 'workerUrl', ['mason_worker', 'mason_business'], []],
  // it enters providers and orders refunds, which the executor carries out
  [
    'an API process',
    'apiUrl',
    ['mason_admin', 'mason_api'],
    ['refund', 'settle', 'capture', 'trusted_keys', 'payment_providers', 'passkeys', 'consents'],
  ],
] as const

describe.runIf(isServed)('a stolen login (on servers only: PGlite is one session of one user)', () => {
  test.for(stolen)(
    'of %s reads no secret of payments and moves no money',
    async ([who, address, roles, allowed], { backend, executor, elsewhere }) => {
      const { url } = backend.config.database as { url: string }
      await openPaymentKeys(executor, createMasterKeys(randomBytes(32).toString('base64'))).catch(() => {})
      await ensureBusiness(elsewhere, 'default')
      const input = newProvider({ name: `cards of ${who}` })
      await createProviders(elsewhere, { testOnly: false, changed: async () => {} }).create(
        {},
        providerSchemas.input.parse(input),
      )
      await executor.query(
        `INSERT INTO payments (payment_id, tenant, order_id, status) VALUES ('pay_1', 'default', 'ord_1', 'released') ON CONFLICT DO NOTHING`,
      )
      await elsewhere.query(
        `INSERT INTO consents (consent_id, tenant, user_id, payment_id, content, nonce, expires_at)
         VALUES ('con_1', 'default', 'u', 'pay_1', '{}', 'n', clock_timestamp() + interval '1 hour') ON CONFLICT DO NOTHING`,
      )
      const readMoney = async () => (await executor.query(moneyStatement)).rows
      const before = await readMoney()

      const client = new pg.Client({ connectionString: loginsOf(url)[address] })
      await client.connect()
      onTestFinished(() => client.end())
      await client.query(`SET search_path = mason, public; SET mason.business = 'default'`)
      expect(await codeOf(client.query('SET ROLE mason_payments'))).toBe('42501')
      const seen: string[] = []
      const attempt = async (role: string, statement: string): Promise<void> => {
        await client.query(`BEGIN; SET LOCAL ROLE ${role}`)
        try {
          const { rows, rowCount } = await client.query(statement)
          seen.push(JSON.stringify(rows))
          // row-level security hides the rows that an update would change
          if (moves.includes(statement)) expect([role, statement, rowCount]).toEqual([role, statement, 0])
        } catch (error) {
          expect([statement, (error as { code: string }).code]).toEqual([statement, '42501'])
        }
        await client.query('COMMIT')
      }
      for (const role of roles) {
        for (const column of secretColumns) {
          const [table = '', name = ''] = column.split('.')
          expect([role, column, await codeOf(inRole(client, role, `SELECT ${name} FROM ${table}`))]).toEqual([
            role,
            column,
            '42501',
          ])
        }
        for (const table of tables) {
          await attempt(role, `SELECT * FROM ${table}`)
          expect([role, table, await codeOf(inRole(client, role, `DELETE FROM ${table}`))]).toEqual([
            role,
            table,
            '42501',
          ])
          expect([role, table, await codeOf(inRole(client, role, `TRUNCATE ${table} CASCADE`))]).toEqual([
            role,
            table,
            '42501',
          ])
        }
        for (const statement of moves)
          if (!allowed.some((word) => statement.includes(word))) await attempt(role, statement)
        // a wait that ends says that a payment was made
        const ended = inRole(
          client,
          role,
          `SELECT end_wait('default', 'payment', 'pay_1', '{"status":"succeeded"}')`,
        )
        expect([role, await codeOf(ended)]).toEqual([role, '42501'])
      }
      expect(seen.join()).not.toMatch(/nightjar|whsec|eyJ/)
      const ofLedger = ([row]: unknown[]) => ({ ...(row as { money: object }).money, providers: null })
      expect(ofLedger(await readMoney())).toEqual(ofLedger(before))
    },
  )
})

const inRole = async (client: pg.Client, role: string, statement: string): Promise<void> => {
  await client.query(`BEGIN; SET LOCAL ROLE ${role}`)
  try {
    await client.query(statement)
  } finally {
    await client.query('ROLLBACK')
  }
}
