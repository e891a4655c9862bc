// backends: either

import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect } from 'vitest'
import { serveHttp } from '../../src/app/http/serve-http.ts'
import { ClientError, createClient } from '../../src/client/index.ts'
import type { RunEvent } from '../../src/state/run-view.ts'
import { unique } from '../support/backend.ts'
import { adminToken, runtimeTest as test } from '../support/integration-test.ts'
import { seededBytes } from '../support/random.ts'
import { calling, say } from '../support/script.ts'
import { deadline } from '../support/test-runtime.ts'

/** A `fetch` over a bad network: the first tries of some requests lose their answer, and streams break in their middle. */
const createBadFetch = (lost: number, cutStreams = 0) => {
  const sent: string[] = []
  const bad: typeof fetch = async (url, init) => {
    const line = `${init?.method} ${new URL(String(url)).pathname}`
    sent.push(line)
    const tries = sent.filter((earlier) => earlier === line).length
    const response = await fetch(url, init)
    if (tries <= lost) {
      await response.body?.cancel()
      throw new TypeError('fetch failed')
    }
    if (!line.endsWith('/events') || tries > lost + cutStreams) return response
    // in the middle of an event
    let left = 2500 * (tries - lost)
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        controller.enqueue(chunk.subarray(0, left))
        left -= chunk.length
        if (left <= 0) controller.error(new Error('the network is down'))
      },
    })
    return new Response(response.body?.pipeThrough(cut as never) as never, response)
  }
  return { bad, sent }
}
const idsOf = (events: RunEvent[]): number[] =>
  events.flatMap((event) => (event.event === 'action' ? [event.id] : []))

/** The runtime opens here, where a busy machine has time for it. */
test.beforeAll(({ server }) => void server)
let close: (() => void) | undefined
afterEach(() => close?.())

