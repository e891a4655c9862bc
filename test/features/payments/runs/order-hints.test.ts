import { expect, test } from 'vitest'
import { createRunMandates } from '../../../../src/features/payments/runs/run-mandates.ts'
import { createRunPayments } from '../../../../src/features/payments/runs/run-payments.ts'
import type { Sql } from '../../../../src/state/ports/sql.ts'

test('an order wakes the executor for payments, and a request for a consent does not', () => {
  const hints: string[] = []
  const run = { tenant: 'default', run_id: 'run_1', user_id: 'ann' }
  const sql = {} as Sql
  const payments = createRunPayments(sql, run, 'mason', (work) => hints.push(work), { view: {} })
  const mandates = createRunMandates(sql, run, 'mason', (work) => hints.push(work), { view: {} })
  const find = () => Promise.reject(new Error('nothing is looked up before a wait is started'))
  const terms = {} as Parameters<typeof mandates.propose>[1]
  payments.requestConsent('pay_1', find, find).onStarted?.()
  mandates.propose('mnd_1', terms, 'prv_1', null).onStarted?.()
  expect(hints).toEqual([])
  payments.pay('pay_1', 'prv_1', { token: 'sealed' }).onStarted?.()
  payments.answer('pay_1', 'sealed').onStarted?.()
  mandates.pay('mnd_1', 'pay_2', find).onStarted?.()
  expect(hints).toEqual(['payments', 'payments', 'payments'])
})
