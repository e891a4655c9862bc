import type { FastifyReply, FastifyRequest } from 'fastify'
import { MasonError } from '../../state/errors.ts'
import type { App, ServerContext } from '../route.ts'
import { completionOf, createChunks, newHead } from './chat-answer.ts'
import { type ChatRequest, chatAskOf, chatRequestSchema } from './chat-request.ts'
import { openChatStream } from './chat-stream.ts'
import { type Asking, askAs, doorQuery, doorRoute, mended, wantedOf } from './door.ts'
import { openAIErrorOf } from './errors.ts'

/** POST /v1/chat/completions: any model that converses, whichever vendor and shape is behind it. */
export const chatRoutes = (app: App, server: ServerContext): void => {
  app.post('/v1/chat/completions', {
    ...doorRoute({
      id: 'createChatCompletion',
      summary: 'Asks a model of the registry, as OpenAI has it',
      description: 'With `stream: true` the answer comes as server-sent events and ends with `[DONE]`.',
      role: 'submit',
      answers: { 200: { description: 'A chat completion', type: 'application/json' } },
      problems: ['malformed_json', 'payload_too_large', 'unsupported_media_type', 'not_found'],
    }),
    schema: { querystring: doorQuery, body: chatRequestSchema },
    handler: async (request, reply) => {
      const asking = askAs(server, request, reply, request.body.user)
      return request.body.stream === true
        ? stream(server, asking, request.body, reply, request)
        : complete(server, asking, request.body)
    },
  })
}

const complete = async ({ runtime }: ServerContext, { caller, signal, over }: Asking, body: ChatRequest) => {
  const { modelService } = runtime
  const wanted = wantedOf(body.model, 'text')
  try {
    const answered = await modelService.ask(wanted, chatAskOf(body), caller, () => undefined, signal)
    return completionOf(newHead(answered.model), answered)
  } catch (error) {
    return over.unanswered(mended(modelService, wanted, error))
  } finally {
    over.release()
  }
}

const stream = async (
  { runtime, keepAliveMs }: ServerContext,
  { caller, signal, over }: Asking,
  body: ChatRequest,
  reply: FastifyReply,
  request: FastifyRequest,
) => {
  const { modelService } = runtime
  const wanted = { ...wantedOf(body.model, 'text'), oneShot: true }
  const chunks = createChunks(newHead(body.model), body.stream_options?.include_usage === true)
  const out = openChatStream(reply, chunks, keepAliveMs)
  let shown: number | null = null
  let begunAnew = false
  const onDelta = (delta: { text: string; reasoning: string }, attempt: number): void => {
    shown ??= attempt
    if (shown === attempt) out.say(delta)
    else begunAnew = true
  }
  try {
    const answered = await modelService.ask(wanted, chatAskOf(body), caller, onDelta, signal)
    if (begunAnew) throw new MasonError('model_unavailable', 'the answer broke off and began anew')
    out.end(answered)
    return reply
  } catch (error) {
    if (!out.started) return over.unanswered(mended(modelService, wanted, error))
    const shownError = over.faultOf(error)
    request.log.warn({ err: shownError }, 'a streamed answer broke off')
    out.fail(openAIErrorOf(shownError).body)
    return reply
  } finally {
    out.release()
    over.release()
  }
}
