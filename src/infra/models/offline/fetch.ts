import { randomUUID } from 'node:crypto'
import { offlineModel } from './name.ts'
import { contentText, isRecord, messagesOf } from './read-request.ts'
import { type OfflineReply, reply } from './reply.ts'

/** The offline model behind the OpenAI-compatible interface, for clients that take a custom fetch. */

type Usage = { prompt_tokens: number; completion_tokens: number; total_tokens: number }

/** An estimate, four characters a token, rounded up; a rules engine has no tokens of its own. */
const tokens = (text: string): number => Math.ceil(text.length / 4)

const usageOf = (body: unknown, answer: OfflineReply): Usage => {
  const asked = messagesOf(body).map(
    (message) =>
      contentText(message.content) + (message.tool_calls ? JSON.stringify(message.tool_calls) : ''),
  )
  const offered = isRecord(body)
    ? JSON.stringify(body.tools ?? '') + JSON.stringify(body.response_format ?? '')
    : ''
  const prompt_tokens = tokens(asked.join('') + offered)
  const completion_tokens = tokens(
    answer.text + answer.tool_calls.map((call) => call.name + call.arguments).join(''),
  )
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
}

const json = (value: unknown, status = 200): Response =>
  new Response(JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json', 'x-request-id': `req_${randomUUID()}` },
  })

const failure = (status: number, message: string, code: string, param: string | null = null): Response =>
  json({ error: { message, type: 'invalid_request_error', param, code } }, status)

type Head = { id: string; created: number; model: string }

const toolCallsOf = (answer: OfflineReply) =>
  answer.tool_calls.map((call) => ({
    id: `call_${randomUUID().replaceAll('-', '')}`,
    type: 'function',
    function: call,
  }))

const completion = (head: Head, answer: OfflineReply, usage: Usage): Response => {
  const calls = toolCallsOf(answer)
  const message = {
    role: 'assistant',
    content: answer.text === '' ? null : answer.text,
    refusal: null,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  }
  const choice = {
    index: 0,
    message,
    logprobs: null,
    finish_reason: calls.length > 0 ? 'tool_calls' : 'stop',
  }
  return json({ ...head, object: 'chat.completion', choices: [choice], usage })
}

/** Text in pieces at word borders, so that a stream shows as one. */
const piecesOf = (text: string): string[] => text.match(/[\s\S]{1,60}(?=\s|$)|[\s\S]{1,60}/g) ?? []

const streamed = (head: Head, answer: OfflineReply, usage: Usage): Response => {
  const chunk = (delta: unknown, finish_reason: string | null = null) => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    usage: null,
  })
  const calls = toolCallsOf(answer)
  const chunks: unknown[] = [
    chunk({ role: 'assistant', content: '' }),
    ...piecesOf(answer.text).map((content) => chunk({ content })),
    ...calls.map((call, index) => chunk({ tool_calls: [{ index, ...call }] })),
    chunk({}, calls.length > 0 ? 'tool_calls' : 'stop'),
    { ...head, object: 'chat.completion.chunk', choices: [], usage },
  ]
  const encoder = new TextEncoder()
  const events = [...chunks.map((value) => `data: ${JSON.stringify(value)}\n\n`), 'data: [DONE]\n\n'].values()
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const next = events.next()
      if (next.done) controller.close()
      else controller.enqueue(encoder.encode(next.value))
    },
  })
  return new Response(stream, {
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
  })
}

const chat = async (request: Request): Promise<Response> => {
  let body: unknown
  try {
    body = JSON.parse(await request.text())
  } catch {
    return failure(400, 'The body is not valid JSON.', 'invalid_json')
  }
  if (!isRecord(body) || !Array.isArray(body.messages) || body.messages.length === 0)
    return failure(400, 'messages must be a list of at least one message.', 'invalid_messages', 'messages')
  const answer = reply(body, request.headers.get('x-mason-role') ?? '')
  const head: Head = {
    id: `chatcmpl-${randomUUID()}`,
    created: Math.floor(Date.now() / 1000),
    model: offlineModel,
  }
  const usage = usageOf(body, answer)
  return body.stream === true ? streamed(head, answer, usage) : completion(head, answer, usage)
}

/** A fetch that answers POST …/chat/completions and GET …/models itself and never opens a connection. */
export const createOfflineFetch = (): typeof fetch => async (input, init) => {
  const request = new Request(input, init)
  request.signal.throwIfAborted()
  const path = new URL(request.url).pathname
  if (request.method === 'POST' && path.endsWith('/chat/completions')) return chat(request)
  const model = { id: offlineModel, object: 'model', created: 0, owned_by: 'mason' }
  if (request.method === 'GET' && path.endsWith('/models')) return json({ object: 'list', data: [model] })
  if (request.method === 'GET' && path.endsWith(`/models/${offlineModel}`)) return json(model)
  return failure(
    404,
    `The offline model serves POST /chat/completions and GET /models, not ${request.method} ${path}.`,
    'not_found',
  )
}
