import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ResultDelta } from '../../models/ports/model-ports.ts'
import { MasonError } from '../../state/errors.ts'
import {
  type ChunkFormat,
  createChunkFormat,
  createCompletionHead,
  toChatCompletion,
} from './chat-completion.ts'
import { type ChatRequest, chatRequestSchema, toGatewayRequest } from './chat-request.ts'
import {
  answerByGateway,
  defineEndpointRoutes,
  describeOpenAIObject,
  type Endpoint,
  type GatewayResponse,
  modelCallRoute,
  openAIQuery,
  openGatewayCall,
} from './model-gateway.ts'
import { toOpenAIError } from './openai-error.ts'

const additions =
  '`reasoning_content` of the message is the reasoning, where the vendor shows it; the finish reason `unknown` is one of the vendor that has no name in the protocol; `usage` counts all requests to vendors that it took. There is one choice, without `logprobs`.'

/** POST /v1/chat/completions: any model of the category text or multimodal, whichever vendor and format it has. */
export default defineEndpointRoutes((app, endpoint) => {
  app.post('/v1/chat/completions', {
    ...modelCallRoute({
      id: 'createChatCompletion',
      summary: 'Calls a model of the registry, as in the OpenAI API',
      description: 'With `stream: true` the response is server-sent events and ends with `[DONE]`.',
      responses: {
        200: {
          description: 'A chat completion',
          schema: describeOpenAIObject('chat/object', additions),
          events: describeOpenAIObject('chat-streaming', additions),
        },
      },
      // a history of 50,000 messages with a few parts each
      maxValues: 400_000,
      passesNumbers: true,
    }),
    schema: { querystring: openAIQuery, body: chatRequestSchema },
    handler: (request, reply) => {
      if (request.body.stream === true) return stream(endpoint, request, reply)
      const gatewayRequest = toGatewayRequest(request.body)
      const call = openGatewayCall(endpoint, request, reply, { category: 'text' })
      return answerByGateway(call, gatewayRequest, (response) =>
        toChatCompletion(createCompletionHead(response.model), response),
      )
    },
  })
})

const stream = async (
  endpoint: Endpoint,
  request: FastifyRequest & { body: ChatRequest },
  reply: FastifyReply,
) => {
  const { body } = request
  const gatewayRequest = toGatewayRequest(body)
  const call = openGatewayCall(endpoint, request, reply, { category: 'text', oneShot: true })
  const format = createChunkFormat(
    createCompletionHead(body.model),
    body.stream_options?.include_usage === true,
  )
  const output = openChatStream(reply, format, endpoint)
  let sentAttempt: number | null = null
  let hasRestarted = false
  const onDelta = (delta: ResultDelta, attempt: number): void => {
    sentAttempt ??= attempt
    if (sentAttempt === attempt) output.write(delta)
    else hasRestarted = true
  }
  try {
    const response = await call.ask(gatewayRequest, onDelta)
    if (hasRestarted) throw new MasonError('model_unavailable', 'the response broke off and started again')
    output.end(response)
    return reply
  } catch (error) {
    if (!output.started) return call.endWithError(error)
    const sentError = call.toError(error)
    request.log.warn({ err: sentError }, 'a streamed response broke off')
    output.fail(toOpenAIError(sentError).body)
    return reply
  } finally {
    output.release()
    call.release()
  }
}

/**
 * The completion as it comes. Headers are sent with the first token, so that an error before it has a status of its own, or
 * with the first comment that keeps the connection open. What a slow client does not read is joined to one chunk, so that
 * it costs no more memory than the completion itself.
 */
const openChatStream = (reply: FastifyReply, format: ChunkFormat, { keepAliveMs, startStream }: Endpoint) => {
  let started = false
  let hasRole = false
  let text = ''
  let reasoning = ''

  /** Chunks of one turn of the event loop, sent by one write. */
  let chunks = ''
  const send = (): void => {
    if (chunks !== '' && !reply.raw.destroyed) reply.raw.write(chunks)
    chunks = ''
  }
  const write = (chunk: string): void => {
    if (!started) {
      started = true
      startStream(reply).on('drain', flush)
    }
    if (chunks === '') setImmediate(send)
    chunks += chunk
  }
  const end = (): void => {
    const last = chunks
    chunks = ''
    reply.raw.end(last)
  }
  const flush = (): void => {
    if (text === '' && reasoning === '') return
    const delta = {
      ...(!hasRole && { role: 'assistant' as const }),
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(text !== '' && { content: text }),
    }
    hasRole = true
    text = ''
    reasoning = ''
    write(format.delta(delta))
  }
  const timer = setInterval(() => {
    if (!reply.raw.writableNeedDrain) write(': keep-alive\n\n')
  }, keepAliveMs)

  return {
    /** Whether anything was sent: from then on an error can only end the stream. */
    get started() {
      return started
    },
    write(delta: Pick<ResultDelta, 'text' | 'reasoning'>): void {
      text += delta.text
      reasoning += delta.reasoning
      if (!reply.raw.writableNeedDrain) flush()
    },
    end(response: GatewayResponse): void {
      flush()
      const role = hasRole
        ? ''
        : format.delta({ role: 'assistant', content: response.result.tool_calls.length > 0 ? null : '' })
      write(role + format.end(response))
      end()
    },
    /** Ends the stream with an error, so that no client takes the part that came for the whole. */
    fail(body: unknown): void {
      flush()
      write(`data: ${JSON.stringify(body)}\n\n`)
      end()
    },
    /** Stops keeping the connection open; called in any case. */
    release: () => clearInterval(timer),
  }
}
