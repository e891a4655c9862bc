import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { sha256 } from '../../infra/lib/ids.ts'
import { toProblemResponse } from '../../routes/problems.ts'
import { createDocs, respondsWith } from '../../routes/route.ts'
import { MasonError } from '../../state/errors.ts'
import { businessIdSchema, idSchema } from '../../state/run-request.ts'
import { businessRunsRef, databaseRef, jobPollRef, mandateProblemRef, serverAddressRef } from '../core.ref.ts'
import { defineRoutes, optional } from '../definitions.ts'
import { agentCardsRef, agentPushesRef } from './a2a.ref.ts'
import type { AgentCall } from './server/handler.ts'
import type { AgentResponse } from './server/rpc.ts'
import { listAnswers } from './server/task-answers.ts'

const describe = createDocs('a2a')
const agentParams = z.strictObject({ business_id: businessIdSchema.describe('The business of the agent') })
const reference = 'Bodies are those of the protocol: https://a2a-protocol.org/latest/specification/'
const exampleMessage = { messageId: '4b1c', role: 'ROLE_USER', parts: [{ text: 'Which orders are late?' }] }
const bodySchema = z.unknown().meta({
  description: 'A request of JSON-RPC 2.0',
  examples: [{ jsonrpc: '2.0', id: 1, method: 'GetExtendedAgentCard', params: {} }],
})
const restBodySchema = z.unknown().meta({
  description: 'A request of the operation',
  examples: [{ message: exampleMessage, configuration: { returnImmediately: true } }],
})
const answerSchema = z.json().meta({ description: 'A response of the protocol' })
const cardSchema = z.json().meta({ description: 'An agent card of the protocol' })

