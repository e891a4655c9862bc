// backends: both
// asserts: invariants

import { describe, expect } from 'vitest'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { paymentTest as test } from '../../support/payments.ts'
import { codeOf, count } from '../../support/runs.ts'

/** One row of each table for a business, in an order that foreign keys allow. */
const rowsOf = (t: string): Record<string, Record<string, unknown>> => ({
  payment_orders: { tenant: t, order_id: `order of ${t}`, kind: 'pay', payment_id: `of ${t}`, request: '{}' },
  mandate_spend: { tenant: t, spend_id: `of ${t}`, currency: 'USD' },
  payments: {
    tenant: t,
    payment_id: `of ${t}`,
    order_id: `order of ${t}`,
    status: 'sent',
    mandate_key: 'k',
    mandate_hash: t,
    spend_id: `of ${t}`,
    amount_minor: 1,
    payee_issuer: t,
    checkout_id: 'c',
  },
  payment_operations: {
    tenant: t,
    operation_id: `of ${t}`,
    payment_id: `of ${t}`,
    order_id: `order of ${t}`,
    kind: 'authorize',
    amount_minor: 1,
    currency: 'USD',
    request: Buffer.from('secret'),
    request_hash: 'h',
  },
  mandates: {
    tenant: t,
    payment_id: `of ${t}`,
    kind: 'payment',
    raw: 'r',
    issuer_key: 'k',
    signing_hash: 'h',
  },
  payment_events: { tenant: t, payment_id: `of ${t}`, kind: 'ordered' },
  payment_nonces: { tenant: t, nonce: `of ${t}`, expires_at: new Date(0) },
})

const insert = (sql: Sql, table: string, row: Record<string, unknown>) =>
  sql.query(
    `INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${Object.keys(row).map((_, i) => `$${i + 1}`)})`,
    Object.values(row),
  )

test.beforeAll(async ({ database, executor }) => {
  for (const business of ['a', 'b']) {
    await insert(database, 'businesses', { tenant: business })
    for (const [table, row] of Object.entries(rowsOf(business))) await insert(executor, table, row)
  }
})

