import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startAdapter } from '../../../../examples/card-adapter/adapter.ts'
import { openCompany } from '../../../../examples/card-adapter/company.ts'
import { openProvider } from '../../../../src/features/payments/providers/card.ts'
import type { ProviderOperation } from '../../../../src/features/payments/providers/provider.ts'
import { openEgress } from '../../../../src/infra/egress/egress.ts'
import { cardSecrets } from '../../../support/card-provider.ts'
import { openFolder } from '../../../support/file-samples.ts'

type Body = { amount: number; currency: string; source: string }

/** The adapter of examples/card-adapter between Mason's card provider and a company that charges once for each key. */
const open = async () => {
  const charges = new Map<string, { id: string; amount: number; currency: string }>()
  /** `change`: what the company says otherwise of a charge; `refusal`: the body of a 402 in its place. */
  const state = { loses: 0, requests: 0, change: {} as object, refusal: null as object | null }
  const server = createServer(async (request, response) => {
    state.requests++
    const key = String(request.headers['idempotency-key'])
    const body = request.method === 'POST' ? ((await json(request)) as Body) : null
    const known = charges.get(key) ?? [...charges.values()].find(({ id }) => request.url === `/charges/${id}`)
    const charge = known ?? { id: randomUUID(), amount: body?.amount ?? 0, currency: body?.currency ?? '' }
    if (body && !state.refusal) charges.set(key, charge)
    if (state.loses-- > 0) return void response.destroy()
    const answer = state.refusal ?? { ...charge, status: 'succeeded', ...state.change }
    response.writeHead(state.refusal ? 402 : 200).end(JSON.stringify(answer))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const company = openCompany(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 'key')
  const folder = await openFolder()
  const file = join(folder.path, 'books.jsonl')
  const egress = openEgress()
  let clock = Date.now()
  const start = () => startAdapter({ apiKey: cardSecrets.api_key, file, company, now: () => clock })
  let adapter = await start()
  onTestFinished(async () => {
    await adapter.close()
    await egress[Symbol.asyncDispose]()
    server.close().closeAllConnections()
    await folder[Symbol.asyncDispose]()
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
    ask: async (method: string, path: string) => {
      const headers = { authorization: `Bearer ${cardSecrets.api_key}`, 'idempotency-key': 'key-1' }
      const response = await fetch(adapter.url + path, { method, headers })
      return [response.status, await response.json()]
    },
    readBooks: () => readFileSync(file, 'utf8'),
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

test('the books have no credential, and the company has to name the amount that was approved', async () => {
  const { send, lookup, state, readBooks } = await open()
  for (const change of [{ amount: 1 }, { currency: 'EUR' }]) {
    state.change = change
    await expect(send(JSON.stringify(change))).rejects.toThrow('answered nonsense')
  }
  for (const change of [{ amount: undefined }, { currency: undefined }]) {
    state.change = { status: 'pending', ...change }
    await expect(send(Object.keys(change).join())).rejects.toThrow('answered 503')
  }
  expect(await lookup('{"amount":1}')).toMatchObject({ amount: { currency: 'USD', minor: 1 } })
  expect(readBooks()).toContain('currency')
  expect(readBooks()).not.toContain('tok_visa')
})

test('a lost answer is found by the same request in its window alone, and no look-up charges', async () => {
  const { send, lookup, restart, state, charges } = await open()
  state.loses = 2
  await expect(send('key-1')).rejects.toThrow('answered 503')
  await expect(send('key-2')).rejects.toThrow('answered 503')
  await restart()
  await expect(lookup('key-1')).rejects.toThrow('answered 503')
  expect(state.requests).toBe(2)
  expect(await send('key-1')).toMatchObject({ status: 'succeeded' })
  expect(await lookup('key-1')).toMatchObject({ status: 'succeeded' })
  await restart(86_400_000)
  await expect(send('key-2')).rejects.toThrow('answered 503')
  expect(state.requests).toBe(3)
  expect(charges.size).toBe(2)
})

test('a pending charge ends as the company says, and what the adapter cannot do is declined', async () => {
  const { send, lookup, state, charges } = await open()
  expect(await send('key-1', { capture: false })).toMatchObject({ status: 'declined' })
  expect(charges.size).toBe(0)
  for (const status of ['succeeded', 'failed', 'declined']) {
    state.change = { status: 'pending' }
    expect(await send(status)).toMatchObject({ status: 'pending' })
    state.change = { status, error: { code: 'expired_card' } }
    const declined = { status: 'declined', reason: expect.stringContaining('expired') }
    const ended = status === 'succeeded' ? { status } : declined
    expect(await lookup(status)).toMatchObject(ended)
    expect(await send(status)).toMatchObject(ended)
  }
  expect(charges.size).toBe(3)
})

test('only a 402 with the code of a declined card is a decline', async () => {
  const { send, lookup, state } = await open()
  for (const refusal of [{}, { error: { code: 'plan_expired' } }, { error: { code: ['card_declined'] } }]) {
    state.refusal = refusal
    await expect(send('key-1')).rejects.toThrow('answered 503')
  }
  state.refusal = { error: { code: 'insufficient_funds' } }
  const declined = { status: 'declined', reason: expect.stringContaining('not enough money') }
  expect(await send('key-1')).toMatchObject(declined)
  expect(await lookup('key-1')).toMatchObject(declined)
})

test('only the look-up of a key says that a key is unknown', async () => {
  const { ask } = await open()
  expect(await ask('GET', '/v1/operations/key-1')).toEqual([404, { error: { code: 'unknown_key' } }])
  const paths = ['/', '/v1/operations/', '/v1/operations/a/', '/v1/operations/a?b', '/x/v1/operations/a']
  const others = [
    ...paths.map((path) => ['GET', path] as const),
    ...['DELETE', 'PUT', 'POST'].map((method) => [method, '/v1/operations/key-1'] as const),
  ]
  for (const [method, path] of others)
    expect(await ask(method, path)).toEqual([404, { error: { code: 'unknown_route' } }])
  const refused = [422, { error: { code: 'not_supported', acted: false } }]
  expect(await ask('POST', '/v1/payments/ch_1/refund')).toEqual(refused)
})

test('the adapter does not start without a file for its books', async () => {
  for (const name of ['ADAPTER_API_KEY', 'COMPANY_URL', 'COMPANY_API_KEY'])
    vi.stubEnv(name, 'http://localhost')
  vi.stubEnv('ADAPTER_BOOKS', '')
  onTestFinished(() => void vi.unstubAllEnvs())
  await expect(import('../../../../examples/card-adapter/main.ts')).rejects.toThrow('ADAPTER_BOOKS')
})