/** The tags of If-None-Match; weak ones count like strong ones: https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2 */
const listTags = (header: string): string[] => header.split(',').map((tag) => tag.trim().replace(/^W\//, ''))

/** With the version of a client that sends it in the query: https://a2a-protocol.org/latest/specification/#361-client-responsibilities */
const readHeaders = ({ headers, query }: Pick<FastifyRequest, 'headers' | 'query'>) => ({
  'a2a-version': (query as { 'A2A-Version'?: string })['A2A-Version'],
  ...headers,
})

const throwNoCard = (businessId: string): never => {
  throw new MasonError('not_found', `the business "${businessId}" has no agent card, so it serves no A2A`, {
    remedy: 'PUT /admin/v1/businesses/{id}/agent-card with the admin token',
  })
}

/** Codes of JSON-RPC for a body that cannot be read: https://www.jsonrpc.org/specification#error_object */
const rpcCodes = { malformed_json: -32700, invalid_request: -32600, unsupported_media_type: -32005 } as const

type BodyError = { code: keyof typeof rpcCodes; message: string }
const readBodyError = (thrown: unknown): BodyError | null => {
  const { code, detail } = toProblemResponse(thrown).problem
  return code in rpcCodes ? { code: code as BodyError['code'], message: detail } : null
}

type SendError = (error: unknown, request: FastifyRequest, reply: FastifyReply) => void

const createRpcError =
  (sendProblem: SendError): SendError =>
  (thrown, request, reply) => {
    const error = readBodyError(thrown)
    if (!error) return sendProblem(thrown, request, reply)
    const { code, message } = error
    void reply.code(200).send({ jsonrpc: '2.0', id: null, error: { code: rpcCodes[code], message } })
  }

/** It returns the reply, as every async handler must: one that returns before the response is out sends a second one. */
const createRestError =
  (sendProblem: SendError) =>
  async (thrown: unknown, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const error = readBodyError(thrown)
    if (!error) {
      sendProblem(thrown, request, reply)
      return reply
    }
    const { '*': path = '' } = request.params as { '*'?: string }
    const { status, body } = (await import('./server/rest.ts')).toBodyError(path, error)
    return reply.code(status).type('application/json').send(JSON.stringify(body))
  }

/** The agent of each business for other agents, by the A2A protocol: JSON-RPC and HTTP, versions 1.0 and 0.3. */
export default defineRoutes({
  needs: {
    cards: agentCardsRef,
    pushes: agentPushesRef,
    database: databaseRef,
    runsOf: businessRunsRef,
    pollJob: jobPollRef,
    address: serverAddressRef,
    findMandateProblem: optional(mandateProblemRef),
  },
  add(app, { cards, pushes, database, runsOf, pollJob, address, findMandateProblem }, server) {
    const readCard = async (businessId: string) => {
      const row = (await cards.read(businessId)) ?? throwNoCard(businessId)
      // the SDK takes a quarter of a second to load: nothing of it is before the first request of another agent
      const { toAgentCard } = await import('./server/card.ts')
      const { card, ...served } = row
      return { card: toAgentCard(card, businessId, address.origin), scenario: card.scenario, ...served }
    }

    /** Answers a request of another agent. What is no error of the protocol is a problem, as everywhere. */
    const answer = async (
      request: FastifyRequest,
      reply: FastifyReply,
      named: { business_id: string },
      handle: (call: AgentCall) => Promise<AgentResponse>,
    ): Promise<FastifyReply> => {
      const { business_id: businessId, token_id, kind } = server.callerOf(request, named)
      const { card, scenario } = await readCard(businessId)
      const { readExtensions } = await import('./server/extensions.ts')
      const { signal, release } = server.open.abortSignal(reply.raw)
      let failure: unknown
      try {
        const result = await handle({
          business: runsOf(businessId),
          businessId,
          pushes,
          listAnswers: (runIds) => listAnswers(database, businessId, runIds),
          caller: token_id ?? kind,
          card,
          scenario,
          extensions: readExtensions(request.headers),
          findMandateProblem,
          entry: server.toEntry(request, reply),
          signal,
          onMistyped: (error) => request.log.warn({ err: error }, 'a request of an agent could not be read'),
          onError: (error) => {
            failure ??= error
          },
        })
        if (signal.aborted && !server.open.closing) return reply.hijack()
        if (failure) throw failure
        reply.code(result.status).headers(result.headers)
        if ('events' in result) {
          await server.sendTexts(reply, () => result.events)
          return reply
        }
        if (result.body === undefined) return reply.send()
        return reply.type('application/json').send(JSON.stringify(result.body))
      } finally {
        release()
      }
    }

    const sendCard = async (businessId: string, headers: FastifyRequest['headers'], reply: FastifyReply) => {
      const { card, payload, signatures, updated_at } = await readCard(businessId)
      const { toCardJson, toPayload } = await import('./server/card.ts')
      const { readVersion } = await import('./server/rpc.ts')
      const current = await toPayload(card)
      const isCurrent = JSON.stringify(payload) === JSON.stringify(current)
      // a new card, or a new address of this server: it is served unsigned until the executor has signed it
      if (!isCurrent) await cards.sign(businessId, current)
      // a client that names no version is one of the current one: those of 0.3 name theirs
      const version = headers['a2a-version'] ? readVersion(headers) : '1.0'
      const known = isCurrent ? signatures : {}
      const text = JSON.stringify(await toCardJson(card, version, known))
      const etag = `"${sha256(text)}"`
      // its signatures are a change of their own, which has no time: that of the second after the card's
      const seconds = Math.floor(updated_at.getTime() / 1000) + Number(Object.keys(known).length > 0)
      const modified = new Date(seconds * 1000).toUTCString()
      reply.headers({
        'cache-control': `public, max-age=${isCurrent ? 60 : 1}`,
        vary: 'A2A-Version',
        etag,
        'last-modified': modified,
      })
      const { 'if-none-match': tags, 'if-modified-since': since } = headers
      // a time of another card is no time of this one, also where it is later
      const isKnown =
        tags === undefined ? since === modified : listTags(tags).some((tag) => [etag, '*'].includes(tag))
      return isKnown ? reply.code(304).send() : reply.type('application/json; charset=utf-8').send(text)
    }
    const cardDoc = {
      description: `In the version that the header A2A-Version names; without it, that of 1.0. ${reference}`,
      responses: {
        200: {
          description: 'The card',
          schema: cardSchema,
          headers: {
            etag: 'Of the card in this version',
            'last-modified': 'When it, or its signatures, changed',
          },
        },
        304: { description: 'If-None-Match or If-Modified-Since names this card' },
      },
    }
    app.get('/.well-known/agent-card.json', {
      config: describe(null, 'getDefaultCard', 'Returns the agent card of the business `default`', {
        ...cardDoc,
        problems: ['not_found'],
      }),
      handler: (request, reply) => sendCard('default', readHeaders(request), reply),
    })
    app.get('/a2a/agents/:business_id/.well-known/agent-card.json', {
      schema: { params: agentParams },
      config: describe(null, 'getCard', 'Returns the agent card of a business', cardDoc),
      handler: (request, reply) => sendCard(request.params.business_id, readHeaders(request), reply),
    })

    app.post('/a2a/agents/:business_id', {
      schema: { params: agentParams, body: bodySchema },
      errorHandler: createRpcError(server.sendProblem),
      config: describe('agent', 'callAgent', 'Takes a request of another agent, by JSON-RPC', {
        description: `A2A 1.0 and 0.3, by the header A2A-Version. Streaming methods answer server-sent events. ${reference}`,
        // it is echoed in the type that it came in
        passesNumbers: 'id',
        ...respondsWith(200, 'A result or an error of JSON-RPC', answerSchema),
      }),
      handler: (request, reply) =>
        answer(request, reply, request.params, async (call) =>
          (await import('./server/rpc.ts')).handleRpc(call, readHeaders(request), request.body),
        ),
    })

    app.post('/a2a/push/:id', {
      schema: {
        params: z.strictObject({
          id: z.string().describe('As Mason gave it to the agent, with its message'),
        }),
      },
      config: describe(null, 'receiveAgentPush', 'Takes a push of an agent that a run has called', {
        description:
          'Mason then asks the agent for the task. The push itself is not read, so nothing in it can be forged. The answer is the same for every id.',
        streamed: true,
        problems: ['too_many_requests', 'database_unavailable'],
        ...respondsWith(204, 'It was taken'),
      }),
      handler: async ({ params: { id } }, reply) => {
        if (idSchema.safeParse(id).success) await pollJob(id)
        return reply.code(204).send()
      },
    })

    const restParams = agentParams.extend({
      '*': z
        .string()
        .max(1000)
        .describe('Such as `message:send` or `tasks/{id}`; those of 0.3 begin with `v1/`'),
    })
    const restDoc = {
      description: `The HTTP binding of A2A 1.0 and 0.3. ${reference}`,
      ...respondsWith(200, 'A response of the operation', answerSchema),
    }
    const rest = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      const { method, query, body } = request
      const { '*': path = '', ...params } = request.params as { '*'?: string; business_id: string }
      return answer(request, reply, params, async (call) =>
        (await import('./server/rest.ts')).handleRest(call, {
          method,
          path,
          query: query as object as Record<string, unknown>,
          headers: readHeaders(request),
          body,
        }),
      )
    }
    const sendRestError = createRestError(server.sendProblem)
    const restPath = '/a2a/agents/:business_id/*'
    app.get(restPath, {
      exposeHeadRoute: false,
      schema: { params: restParams },
      errorHandler: sendRestError,
      config: describe('agent', 'readAgentTask', 'Reads or follows tasks, by the HTTP binding', restDoc),
      handler: rest,
    })
    app.post(restPath, {
      schema: { params: restParams, body: restBodySchema },
      errorHandler: sendRestError,
      config: describe('agent', 'sendToAgent', 'Sends a message or cancels a task, by the HTTP binding', {
        ...restDoc,
        bodyOptional: true,
      }),
      handler: rest,
    })
    app.delete(restPath, {
      schema: { params: restParams },
      errorHandler: sendRestError,
      config: describe('agent', 'deleteAgentPush', 'Deletes a push configuration, by the HTTP binding', {
        ...restDoc,
        responses: { 204: { description: 'It is deleted' } },
      }),
      handler: rest,
    })
  },
})
