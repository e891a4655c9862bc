import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { ModelGateway } from '../../../src/models/ports/call-ports.ts'
import { emptyResult } from '../../../src/models/ports/model-ports.ts'
import { MasonError } from '../../../src/state/errors.ts'
import { eventually, serve } from '../../app/http/test-server.ts'

/** How responses are sent, with a gateway that each test scripts. */

type Ask = ModelGateway['ask']

const createResponse = (text: string): Awaited<ReturnType<Ask>> => ({
  result: { ...emptyResult, text, model: 'm' },
  model: 'm',
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, cached_tokens: 0, reasoning_tokens: 0 },
  attempts: [],
  key_id: null,
})

const serveAsk = async (ask: Ask, keepAliveMs = 15_000) => {
  const setup = await serve({ keepAliveMs })
  setup.fake.runtime.modelService = { ask, for: () => null as never, list: () => [] }
  return setup.server
}

const json = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], stream: true }
const readFrames = (text: string): string[] => text.split('\n\n').filter((frame) => frame !== '')
const readContent = (text: string): string =>
  readFrames(text)
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice(6)).choices?.[0]?.delta.content ?? '')
    .join('')

const waitForAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

test('a stream sends reasoning, text and finish reason, chunk by chunk', async () => {
  const server = await serveAsk(async (_target, _ask, _caller, onDelta) => {
    onDelta({ text: '', reasoning: 'Hm' }, 1)
    onDelta({ text: 'Hel', reasoning: '' }, 1)
    onDelta({ text: 'lo', reasoning: '' }, 1)
    return createResponse('Hello')
  })
  const reply = await server.call('POST', '/v1/chat/completions', { json })
  expect(reply.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  const frames = readFrames(reply.text)
  expect(frames.at(-1)).toBe('data: [DONE]')
  const chunks = frames.slice(0, -1).map((frame) => JSON.parse(frame.slice(6)))
  expect(chunks.map(({ choices }) => [choices[0].delta, choices[0].finish_reason])).toEqual([
    [{ role: 'assistant', reasoning_content: 'Hm' }, null],
    [{ content: 'Hel' }, null],
    [{ content: 'lo' }, null],
    [{}, 'stop'],
  ])
  expect(chunks[0]).toMatchObject({ object: 'chat.completion.chunk', model: 'm' })
  expect(chunks[0]).not.toHaveProperty('usage')
})

test('a stream asks for one attempt, and ends with an error where the call starts again', async () => {
  const server = await serveAsk(async (target, _ask, _caller, onDelta) => {
    expect(target).toEqual({ role: 'door', model: 'm', category: 'text', oneShot: true, patienceMs: 2000 })
    onDelta({ text: 'first', reasoning: '' }, 2)
    onDelta({ text: 'second', reasoning: '' }, 3)
    return createResponse('second')
  })
  const { status, text } = await server.call('POST', '/v1/chat/completions', { json })
  expect([status, readContent(text)]).toEqual([200, 'first'])
  expect(text).not.toContain('[DONE]')
  expect(JSON.parse(readFrames(text).at(-1)?.slice(6) ?? '')).toMatchObject({
    error: { code: 'model_unavailable' },
  })
})

test('comments keep a slow stream open, and an error after one is sent in the stream', async () => {
  const server = await serveAsk(async () => {
    await sleep(100)
    throw new MasonError('model_timeout', 'too slow')
  }, 10)
  const { status, text } = await server.call('POST', '/v1/chat/completions', { json })
  expect(status).toBe(200)
  expect(text).toMatch(
    /^(: keep-alive\n\n)+data: \{"error":\{"message":"too slow".*"code":"model_timeout"\}\}\n\n$/,
  )
})

test('a client that does not read costs no more memory than the text, and receives all of it in the end', async () => {
  const word = 'Z'.repeat(1000)
  const count = 20_000
  let sent = 0
  const server = await serveAsk(async (_target, _ask, _caller, onDelta) => {
    for (; sent < count; sent += 1) {
      onDelta({ text: word, reasoning: '' }, 1)
      if (sent % 100 === 0) await sleep(0)
    }
    return createResponse('')
  })
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  socket.pause()
  const body = JSON.stringify(json)
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  await eventually(() => sent === count)
  let text = ''
  for await (const part of socket) text += String(part)
  expect(text.split('Z').length - 1).toBe(20_000_000)
  expect(text).toContain('[DONE]')
  // far fewer frames than deltas: waiting deltas were joined
  expect(text.split('data: {').length).toBeLessThan(count / 2)
})

test('closing the server ends open responses, streamed or not', async () => {
  let calls = 0
  const server = await serveAsk(async (_target, ask, _caller, onDelta, signal) => {
    calls += 1
    if (ask.stream) onDelta({ text: 'started', reasoning: '' }, 1)
    return waitForAbort(signal)
  })
  const streamed = server.call('POST', '/v1/chat/completions', { json })
  const whole = server.call('POST', '/v1/chat/completions', { json: { ...json, stream: false } })
  await eventually(() => calls === 2)
  await server.close()
  expect((await streamed).text).toContain('"code":"shutting_down"')
  expect(await whole).toMatchObject({ status: 503, body: { error: { code: 'shutting_down' } } })
})

test('a client that disconnects aborts the call', async () => {
  let aborted = 0
  let calls = 0
  const server = await serveAsk(async (_target, _ask, _caller, _onDelta, signal) => {
    calls += 1
    await waitForAbort(signal).catch(() => undefined)
    aborted += 1
    throw signal.reason
  })
  for (const stream of [true, false]) {
    const controller = new AbortController()
    const failed = server
      .call('POST', '/v1/chat/completions', { json: { ...json, stream }, signal: controller.signal })
      .catch((error: unknown) => error)
    const before = calls
    await eventually(() => calls > before)
    controller.abort()
    expect(await failed).toBeInstanceOf(Error)
  }
  await eventually(() => aborted === 2)
})

test('an internal error reveals nothing but its code', async () => {
  const server = await serveAsk(async () => {
    throw new Error('an internal secret')
  })
  const { status, text, body } = await server.call('POST', '/v1/chat/completions', { json })
  expect([status, body.error.code, body.error.type]).toEqual([500, 'internal', 'server_error'])
  expect(text).not.toContain('secret')
})

test("what OpenAI has and this endpoint has not gets OpenAI's error, and a path of Mason a problem", async () => {
  const server = await serveAsk(async () => createResponse(''))
  for (const path of [
    '/v1/responses',
    '/v1/chat/sessions',
    '/v1/models/a/b',
    '/v1/vector_stores/1/files?x=1',
  ])
    expect(await server.call('POST', path, { json })).toMatchObject({
      status: 404,
      body: {
        error: {
          message: `there is nothing at ${path.split('?')[0]}; GET /openapi.json lists every path`,
          type: 'invalid_request_error',
          param: null,
          code: 'unknown_url',
        },
      },
    })
  for (const path of ['/v1/runs/run_1/none', '/admin/v1/none', '/none'])
    expect((await server.call('POST', path, { json })).body).toMatchObject({ code: 'not_found', status: 404 })
  const unknown = await server.call('GET', '/v1/models/none')
  expect(unknown.body.error).toMatchObject({ code: 'model_not_found', param: 'model' })
})

test("the OpenAPI document has the endpoint with OpenAI's errors, and another method gets one", async () => {
  const server = await serveAsk(async () => createResponse(''))
  const refusal = await server.call('GET', '/v1/chat/completions')
  expect([refusal.status, refusal.headers.get('allow')]).toEqual([405, 'POST'])
  expect(refusal.body.error).toMatchObject({ type: 'invalid_request_error', code: 'method_not_allowed' })
  const { body: document } = await server.call('GET', '/openapi.json')
  const operation = document.paths['/v1/chat/completions'].post
  const name = operation.responses['429'].$ref.replace('#/components/responses/', '')
  expect(document.components.responses[name].content).toEqual({
    'application/json': { schema: { $ref: '#/components/schemas/OpenAIError' } },
  })
  expect(document.paths['/v1/models/{id}'].get.operationId).toBe('getModel')
})