describe('rows of payments', () => {
  test('are seen by the API of their business alone, and changed by none but the executor', async ({
    database,
  }) => {
    for (const table of ['payments', 'mandates', 'payment_events', 'payment_operations', 'payment_orders'])
      expect(await database.asBusiness('a', (sql) => count(sql, table)), table).toBe(1)
    for (const table of Object.keys(rowsOf('x')).filter((name) => name !== 'payment_orders')) {
      const statements = [`UPDATE ${table} SET tenant = 'a'`, `DELETE FROM ${table}`]
      for (const text of statements) {
        expect(await codeOf(database.query(text)), text).toBe('42501')
        expect(await codeOf(database.asBusiness('a', (sql) => sql.query(text))), text).toBe('42501')
      }
    }
  })

  test('with money, secrets or nonces are hidden from workers and the API', async ({ database }) => {
    const hidden = [
      'SELECT spend_id FROM mandate_spend',
      'SELECT request FROM payment_operations',
      'SELECT request FROM payment_orders',
      'SELECT nonce FROM payment_nonces',
      'SELECT body FROM payment_inbox',
    ]
    for (const text of [...hidden, 'SELECT raw FROM mandates', 'SELECT detail FROM payment_events'])
      expect(await codeOf(database.query(text)), text).toBe('42501')
    for (const text of hidden)
      expect(await codeOf(database.asBusiness('a', (sql) => sql.query(text))), text).toBe('42501')
  })

  test('of one business cannot be written for another, nor a payment, its spend or its events at all', async ({
    database,
  }) => {
    const order = { ...rowsOf('b').payment_orders, order_id: 'new', payment_id: 'new' }
    const asA = (work: (sql: Sql) => Promise<unknown>) => codeOf(database.asBusiness('a', work))
    expect(await asA((sql) => insert(sql, 'payment_orders', order))).toBe('42501')
    expect(
      await asA((sql) => insert(sql, 'payment_nonces', { ...rowsOf('b').payment_nonces, nonce: 'n' })),
    ).toBe('42501')
    for (const table of ['payments', 'mandate_spend', 'payment_operations', 'mandates', 'payment_events']) {
      const row = rowsOf('a')[table] ?? {}
      expect(await codeOf(insert(database, table, row)), table).toBe('42501')
      expect(await asA((sql) => insert(sql, table, row)), table).toBe('42501')
    }
  })

  test('with events never change, also not by the executor', async ({ executor }) => {
    expect(await codeOf(executor.query(`UPDATE payment_events SET kind = 'x'`))).toBe('42501')
    expect(await codeOf(executor.query('DELETE FROM payment_events'))).toBe('42501')
  })

  test('of one closed mandate, or live ones of one checkout, are never two, whatever a statement says', async ({
    executor,
  }) => {
    const row = rowsOf('a').payments ?? {}
    const add = (changes: object) =>
      codeOf(insert(executor, 'payments', { ...row, payment_id: 'p', order_id: 'p', ...changes }))
    expect(await add({ payee_issuer: 'other' })).toBe('23505')
    expect(await add({ mandate_hash: 'other' })).toBe('23505')
    expect(await add({ mandate_hash: 'other', status: 'declined' })).toBe('no error')
  })

  test('of one call, payment, order or event are never two, whatever a statement says', async ({
    executor,
  }) => {
    const { payment_orders: order, payment_operations: operation } = rowsOf('a')
    const add = (table: string, row: object) => codeOf(insert(executor, table, { ...row }))
    const call = { run_id: 'r', plan_seq: 1, call_index: 0 }
    expect(await add('payment_orders', { ...order, ...call, order_id: 'x', payment_id: 'x' })).toBe(
      'no error',
    )
    expect(await add('payment_orders', { ...order, ...call, order_id: 'y', payment_id: 'y' })).toBe('23505')
    expect(await add('payment_orders', { ...order, order_id: 'z' })).toBe('23505')
    expect(await add('payment_operations', { ...operation, operation_id: 'o', kind: 'refund' })).toBe('23505')
    expect(await add('payment_operations', { ...operation, operation_id: 'o', order_id: 'o' })).toBe('23505')
    const event = { provider_id: 'card', headers: '{}', body: Buffer.from('{}'), event_id: 'e' }
    expect(await add('payment_inbox', event)).toBe('no error')
    expect(await add('payment_inbox', event)).toBe('23505')
  })

  test('have what was verified before money moves, and give back at most what was paid', async ({
    executor,
  }) => {
    const row = { ...rowsOf('a').payments, payment_id: 'whole', order_id: 'whole', mandate_hash: 'whole' }
    const add = (changes: object) => codeOf(insert(executor, 'payments', { ...row, ...changes }))
    for (const name of [
      'mandate_key',
      'mandate_hash',
      'spend_id',
      'amount_minor',
      'payee_issuer',
      'checkout_id',
    ])
      expect(await add({ [name]: null, status: 'reserved' }), name).toBe('23514')
    expect(await add({ status: 'declined' })).toBe('no error')
    const refund = (amount: string) =>
      codeOf(executor.query(`UPDATE payments SET refunded_minor = ${amount} WHERE payment_id = 'whole'`))
    expect([await refund('amount_minor + 1'), await refund('-1')]).toEqual(['23514', '23514'])
    expect(await refund('amount_minor')).toBe('no error')
  })

  test('with budgets refuse a sum over the maximum, whatever a statement says', async ({ executor }) => {
    await insert(executor, 'mandate_spend', {
      spend_id: 's',
      tenant: 'a',
      currency: 'USD',
      max_minor: 10,
      max_uses: 1,
    })
    const add = (text: string) =>
      codeOf(executor.query(`UPDATE mandate_spend SET ${text} WHERE spend_id = 's'`))
    expect(await add('reserved_minor = 6, spent_minor = 5')).toBe('23514')
    expect(await add('reserved_uses = 1, spent_uses = 1')).toBe('23514')
    expect(await add('reserved_minor = -1')).toBe('23514')
    expect(await add('reserved_minor = 10, reserved_uses = 1')).toBe('no error')
  })
})

test('no login but the migrating one is a member of the executor’s role', async ({ database }) => {
  const { rows } = await database.query(
    `SELECT rolname FROM pg_roles r WHERE pg_has_role(r.oid, 'mason_payments', 'MEMBER') AND NOT rolsuper
       AND rolname ~ 'test_(api|worker)|^mason_(api|worker|admin|business)$'`,
  )
  expect(rows).toEqual([])
})