describe('the client', () => {
  test('submits once and follows every action once, while answers are lost and streams break', async ({
    server,
    model,
  }) => {
    say(model, { planner: [calling(['calculate', { expression: '6*7' }]), { text: 'It is 42.' }] })
    const { bad, sent } = createBadFetch(1, 2)
    const businessId = unique('client')
    const client = createClient({ url: server.url, token: adminToken, businessId, fetch: bad })
    const run = await client.submit({ prompt: 'What is 6 * 7?', user_id: 'ann' })
    expect(sent).toEqual(Array(2).fill('POST /v1/runs'))
    const states: string[] = []
    const events: RunEvent[] = []
    const follow = client.events(
      { run_id: run.id },
      { signal: deadline(), onConnection: (state) => states.push(state) },
    )
    for await (const event of follow) events.push(event)
    const ids = idsOf(events)
    expect(ids).toEqual(ids.map((_, index) => index + 1))
    expect(events.at(-1)).toMatchObject({ event: 'done', data: { answer: 'It is 42.' } })
    expect(states.slice(0, 2)).toEqual(['lost', 'reconnected'])
    const { data } = await client.runs.list({ user_id: 'ann' })
    expect(data.map(({ id }) => id)).toEqual([run.id])
    expect((await client.sessions.get(run.session_id)).turns).toMatchObject([{ run_id: run.id }])
    expect((await client.runs.state(run.id)).prompts).toHaveLength(1)
    expect((await client.memories.list({ user_id: 'ann' })).data).toEqual([])
    const plain = createClient({ url: server.url, token: adminToken, businessId })
    await plain.sessions.delete(run.session_id)
    await expect(client.sessions.get(run.session_id)).rejects.toMatchObject({
      code: 'not_found',
      status: 404,
    })
  })

  test('waits for a question, answers it, and cancels', async ({ server, model }) => {
    const question = calling(['ask_user', { question: 'Which year?', options: ['2024', '2025'] }])
    say(model, { planner: [question, { text: 'Then 2025.' }, question] })
    const client = createClient({ url: server.url, token: adminToken, businessId: unique('client') })
    const run = await client.submit({ prompt: 'Sum it up', user_id: 'ann' })
    const asked = await client.wait(run.id, { signal: deadline() })
    expect(asked).toMatchObject({ status: 'input_required', input_request: { question: 'Which year?' } })
    const requestId = asked.input_request?.id ?? ''
    const wrong = await client.answer(run.id, requestId, 7).catch((error: unknown) => error)
    expect(wrong).toBeInstanceOf(ClientError)
    expect(wrong).toMatchObject({ code: 'invalid_request', problem: { errors: [expect.anything()] } })
    await client.answer(run.id, requestId, '2025')
    expect(await client.wait(run.id, { signal: deadline() })).toMatchObject({ answer: 'Then 2025.' })
    const other = await client.submit({ prompt: 'Again', user_id: 'ann' })
    await client.wait(other.id, { signal: deadline() })
    await client.cancel(other.id, 'no longer needed')
    expect(await client.wait(other.id, { signal: deadline() })).toMatchObject({ status: 'cancelled' })
    await expect(client.cancel(run.id)).rejects.toMatchObject({ code: 'run_ended' })
  })

  test('finds runs by key and metadata, and retries a failed one once, while answers are lost', async ({
    server,
    model,
  }) => {
    say(model, { planner: [{ failure: { status: 401 } }, { text: 'Now it works.' }] })
    const { bad, sent } = createBadFetch(1)
    const client = createClient({
      url: server.url,
      token: adminToken,
      businessId: unique('client'),
      fetch: bad,
    })
    const request = { prompt: 'Hello', user_id: 'ann', metadata: { order: 'SO 1041', urgent: true } }
    const run = await client.submit(request, { idempotencyKey: 'form-1' })
    expect(await client.wait(run.id, { signal: deadline() })).toMatchObject({ status: 'failed' })
    const idsBy = async (filter: object) => (await client.runs.list(filter)).data.map(({ id }) => id)
    expect(await idsBy({ idempotency_key: 'form-1' })).toEqual([run.id])
    expect(await idsBy({ idempotency_key: 'form-2' })).toEqual([])
    const again = await client.retry(run.id)
    expect(sent.filter((line) => line.endsWith('/retry'))).toHaveLength(2)
    expect(await client.wait(again.id, { signal: deadline() })).toMatchObject({
      answer: 'Now it works.',
      retry_of: run.id,
    })
    expect(await idsBy({ metadata: request.metadata })).toEqual([again.id, run.id])
    expect(await idsBy({ metadata: { order: 'SO 1042' } })).toEqual([])
    await expect(client.retry(again.id)).rejects.toMatchObject({ code: 'run_not_failed' })
  })

  test('repeats no request without a key, and an abort ends any wait', async ({ server }) => {
    const { bad, sent } = createBadFetch(Number.POSITIVE_INFINITY)
    const client = createClient({ url: server.url, token: adminToken, fetch: bad })
    await expect(client.cancel('run_none')).rejects.toMatchObject({
      code: 'server_unreachable',
      status: null,
    })
    expect(sent).toHaveLength(1)
    const stop = new AbortController()
    const reading = client.runs.get('run_none', { signal: stop.signal })
    stop.abort(new Error('enough'))
    await expect(reading).rejects.toThrow('enough')
  })

  test('calls a request that cannot be sent no failure of the server, and does not repeat it', async ({
    server,
  }) => {
    const { bad, sent } = createBadFetch(Number.POSITIVE_INFINITY)
    const client = createClient({ url: server.url, token: adminToken, fetch: bad })
    const request = { prompt: 'x', user_id: 'ann', metadata: { amount: 5n } }
    await expect(client.submit(request as never)).rejects.toThrow(/BigInt/)
    const other = createClient({ url: server.url, token: 'one\ntwo', fetch: bad })
    await expect(other.runs.list()).rejects.toThrow(TypeError)
    expect(sent).toHaveLength(0)
    for (const url of ['', 'localhost:8080', 'ftp://a', undefined])
      expect(() => createClient({ url } as never)).toThrow('url must be like http://localhost:8080')
  })

  test('uploads a file over connections that break, byte by byte as it was', async ({ server }) => {
    let patches = 0
    // of the first the half arrives, and the answers of both are lost
    const flaky: typeof fetch = async (url, init) => {
      if (init?.method !== 'PATCH' || ++patches > 2) return fetch(url, init)
      const half = (init.body as Blob).slice(0, 250_000)
      await fetch(url, patches === 1 ? { ...init, body: half } : init)
      throw new TypeError('fetch failed')
    }
    const client = createClient({
      url: server.url,
      token: adminToken,
      businessId: unique('up'),
      fetch: flaky,
    })
    const bytes = seededBytes(500_000)
    const seen: number[] = []
    const file = await client.files.upload(new Uint8Array(bytes), {
      name: '店.bin',
      onProgress: (count) => seen.push(count),
    })
    expect(file).toMatchObject({
      sha256: createHash('sha256').update(bytes).digest('hex'),
      bytes: bytes.length,
    })
    expect(seen).toEqual([250_000, 500_000])
    expect(patches).toBe(2)
    expect(await client.files.get(file.id)).toMatchObject({ name: '店.bin' })
    await client.files.delete(file.id)
  })

  test("relays events to a page's EventSource, from the last one that it has, without what it must not see", async ({
    server,
    model,
  }) => {
    say(model, { planner: [{ text: 'Hello.' }] })
    const client = createClient({ url: server.url, token: adminToken, businessId: unique('client') })
    const run = await client.submit({ prompt: 'Hello', user_id: 'ann' })
    // a product's own server, which has the token
    const product = createServer(async (incoming, outgoing) => {
      const request = new Request(`http://product${incoming.url}`, { headers: incoming.headers as never })
      const { status, headers, body } = client.relay({ run_id: run.id }, request, (event) =>
        event.event === 'todos' ? null : event,
      )
      outgoing.writeHead(status, Object.fromEntries(headers))
      for await (const chunk of body ?? []) outgoing.write(chunk)
      outgoing.end()
    })
    await new Promise<void>((resolve) => void product.listen(0, '127.0.0.1', resolve))
    close = () => product.close()
    const url = `http://127.0.0.1:${(product.address() as AddressInfo).port}/`
    const text = await (await fetch(url)).text()
    expect(text).toMatch(/^id: 1\nevent: action\n/m)
    expect(text).toMatch(/event: done\n/)
    expect(text).not.toContain('event: todos')
    const rest = await (await fetch(url, { headers: { 'last-event-id': '1' } })).text()
    expect(rest).not.toMatch(/^id: 1\nevent: action/m)
    expect(rest).toMatch(/^id: 2\nevent: action\n/m)
  })

  test('relays what the server refuses for good as an event `error` with its problem document', async ({
    server,
  }) => {
    const relayed = (client: ReturnType<typeof createClient>, id: string): Promise<string> =>
      client.relay({ run_id: id }, new Request('http://product/events')).text()
    const client = createClient({ url: server.url, token: adminToken, businessId: unique('client') })
    const text = await relayed(client, 'run_01hzzzzzzzzzzzzzzzzzzzzzzz')
    const [, data = ''] = /^event: error\ndata: (.*)\n\n$/.exec(text) ?? []
    expect(JSON.parse(data)).toMatchObject({ code: 'not_found', status: 404 })
    const refused = await relayed(createClient({ url: server.url, token: 'wrong' }), 'run_none')
    expect(refused).toMatch(/^event: error\ndata: .*"code":"unauthorized"/)
  })

  test('reaches a runtime that serveHttp serves, until that is closed', async ({ runtime }) => {
    const served = await serveHttp(runtime, { auth: 'required', adminToken })
    const url = `http://127.0.0.1:${served.port}`
    const businessId = unique('client')
    expect((await createClient({ url, token: adminToken, businessId }).runs.list()).data).toEqual([])
    await expect(createClient({ url }).runs.list()).rejects.toMatchObject({ code: 'unauthorized' })
    await served.close()
    await expect(createClient({ url }).cancel('run_none')).rejects.toMatchObject({
      code: 'server_unreachable',
    })
  })
})
