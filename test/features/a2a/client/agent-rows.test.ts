import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createPaymentAgents } from '../../../../src/features/a2a/client/payment-agents.ts'
import { createRunAgents } from '../../../../src/features/a2a/client/run-agents.ts'

const row = { name: 'shop', business_id: 'default', roles: ['merchant'], headers: {}, card: {} }

/** Agents of a business, and how often their rows were read. */
const createRows = () => {
  const rows = { reads: 0 }
  const sql = {
    query: async () => {
      rows.reads++
      return { rows: [{ ...row, card_url: 'https://shop.example/', issuer: null }] }
    },
  } as never
  return { rows, sql }
}

test('a run that looks an agent up and calls it in one turn of the event loop reads its row once', async () => {
  const { rows, sql } = createRows()
  const agents = createRunAgents(
    { publicUrl: null, scrubber: { text: String }, registry: { view: {} } } as never,
    sql,
    'default',
  )
  await agents.list('merchant')
  await agents.send({ agent: 'shop', parts: [] })
  expect(rows.reads).toBe(1)
  await nextTurn()
  await agents.send({ agent: 'shop', parts: [] })
  expect(rows.reads).toBe(2)
})

test('the executor reads the row of an agent again in the next turn of the event loop', async () => {
  const { rows, sql } = createRows()
  const agents = createPaymentAgents({} as never, sql)
  const found = { roles: ['merchant'], issuer: 'https://shop.example', origin: 'https://shop.example' }
  expect([await agents.find('default', 'shop'), await agents.find('default', 'shop')]).toEqual([found, found])
  expect(rows.reads).toBe(1)
  await agents.find('another', 'shop')
  expect(rows.reads).toBe(2)
  await nextTurn()
  await agents.find('default', 'shop')
  expect(rows.reads).toBe(3)
})
