import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { openShopper, startSampleAgents } from '../support/sample-agents.ts'

test('a payment that a kill cuts off is made once after the restart, and its answer can be looked up', async () => {
  const agents = await startSampleAgents({}, true)
  const shopper = await openShopper(agents, '1.0')
  const purchase = await shopper.sign('0.1', await shopper.choose('0.1'))
  const { id } = await shopper.pay(purchase)
  agents.processor.signal('SIGSTOP')
  const messageId = randomUUID()
  const lost = shopper.answer(purchase, id, '123', { messageId }).catch(() => 'lost')
  await expect
    .poll(() => agents.merchant.list<{ state: string }>('orders').map(({ state }) => state))
    .toEqual(['paying'])
  await agents.merchant.restart()
  expect(await lost).toBe('lost')
  agents.processor.signal('SIGCONT')
  await agents.processor.restart()
  await expect.poll(() => agents.processor.list('payments')).toMatchObject([{ state: 'paid' }])
  await expect.poll(async () => (await shopper.peers.merchant.get(id)).state).toBe('completed')
  const body = { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { contextId: purchase.contextId } }
  const response = await fetch(`${agents.merchant.url}/a2a`, {
    ...{ method: 'POST', headers: { 'a2a-version': '1.0' }, body: JSON.stringify(body) },
  })
  const { result } = (await response.json()) as {
    result: { tasks: { id: string; history: { messageId: string }[] }[] }
  }
  const found = result.tasks.find(({ history }) => history.some((one) => one.messageId === messageId))
  expect(found?.id).toBe(id)
  expect(agents.processor.list('payments')).toMatchObject([{ state: 'paid' }])
})
