import { randomBytes } from 'node:crypto'
import { expect, vi } from 'vitest'
import type { ExecutorServices } from '../../src/features/payments/executor/executor-services.ts'
import { startExecutor } from '../../src/features/payments/executor/start-executor.ts'
import { openPaymentKeys, type PaymentKeys } from '../../src/features/payments/keys/payment-keys.ts'
import { type Database, queryOne } from '../../src/infra/database/database.ts'
import { loginRoles } from '../../src/infra/database/login-roles.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { toRoleDatabase } from '../../src/infra/database/role-database.ts'
import { createMasterKeys } from '../../src/infra/secrets/master-keys.ts'
import { type Backend, unique } from './backend.ts'
import { test } from './integration-test.ts'
import { until } from './runs.ts'
import { paymentUrlOf } from './served-logins.ts'

/** The database as the executor of payments has it. Embedded it is the session of `database`, under the executor's role. */
export const openExecutorDatabase = (backend: Backend, database: Database, max = 10): Database => {
  const { database: settings } = backend.config
  if (settings.kind !== 'postgres') return toRoleDatabase(database, 'mason_payments')
  return openPostgresDatabase({
    url: paymentUrlOf(settings.url),
    max,
    roles: loginRoles.payments,
  })
}

/** A test with the database as the executor has it. */
export const paymentTest = test.extend(
  'executor',
  { scope: 'file' },
  async ({ backend, database }, { onCleanup }) => {
    const executor = openExecutorDatabase(backend, database)
    onCleanup(() => executor.close())
    return executor
  },
)

/** Publishes key pairs of an executor, as its first start does, so that an API can seal to it. Returns its keys. */
export const publishPaymentKeys = async (backend: Backend, database: Database): Promise<PaymentKeys> => {
  const executor = openExecutorDatabase(backend, database, 1)
  const keys = await openPaymentKeys(executor, createMasterKeys(randomBytes(32).toString('base64')))
  await executor.close()
  return keys
}

/** The body of a new provider that moves no money. */
export const newProvider = (fields: object = {}) => ({
  name: unique('cards'),
  base_url: 'https://pay.example',
  test: true,
  api_key: `sk-nightjar-${randomBytes(6).toString('hex')}`,
  webhook_secret: `whsec_${randomBytes(32).toString('base64')}`,
  ...fields,
})

/** Runs one executor until there is no order left and no payment that is due, then stops it. */
export const drain = async (services: ExecutorServices, count = 1): Promise<void> => {
  const executors = Array.from({ length: count }, () => startExecutor(services, { idleMs: 20 }))
  const isDone = async (): Promise<boolean> => {
    const row = await queryOne<{ left: boolean }>(
      services.database,
      `SELECT EXISTS (SELECT FROM payment_orders WHERE done_at IS NULL AND next_at <= clock_timestamp() + interval '1 second')
         OR EXISTS (SELECT FROM payment_inbox WHERE done_at IS NULL)
         OR EXISTS (SELECT FROM payments WHERE status IN ('reserved', 'sent', 'unknown') AND NOT (status = 'sent' AND is_authorized)
           AND next_at <= clock_timestamp() AND lease_until IS NULL) AS "left"`,
      [],
    )
    return row?.left === false
  }
  try {
    await until('all orders are done', isDone)
  } finally {
    await Promise.all(executors.map((one) => one.stop()))
  }
}

/** A payment of the business `default` as the executor leaves it. */
export const addPayment = async (executor: Database, status: string, refunded = 0): Promise<string> => {
  const id = unique('pay')
  await executor.query(
    `INSERT INTO mandate_spend (spend_id, tenant, currency) VALUES ($1, 'default', 'USD')`,
    [id],
  )
  await executor.query(
    `INSERT INTO payment_orders (order_id, tenant, kind, payment_id, request, done_at)
     VALUES ('ord_' || $1, 'default', 'pay', $1, '{}', clock_timestamp())`,
    [id],
  )
  await executor.query(
    `INSERT INTO payments (payment_id, tenant, order_id, status, amount_minor, currency, payee_issuer, checkout_id, mandate_key,
       mandate_hash, spend_id, refunded_minor) VALUES ($1, 'default', 'ord_' || $1, $2, 1999, 'USD', 'shop', $1, 'k', $1, $1, $3)`,
    [id, status, refunded],
  )
  await executor.query(
    `INSERT INTO payment_events (tenant, payment_id, kind, detail) VALUES ('default', $1, 'verified', '{"key":"k"}')`,
    [id],
  )
  return id
}

/** Carries out the next order of a payment, or the next of a kind, in place of an executor; resolves with what it asked for. */
export const carryOut = (executor: Database, id: string, kind: string | null = null): Promise<unknown> =>
  vi.waitFor(
    async () => {
      const { rows } = await executor.query<{ kind: string; request: object }>(
        `UPDATE payment_orders SET done_at = clock_timestamp(), outcome = '{"status":"done","message":"It is done."}'
       WHERE payment_id = $1 AND kind = COALESCE($2, kind) AND done_at IS NULL RETURNING kind, request`,
        [id, kind],
      )
      expect(rows).toHaveLength(1)
      return rows[0]
    },
    { timeout: 90_000 },
  )
