import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { startAdapter } from '../../../examples/card-adapter/adapter.ts'
import { openCompany } from '../../../examples/card-adapter/company.ts'
import { openEgress } from '../../../src/infra/egress/egress.ts'
import { openProvider } from '../../../src/payments/providers/card.ts'
import type { ProviderOperation } from '../../../src/payments/providers/provider.ts'
import { cardSecrets } from '../../support/card-provider.ts'

/** The adapter of examples/card-adapter between Mason's card provider and a company that charges once for each key. */
const open = async () => {
  const charges = new Map<string, { id: string; amount: number; status: string }>()
  const state = { loses: 0, status: 'succeeded' }
  const server = createServer(async (request, response) => {
    const key = String(request.headers['idempotency-key'])
    const body =
      request.method === 'POST' ? ((await json(request)) as { amount: number; source: string }) : null
    const isDeclined = body?.source === 'tok_declined'
    const known = charges.get(key) ?? [...charges.values()].find(({ id }) => request.url === `/charges/${id}`)
    const charge = known ?? { id: randomUUID(), amount: body?.amount ?? 0, status: state.status }
    if (body && !isDeclined) charges.set(key, charge)
    if (state.loses-- > 0) return void response.destroy()
    const answer = isDeclined
      ? { error: { code: 'insufficient_funds' } }
      : { ...charge, status: state.status }
    response.writeHead(isDeclined ? 402 : 200).end(JSON.stringify(answer))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const company = openCompany(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 'key')
  const folder = mkdtempSync(join(tmpdir(), 'mason-card-adapter-'))
  const egress = openEgress()
  let clock = Date.now()
  const start = () =>
    startAdapter({
      ...{ apiKey: cardSecrets.api_key, file: join(folder, 'books.jsonl'), company, now: () => clock },
    })
  let adapter = await start()
  onTestFinished(async () => {
    await adapter.close()
    await egress[Symbol.asyncDispose]()
    server.close().closeAllConnections()
    rmSync(folder, { recursive: true })
  })
  const settings = { allow_private: true, window_ms: 86_400_000, timeout_ms: 5000 }
  const signal = new AbortController().signal
  const openCard = () => openProvider({ ...settings, base_url: adapter.url }, cardSecrets, egress)
  return {
    ...{ charges, state },
    send(key: string, change: Partial<ProviderOperation> = {}) {
      const operation: ProviderOperation = {
        ...{
          kind: 'authorize',
          payment_id: 'pay_1',
          amount: { currency: 'USD', minor: 60349 },
          capture: true,
        },
        ...{ payee: { id: 'shop', name: 'Shop' }, provider_ref: null, credential: 'tok_visa', ...change },
      }
      return openCard().send(openCard().toRequest(operation), key, () => {}, signal)
    },
    lookup: (key: string) => openCard().lookup(key, signal),
    async restart(laterMs = 0) {
      await adapter.close()
      clock += laterMs
      adapter = await start()
    },
  }
}

test('the adapter charges once under a key, also after a restart, and refuses other bytes', async () => {
  const { send, lookup, restart, charges } = await open()
  const first = await send('key-1')
  expect(first).toMatchObject({ status: 'succeeded', amount: { currency: 'USD', minor: 60349 } })
  await restart()
  expect(await send('key-1')).toEqual(first)
  expect(await lookup('key-1')).toEqual(first)
  expect(await lookup('key-2')).toBeNull()
  await expect(send('key-1', { payment_id: 'pay_2' })).rejects.toThrow('answered 409')
  expect([...charges.values()]).toMatchObject([{ amount: 60349 }])
})

test('a lost answer of the company is found in its window, and is unknown afterwards', async () => {
  const { send, lookup, restart, state, charges } = await open()
  state.loses = 2
  await expect(send('key-1')).rejects.toThrow('answered 503')
  await expect(send('key-2')).rejects.toThrow('answered 503')
  expect(await lookup('key-1')).toMatchObject({ status: 'succeeded' })
  await restart(86_400_000)
  await expect(lookup('key-2')).rejects.toThrow('answered 503')
  expect(charges.size).toBe(2)
})

test('a declined card, a pending charge and what the adapter cannot do are said as they are', async () => {
  const { send, lookup, state, charges } = await open()
  expect(await send('key-1', { credential: 'tok_declined' })).toMatchObject({
    ...{ status: 'declined', reason: expect.stringContaining('not enough money') },
  })
  expect(await send('key-2', { capture: false })).toMatchObject({ status: 'declined' })
  expect(charges.size).toBe(0)
  state.status = 'pending'
  expect(await send('key-3')).toMatchObject({ status: 'pending' })
  state.status = 'succeeded'
  expect(await lookup('key-3')).toMatchObject({ status: 'succeeded' })
  expect(charges.size).toBe(1)
})
