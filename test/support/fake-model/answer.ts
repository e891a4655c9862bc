import type { ServerResponse } from 'node:http'
import { setTimeout as pause, setImmediate } from 'node:timers/promises'
import type { Usage } from '../../../src/state/runtime-state.ts'
import { chunksOf, completionOf } from './completion.ts'
import type { FakeReply, FakeRequest, StatusFailure } from './types.ts'

/** Sends bytes and waits until they left this process, so that each call is a chunk of its own. */
const send = async (response: ServerResponse, data: string | Uint8Array): Promise<void> => {
  if (response.destroyed) return
  await new Promise<void>((resolve) => {
    response.once('close', resolve)
    response.write(data, () => {
      response.off('close', resolve)
      resolve()
    })
  })
  await setImmediate()
}

export const sendJson = (
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void => {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
}

/** An error body in OpenAI's shape. */
export const openaiError = (message: string, type: string, code: string | null = null) => ({
  error: { message, type, param: null, code },
})

const sendStatus = (response: ServerResponse, { status, body, headers }: StatusFailure): void =>
  sendJson(response, status, body ?? openaiError(`a failure with status ${status}`, 'fake_failure'), headers)

/** An event of the stream, and the usage it tells. */
type Event = { text: string; usage: Usage | null }

const event = (data: Record<string, unknown>): Event => ({
  text: `data: ${JSON.stringify(data)}\n\n`,
  usage: usageIn(data),
})

const usageIn = ({ usage }: Record<string, unknown>): Usage | null => (usage as Usage | undefined) ?? null

/** Faults that need no reply of the model. Returns whether it was one. */
const failEarly = (reply: FakeReply, response: ServerResponse): boolean => {
  const { failure } = reply
  if (typeof failure === 'object') {
    sendStatus(response, failure)
    return true
  }
  switch (failure) {
    case 'stall_headers':
      return true
    case 'stall_body':
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      return true
    case 'reset':
      response.socket?.resetAndDestroy()
      return true
    case 'garbage':
      sendJson(response, 200, '<html><body>Welcome to nginx</body></html>', { 'content-type': 'text/html' })
      return true
    default:
      return false
  }
}

/** Comments until the client hangs up: bytes keep coming, an answer never does. */
const drip = async (response: ServerResponse): Promise<void> => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  while (!response.destroyed) {
    await send(response, ': wait\n\n')
    await pause(100)
  }
}

/** Streams the events; the failures in the middle of a stream come after its second event, the first with text. */
const stream = async (
  reply: FakeReply,
  events: readonly Event[],
  request: FakeRequest,
  response: ServerResponse,
): Promise<void> => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  response.socket?.setNoDelay(true)
  const { failure } = reply
  if (failure === 'split_utf8') {
    const bytes = Buffer.from(events.map((one) => one.text).join(''))
    let sent = 0
    for (; sent < bytes.length && !response.destroyed; sent++)
      await send(response, bytes.subarray(sent, sent + 1))
    // a client that disconnects before the end received nothing
    if (sent === bytes.length)
      request.reportedUsage = events.findLast(({ usage }) => usage !== null)?.usage ?? null
  }
  const whole = failure === 'split_utf8' ? [] : events
  const isCut = failure === 'cut' || failure === 'cut_after_usage'
  const early = isCut || failure === 'stall_after_first_chunk' || failure === 'garbage_sse'
  for (const { text, usage } of early ? whole.slice(0, 2) : whole) {
    if (response.destroyed) break
    await send(response, text)
    request.reportedUsage = usage ?? request.reportedUsage
  }
  if (failure === 'stall_after_first_chunk' || failure === 'never_closes') return
  if (isCut) response.socket?.destroy()
  else response.end(failure === 'garbage_sse' ? 'data: {"choices": [{"delta\n\n' : undefined)
}

/** Writes one reply, failures included. Resolves when it is written, not when it is read. */
export const answer = async (
  reply: FakeReply,
  request: FakeRequest,
  response: ServerResponse,
): Promise<void> => {
  if (failEarly(reply, response)) return
  if (reply.failure === 'drip') return drip(response)
  const { body, nth } = request
  const options = body.stream_options as { include_usage?: boolean } | undefined
  const context = {
    model: typeof body.model === 'string' ? body.model : 'fake-model',
    nth,
    wantsUsage: options?.include_usage === true,
  }
  if (body.stream !== true || reply.failure === 'plain_json') {
    const completion = completionOf(reply, context)
    request.reportedUsage = usageIn(completion)
    return sendJson(response, 200, completion)
  }
  const events = chunksOf(reply, context).map(event)
  if (reply.failure !== 'end_without_finish') events.push({ text: 'data: [DONE]\n\n', usage: null })
  await stream(reply, events, request, response)
}
