import { formatSSEErrorEvent, formatSSEEvent } from '@a2a-js/sdk'
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import { JsonRpcTransportHandler, ServerCallContext, validateVersion } from '@a2a-js/sdk/server'
import { nextTurn } from '../../../state/text/next-turn.ts'
import { reportError } from './errors.ts'
import { listActivated } from './extensions.ts'
import { type AgentCall, createRequestHandler, type RequestHandler } from './handler.ts'
import { omitNullMembers } from './messages.ts'
import { checkSend, type SendCheck } from './send-checks.ts'

/** A response: JSON, or a stream of server-sent events. */
export type AgentResponse = { status: number; headers: Record<string, string> } & (
  | { body: unknown }
  | { events: AsyncIterable<string> }
)

/** The version of a request. Absent means 0.3; patch versions count for nothing. */
export const readVersion = (headers: Record<string, unknown>): string => {
  const version = String(headers['a2a-version'] || '0.3').trim()
  return /^(\d+\.\d+)\.\d+$/.exec(version)?.[1] ?? version
}

/** The header that names what was activated, by the name of the version. */
export const nameActivated = (
  { card, extensions }: Pick<AgentCall, 'card' | 'extensions'>,
  version: string,
): Record<string, string> => {
  const activated = listActivated(card, extensions)
  const name = version === '0.3' ? 'x-a2a-extensions' : 'a2a-extensions'
  return activated.length > 0 ? { [name]: activated.join(', ') } : {}
}

/**
 * The first event is awaited, so that an error before it is a response of its own; later ones end the stream. Where it starts at
 * once, every error is an event.
 */
export const openStream = async (
  events: AsyncIterable<unknown>,
  toErrorBody: (error: unknown) => unknown,
  signal: AbortSignal,
  startsAtOnce = false,
): Promise<AsyncIterable<string>> => {
  const iterator = events[Symbol.asyncIterator]()
  const awaited = startsAtOnce ? null : await iterator.next()
  return (async function* () {
    try {
      for (let event = awaited ?? (await iterator.next()); !event.done; event = await iterator.next())
        yield formatSSEEvent(event.value)
    } catch (error) {
      if (!signal.aborted) yield formatSSEErrorEvent(toErrorBody(error))
    } finally {
      await iterator.return?.()
    }
  })()
}

/** The events of 0.3: `final` is true on the last one, also where the task goes on later. */
async function* markFinal(events: AsyncIterable<unknown>, call: RpcCall): AsyncGenerator<unknown> {
  for await (const event of events) {
    const { result } = event as { result?: { kind?: string; final?: boolean } }
    if (result?.kind === 'status-update') result.final = call.isFinal === true
    yield event
  }
}

/** What a request of JSON-RPC needs beside the operations. */
type RpcCall = SendCheck & Pick<AgentCall, 'signal' | 'isFinal'>

/** Codes of JSON-RPC: https://www.jsonrpc.org/specification#error_object */
const parseError = -32700
const invalidRequest = -32600
const internalError = -32603

/** What is wrong with the envelope of a request, or null; its params are the method's own to check. */
const findEnvelopeError = (body: unknown): string | null => {
  if (body === undefined) return 'the body is not JSON'
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return 'a request is a JSON object; send one at a time'
  const { jsonrpc, method, id = null } = body as Record<string, unknown>
  if (jsonrpc !== '2.0') return 'jsonrpc must be "2.0"'
  if (typeof method !== 'string' || method === '') return 'method must be the name of a method'
  return isId(id) ? null : 'id must be a text, a whole number or null'
}
const isId = (id: unknown): boolean => id === null || typeof id === 'string' || Number.isInteger(id)

const sends = { '1.0': ['SendMessage', 'SendStreamingMessage'], '0.3': ['message/send', 'message/stream'] }

/** A request of JSON-RPC to an agent of a business, in the version that it names. */
export const handleRpc = async (
  call: AgentCall,
  headers: Record<string, unknown>,
  body: unknown,
): Promise<AgentResponse> => {
  const response = await answerRpc(call, headers, body, (wire) => createRequestHandler(call, wire))
  const { error } = ('body' in response ? response.body : {}) as { error?: { code: number; message: string } }
  if (error?.code === internalError) {
    const { message } = reportError(call, new Error(error.message))
    Object.assign(error, { code: -32602, message })
  }
  return response
}

/** The same with the operations of any agent. */
export const answerRpc = async (
  call: RpcCall,
  headers: Record<string, unknown>,
  body: unknown,
  createHandler: (wire: keyof typeof sends) => RequestHandler,
): Promise<AgentResponse> => {
  const version = readVersion(headers)
  const isLegacy = version === '0.3'
  const {
    id = null,
    method = '',
    params = {},
  } = (body ?? {}) as { id?: unknown; method?: string; params?: unknown }
  const problem = findEnvelopeError(body)
  if (problem !== null) {
    const error = { code: body === undefined ? parseError : invalidRequest, message: problem }
    return { status: 200, headers: {}, body: { jsonrpc: '2.0', id: isId(id) ? id : null, error } }
  }
  const toError = (error: unknown) => ({
    jsonrpc: '2.0',
    id,
    error: isLegacy
      ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error)
      : JsonRpcTransportHandler.mapToJSONRPCError(error),
  })
  const activated = nameActivated(call, version)
  try {
    validateVersion(version, call.card, 'JSONRPC')
    const wire = isLegacy ? '0.3' : '1.0'
    const request = { ...(body as object), params: omitNullMembers(params) }
    if (sends[wire].includes(method)) checkSend(call, request.params, wire)
    // the SDK reads all of a large message at once
    await nextTurn()
    const Transport = isLegacy ? LegacyJsonRpcTransportHandler : JsonRpcTransportHandler
    const transport = new Transport(createHandler(wire))
    const context = new ServerCallContext({ requestedVersion: version })
    const result = await transport.handle(request as never, context)
    if (!(Symbol.asyncIterator in result)) return { status: 200, headers: activated, body: result }
    // clients of 0.3 take nothing but a stream here
    const startsAtOnce = method === 'tasks/resubscribe'
    const sent = isLegacy ? markFinal(result, call) : result
    const events = await openStream(sent, toError, call.signal, startsAtOnce)
    return { status: 200, headers: activated, events }
  } catch (error) {
    return { status: 200, headers: {}, body: toError(error) }
  }
}
