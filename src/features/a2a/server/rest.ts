import {
  ListTasksResponse,
  SendMessageRequest,
  SendMessageResponse,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
  taskStateFromJSON,
} from '@a2a-js/sdk'
import { toLegacyHTTPError } from '@a2a-js/sdk/compat/v0_3/server'
import {
  ContentTypeNotSupportedError,
  restStatusFor,
  TaskNotFoundError,
  toRestErrorBody,
} from '@a2a-js/sdk/errors'
import { ServerCallContext, validateVersion } from '@a2a-js/sdk/server'
import { malformed, reportError } from './errors.ts'
import { type AgentCall, createRequestHandler, type RequestHandler } from './handler.ts'
import { omitNullMembers } from './messages.ts'
import { fromLegacyRequest, toLegacyJson } from './rest-v03.ts'
import { type AgentResponse, nameActivated, openStream, readVersion } from './rpc.ts'
import { checkSend } from './send-checks.ts'

/** A request of the HTTP binding; `path` is that below the address of the agent. */
export type RestRequest = {
  method: string
  path: string
  query: Record<string, unknown>
  headers: Record<string, unknown>
  body: unknown
}

type Input = { ids: string[]; query: Record<string, string>; body: Record<string, unknown> }
type Result = { status?: number; json: unknown } | { stream: AsyncIterable<StreamResponse> }
type Operation = (handler: RequestHandler, input: Input, context: ServerCallContext) => Promise<Result>

const readNumber = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined || text === '') return undefined
  if (!/^\d{1,9}$/.test(text)) throw malformed(`${name} must be a whole number`)
  return Number(text)
}

const send: Operation = async (handler, { body }, context) => {
  const task = await handler.sendMessage(SendMessageRequest.fromJSON(body), context)
  return { json: SendMessageResponse.toJSON({ payload: { $case: 'task', value: task as Task } }) }
}
const stream: Operation = async (handler, { body }, context) => ({
  stream: handler.sendMessageStream(SendMessageRequest.fromJSON(body), context),
})
const subscribe: Operation = async (handler, { ids: [id = ''] }, context) => ({
  stream: handler.resubscribe({ id, tenant: '' }, context),
})
const listTasks: Operation = async (handler, { query }, context) => {
  const page = await handler.listTasks(
    {
      tenant: '',
      contextId: query.contextId ?? '',
      status: taskStateFromJSON(query.status ?? 0),
      pageSize: readNumber('pageSize', query.pageSize),
      pageToken: query.pageToken ?? '',
      historyLength: readNumber('historyLength', query.historyLength),
      statusTimestampAfter: query.statusTimestampAfter,
      includeArtifacts: query.includeArtifacts === 'true',
    },
    context,
  )
  const { nextPageToken, pageSize, totalSize } = page
  return {
    json: { tasks: [], ...(ListTasksResponse.toJSON(page) as object), nextPageToken, pageSize, totalSize },
  }
}
const toConfig = (config: TaskPushNotificationConfig): unknown => TaskPushNotificationConfig.toJSON(config)

