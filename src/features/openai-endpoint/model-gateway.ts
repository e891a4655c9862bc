import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { emptyCanonicalRequest } from '../../models/call/models-port.ts'
import type { ModelGateway } from '../../models/ports/call-ports.ts'
import { HttpError } from '../../routes/problems.ts'
import type { App, RouteDoc, RouteServer } from '../../routes/route.ts'
import { isMasonError } from '../../state/errors.ts'
import { createFieldsError, createPlainTextSchema } from '../../state/resource-schema.ts'
import { requestBusinessSchema } from '../../state/run-request.ts'
import { budgetCheckRef, modelGatewayRef } from '../core.ref.ts'
import { defineRoutes, type Needed } from '../definitions.ts'
import { openAIErrorSchema, sendOpenAIError } from './openai-error.ts'

type GatewayArguments = Parameters<ModelGateway['ask']>
type GatewayTarget = GatewayArguments[0]
type GatewayCaller = GatewayArguments[2]

/** What the gateway is asked: messages or inputs, tools and parameters. */
export type GatewayRequest = GatewayArguments[1]
/** One message of a conversation. */
export type GatewayMessage = GatewayRequest['messages'][number]
/** The result of a call, with the model that answered and its usage. */
export type GatewayResponse = Awaited<ReturnType<ModelGateway['ask']>>

/** The role of calls from this endpoint in the ledger and in the header `x-mason-role`: a stored value. */
const endpointRole = 'door'

/** A request of this endpoint with empty fields. */
export const emptyGatewayRequest: GatewayRequest = { ...emptyCanonicalRequest, role: endpointRole }

/** The query of every route. Unknown parameters are ignored: clients for other clouds add some, such as `api-version`. */
export const openAIQuery = z.object({ business_id: requestBusinessSchema.optional() })

/** The model of a request. */
export const modelAliasSchema = z.string().min(1).max(200).describe('The alias of a model of the registry')
/** The user of a request. */
export const userSchema = createPlainTextSchema(200)
  .min(1)
  .describe('On behalf of this user, whose grants count')

/** A response that OpenAI's reference describes; `more` says what Mason adds or leaves out. */
export const describeOpenAIObject = (reference: string, more: string) =>
  z.looseObject({}).describe(`${more} The rest: https://platform.openai.com/docs/api-reference/${reference}`)

/** The options of every route. Errors have OpenAI's shape, also those before the handler. Contract section 8. */
export const openAIRoute = (doc: Omit<RouteDoc, 'tag'>) => ({
  config: { doc: { tag: 'models', errorBody: openAIErrorSchema, ...doc } },
  errorHandler: sendOpenAIError,
})

/** Those of a route that calls the model which its body names. */
export const modelCallRoute = (doc: Omit<RouteDoc, 'tag' | 'role' | 'problems'>) =>
  openAIRoute({ ...doc, role: 'submit', problems: ['not_found'] })

const needs = { models: modelGatewayRef, checkBudgets: budgetCheckRef }

/** What the routes of this endpoint work with. */
export type Endpoint = RouteServer & Needed<typeof needs>

/** Routes that get an `Endpoint`. */
export const defineEndpointRoutes = (add: (app: App, endpoint: Endpoint) => void) =>
  defineRoutes({ needs, add: (app, needed, server) => add(app, { ...server, ...needed }) })

/** The business and user of a request; without authentication the business is `default`. */
export const readGatewayCaller = (
  { callerOf }: Pick<Endpoint, 'callerOf'>,
  request: FastifyRequest,
  user: string | null | undefined,
): GatewayCaller => {
  const { business_id, token_id } = callerOf(request)
  return { business_id, token_id, user_id: user ?? null, run_id: null }
}

/** Prepares a call of the model that a request names, on behalf of its caller and user. Call `release` in any case. */
export const openGatewayCall = (
  endpoint: Endpoint,
  request: FastifyRequest & { body: { model: string; user?: string | null | undefined } },
  reply: FastifyReply,
  options: { category: string; oneShot?: true },
) => {
  const { open, models, maxWaitMs } = endpoint
  const { signal, release } = open.abortSignal(reply.raw)
  const { model, user } = request.body
  const target = { role: endpointRole, model, patienceMs: maxWaitMs, ...options }
  const toError = (error: unknown): unknown =>
    signal.aborted ? new HttpError('shutting_down', 'this server is about to stop') : error
  return {
    /** Its signal aborts when the client disconnects or the server closes. */
    async ask(gatewayRequest: GatewayRequest, onDelta: GatewayArguments[3] = () => undefined) {
      const caller = readGatewayCaller(endpoint, request, user)
      await endpoint.checkBudgets(caller)
      return models.ask(target, gatewayRequest, caller, onDelta, signal)
    },
    /** The error to send for this one: an abort is sent as `shutting_down`. */
    toError,
    /** Throws the error to send, or sends nothing when the client has disconnected. */
    endWithError(error: unknown): FastifyReply {
      if (signal.aborted && !open.closing) return reply.hijack()
      throw toError(toRequestError(models, target, error))
    },
    release,
  }
}

/** The body made of the model's response, or the error of the call; closes the call. */
export const answerByGateway = async <Body>(
  call: ReturnType<typeof openGatewayCall>,
  request: GatewayRequest,
  toBody: (response: GatewayResponse) => Body,
) => {
  try {
    return toBody(await call.ask(request))
  } catch (error) {
    return call.endWithError(error)
  } finally {
    call.release()
  }
}

/** Models for chat replace each other. */
const toKind = (category: string): string => (/^(reasoning|multimodal)$/.test(category) ? 'text' : category)

/** `invalid_request` in place of `no_model_available` for a model of another category than the request needs. */
const toRequestError = (
  models: Endpoint['models'],
  { model, category }: GatewayTarget,
  error: unknown,
): unknown => {
  if (!isMasonError(error, 'no_model_available')) return error
  const known = models.list().find(({ name }) => name === model)
  const isMisused =
    known !== undefined && category !== undefined && toKind(known.category) !== toKind(category)
  return isMisused
    ? createFieldsError({ pointer: '/model', detail: `"${model}" is a model for ${known.category}` })
    : error
}
