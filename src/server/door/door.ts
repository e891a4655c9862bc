import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { isMasonError } from '../../state/errors.ts'
import { businessIdSchema } from '../../state/run-request.ts'
import { businessOf } from '../auth.ts'
import { invalidRequest } from '../check-request.ts'
import { HttpError } from '../problems.ts'
import type { RouteDoc, ServerContext } from '../route.ts'
import { openAIErrorSchema, sendOpenAIError } from './errors.ts'
import { type Caller, doorRole, type ModelService, type Wanted } from './service.ts'

/** What the routes of the door have in common. CONTRACT section 8. */

/** Clients for other clouds add parameters of their own, such as `api-version`. */
export const doorQuery = z.object({ business_id: businessIdSchema.optional() })

/** Errors of the door have OpenAI's shape, also those of steps before its handlers. */
export const doorRoute = (doc: Omit<RouteDoc, 'tag'>) => ({
  config: { doc: { tag: 'models', errorBody: openAIErrorSchema, ...doc } },
  errorHandler: sendOpenAIError,
})

export const wantedOf = (model: string, category: 'text' | 'embedding'): Wanted => ({
  role: doorRole,
  model,
  category,
})

export type Asking = {
  caller: Caller
  /** Aborts when the client leaves or the server closes. */
  signal: AbortSignal
  over: {
    /** What is told when asking failed with this: an abort is not told as such. */
    faultOf(error: unknown): unknown
    /** Throws what is to be answered, or answers nothing when the client has left. */
    unanswered(error: unknown): FastifyReply
    release(): void
  }
}

/** On behalf of whom a request asks, and until when. `release` is to be called in any case. */
export const askAs = (
  { open }: ServerContext,
  { caller, query, body }: FastifyRequest,
  reply: FastifyReply,
  user: string | null | undefined,
): Asking => {
  const { signal, release } = open.signalOf(reply.raw)
  const faultOf = (error: unknown): unknown =>
    signal.aborted ? new HttpError('shutting_down', 'this server is about to stop') : error
  return {
    caller: {
      business_id: caller === null ? 'default' : businessOf(caller, query, body),
      user_id: user ?? null,
      run_id: null,
    },
    signal,
    over: {
      faultOf,
      unanswered(error) {
        // nobody is there to be answered
        if (signal.aborted && !open.closing) return reply.hijack()
        throw faultOf(error)
      },
      release,
    },
  }
}

/** A model that cannot do what was asked of it is a fault of the request, not of the models. */
export const mended = (models: ModelService, { model, category }: Wanted, error: unknown): unknown => {
  if (!isMasonError(error, 'no_model_available')) return error
  const known = models.list().find(({ name }) => name === model)
  const isMisused = known !== undefined && (known.category === 'embedding') !== (category === 'embedding')
  return isMisused
    ? invalidRequest([{ pointer: '/model', detail: `"${model}" is a model for ${known.category}` }])
    : error
}