/** The operations of protocol 1.0; those of 0.3 are the same below `v1/`. */
const operations: readonly [method: string, path: RegExp, Operation][] = [
  ['POST', /^message:send$/, send],
  ['POST', /^message:stream$/, stream],
  ['GET', /^tasks$/, listTasks],
  [
    'GET',
    /^tasks\/([^/:]+)$/,
    async (handler, { ids: [id = ''], query }, context) => {
      const historyLength = readNumber('historyLength', query.historyLength ?? query.history_length)
      return { json: Task.toJSON(await handler.getTask({ id, tenant: '', historyLength }, context)) }
    },
  ],
  [
    'POST',
    /^tasks\/([^/:]+):cancel$/,
    async (handler, { ids: [id = ''] }, context) => ({
      json: Task.toJSON(await handler.cancelTask({ id, tenant: '', metadata: undefined }, context)),
    }),
  ],
  ['GET', /^tasks\/([^/:]+):subscribe$/, subscribe],
  ['POST', /^tasks\/([^/:]+):subscribe$/, subscribe],
  [
    'POST',
    /^tasks\/([^/:]+)\/pushNotificationConfigs$/,
    async (handler, { ids: [taskId = ''], body }, context) => {
      const config = TaskPushNotificationConfig.fromJSON({ ...body, taskId })
      return { status: 201, json: toConfig(await handler.createTaskPushNotificationConfig(config, context)) }
    },
  ],
  [
    'GET',
    /^tasks\/([^/:]+)\/pushNotificationConfigs$/,
    async (handler, { ids: [taskId = ''] }, context) => {
      const page = { taskId, tenant: '', pageSize: 0, pageToken: '' }
      const { configs } = await handler.listTaskPushNotificationConfigs(page, context)
      return { json: { configs: configs.map(toConfig), nextPageToken: '' } }
    },
  ],
  [
    'GET',
    /^tasks\/([^/:]+)\/pushNotificationConfigs\/([^/]+)$/,
    async (handler, { ids: [taskId = '', id = ''] }, context) => ({
      json: toConfig(await handler.getTaskPushNotificationConfig({ taskId, id, tenant: '' }, context)),
    }),
  ],
  [
    'DELETE',
    /^tasks\/([^/:]+)\/pushNotificationConfigs\/([^/]+)$/,
    async (handler, { ids: [taskId = '', id = ''] }, context) => {
      await handler.deleteTaskPushNotificationConfig({ taskId, id, tenant: '' }, context)
      return { status: 204, json: undefined }
    },
  ],
  [
    'GET',
    /^(?:extendedAgentCard|card)$/,
    async (handler, _, context) => ({
      json: await handler.getAuthenticatedExtendedAgentCard({ tenant: '' }, context),
    }),
  ],
]

const isLegacyPath = (path: string): boolean => path.startsWith('v1/')
const toErrorBody = (path: string, error: unknown): unknown =>
  isLegacyPath(path) ? toLegacyHTTPError(error) : toRestErrorBody(error, restStatusFor(error))

/** A request of the HTTP binding, in the version that its path and headers name. */
export const handleRest = async (call: AgentCall, request: RestRequest): Promise<AgentResponse> => {
  const isLegacy = isLegacyPath(request.path)
  const path = isLegacy ? request.path.slice(3) : request.path
  const named = request.headers['a2a-version'] ? readVersion(request.headers) : isLegacy ? '0.3' : '1.0'
  const headers = nameActivated(call, named)
  const toBody = (error: unknown): unknown => toErrorBody(request.path, error)
  try {
    validateVersion(named, call.card, 'HTTP+JSON')
    const found = operations.find(([method, pattern]) => method === request.method && pattern.test(path))
    if (!found)
      throw new TaskNotFoundError(`there is no operation ${request.method} ${request.path.slice(0, 200)}`)
    const [, pattern, operation] = found
    const sent = omitNullMembers(request.body ?? {}) as Record<string, unknown>
    const body = isLegacy ? fromLegacyRequest(sent) : sent
    if (path.startsWith('message:')) checkSend(call, body, '1.0')
    const ids = (pattern.exec(path) ?? []).slice(1)
    const query = request.query as Record<string, string>
    const context = new ServerCallContext({ requestedVersion: named })
    const result = await operation(
      createRequestHandler(call, isLegacy ? '0.3' : '1.0'),
      { ids, query, body },
      context,
    )
    const convert = (json: unknown): unknown => (isLegacy ? toLegacyJson(json, call.isFinal) : json)
    if (!('stream' in result)) return { status: result.status ?? 200, headers, body: convert(result.json) }
    const events = toJson(result.stream, convert)
    return { status: 200, headers, events: await openStream(events, toBody, call.signal) }
  } catch (thrown) {
    const error = thrown instanceof TypeError ? reportError(call, thrown) : thrown
    return { status: restStatusFor(error), headers: {}, body: toBody(error) }
  }
}

/** The response to a request whose body could not be read. */
export const toBodyError = (
  path: string,
  { code, message }: { code: string; message: string },
): { status: number; body: unknown } => {
  const error =
    code === 'unsupported_media_type' ? new ContentTypeNotSupportedError(message) : malformed(message)
  return { status: restStatusFor(error), body: toErrorBody(path, error) }
}

async function* toJson(
  events: AsyncIterable<StreamResponse>,
  convert: (json: unknown) => unknown,
): AsyncGenerator<unknown> {
  for await (const event of events) yield convert(StreamResponse.toJSON(event))
}
