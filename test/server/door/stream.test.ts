import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { ModelService } from '../../../src/infra/models/call-ports.ts'
import { emptyResult } from '../../../src/infra/models/openai/reply.ts'
import { MasonError } from '../../../src/state/errors.ts'
import { eventually, serve } from '../setting.ts'

/** How answers go over the wire, with a call path that does as it is told. */

type Ask = ModelService['ask']

const answered = (text: string): Awaited<ReturnType<Ask>> => ({
  result: { ...emptyResult, text, model: 'm' },
  model: 'm',
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, cached_tokens: 0, reasoning_tokens: 0 },
  attempts: [],
})

const serveAsk = async (ask: Ask, keepAliveMs = 15_000) => {
  const setting = await serve({ keepAliveMs })
  setting.fake.runtime.modelService = { ask, for: () => null as never, list: () => [] }
  return setting.server
}

const json = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], stream: true }
const framesOf = (text: string): string[] => text.split('\n\n').filter((frame) => frame !== '')
const contentOf = (text: string): string =>
  framesOf(text)
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice(6)).choices?.[0]?.delta.content ?? '')
    .join('')

const abortOf = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

test('a whole stream, frame by frame', async () => {
  const server = await serveAsk(async (_wanted, _ask, _caller, onDelta) => {
    onDelta({ text: '', reasoning: 'Hm' }, 1)
    onDelta({ text: 'Hel', reasoning: '' }, 1)
    onDelta({ text: 'lo', reasoning: '' }, 1)
    return answered('Hello')
  })
  const reply = await server.call('POST', '/v1/chat/completions', { json })
  expect(reply.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  const frames = framesOf(reply.text)
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

test('the call is asked not to begin twice, and where it does the stream ends with an error', async () => {
  const server = await serveAsk(async (wanted, _ask, _caller, onDelta) => {
    expect(wanted).toEqual({ role: 'door', model: 'm', category: 'text', oneShot: true })
    onDelta({ text: 'first', reasoning: '' }, 2)
    onDelta({ text: 'second', reasoning: '' }, 3)
    return answered('second')
  })
  const { status, text } = await server.call('POST', '/v1/chat/completions', { json })
  expect([status, contentOf(text)]).toEqual([200, 'first'])
  expect(text).not.toContain('[DONE]')
  expect(JSON.parse(framesOf(text).at(-1)?.slice(6) ?? '')).toMatchObject({
    error: { code: 'model_unavailable' },
  })
})

test('comments keep a slow answer open; a fault after one is told in the stream', async () => {
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

test('a client that does not read costs no more than the text, and gets all of it in the end', async () => {
  const piece = 'Z'.repeat(1000)
  const count = 20_000
  let told = 0
  const server = await serveAsk(async (_wanted, _ask, _caller, onDelta) => {
    for (; told < count; told += 1) {
      onDelta({ text: piece, reasoning: '' }, 1)
      if (told % 100 === 0) await sleep(0)
    }
    return answered('')
  })
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  socket.pause()
  const body = JSON.stringify(json)
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  await eventually(() => told === count)
  let text = ''
  for await (const part of socket) text += String(part)
  expect(text.split('Z').length - 1).toBe(20_000_000)
  expect(text).toContain('[DONE]')
  // far fewer frames than pieces: what waited was put together
  expect(text.split('data: {').length).toBeLessThan(count / 2)
})

test('closing the server ends open answers, streamed or not', async () => {
  let asked = 0
  const server = await serveAsk(async (_wanted, ask, _caller, onDelta, signal) => {
    asked += 1
    if (ask.stream) onDelta({ text: 'begun', reasoning: '' }, 1)
    return abortOf(signal)
  })
  const streamed = server.call('POST', '/v1/chat/completions', { json })
  const whole = server.call('POST', '/v1/chat/completions', { json: { ...json, stream: false } })
  await eventually(() => asked === 2)
  await server.close()
  expect((await streamed).text).toContain('"code":"shutting_down"')
  expect(await whole).toMatchObject({ status: 503, body: { error: { code: 'shutting_down' } } })
})

test('a client that leaves aborts the call, and nothing is said of it', async () => {
  let aborted = 0
  let asked = 0
  const server = await serveAsk(async (_wanted, _ask, _caller, _onDelta, signal) => {
    asked += 1
    await abortOf(signal).catch(() => undefined)
    aborted += 1
    throw signal.reason
  })
  for (const stream of [true, false]) {
    const controller = new AbortController()
    const left = server
      .call('POST', '/v1/chat/completions', { json: { ...json, stream }, signal: controller.signal })
      .catch((error: unknown) => error)
    const before = asked
    await eventually(() => asked > before)
    controller.abort()
    expect(await left).toBeInstanceOf(Error)
  }
  await eventually(() => aborted === 2)
})

test('our own faults tell nothing but that they are ours', async () => {
  const server = await serveAsk(async () => {
    throw new Error('a secret of ours')
  })
  const { status, text, body } = await server.call('POST', '/v1/chat/completions', { json })
  expect([status, body.error.code, body.error.type]).toEqual([500, 'internal', 'server_error'])
  expect(text).not.toContain('secret')
})

test('the document shows the door, with errors of its own shape; another method is one too', async () => {
  const server = await serveAsk(async () => answered(''))
  const refused = await server.call('GET', '/v1/chat/completions')
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'POST'])
  expect(refused.body.error).toMatchObject({ type: 'invalid_request_error', code: 'method_not_allowed' })
  const { body: document } = await server.call('GET', '/openapi.json')
  const operation = document.paths['/v1/chat/completions'].post
  expect(operation.responses['429'].content).toEqual({
    'application/json': { schema: { $ref: '#/components/schemas/OpenAIError' } },
  })
  expect(document.paths['/v1/models/{id}'].get.operationId).toBe('getModel')
})
