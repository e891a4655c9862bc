import { setTimeout as pause } from 'node:timers/promises'
import { AgentCard, type Message, Role, type Task, type TaskPushNotificationConfig } from '@a2a-js/sdk'
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  ServiceParameters,
  withA2AExtensions,
} from '@a2a-js/sdk/client'
import { A2AError } from '@a2a-js/sdk/errors'
import type { Egress } from '../../../infra/egress/egress-port.ts'
import { openDeadline } from '../../../state/deadline.ts'
import { isMasonError, MasonError, toErrorMessage } from '../../../state/errors.ts'
import type { AgentMessage, AgentReply } from '../../../state/ports/agents.ts'
import { findRootCause } from '../../../state/root-cause.ts'
import { toAgentReply } from './agent-reply.ts'
import { ap2Uris, currentAp2Uris } from './ap2.ts'
import { createEgressFetch } from './egress-fetch.ts'
import type { RemoteAgentRow } from './remote-agents.ts'

/** How an agent is called: its row with the secrets of its headers filled in. */
export type AgentTarget = {
  row: RemoteAgentRow
  headers: Record<string, string>
  egress: Egress
  redact: (text: string) => string
  /** Below this address agents that can push say when a task has changed; null: this server has no address for them. */
  pushUrl: string | null
}

/** An agent may take this long with an answer, while a worker waits for it. Afterwards its task is looked up. */
const answerTimeoutMs = 120_000
const lookupTimeoutMs = 20_000
/** An agent that starts again is away for a moment: what did not leave is sent after each of these pauses. */
const awayPausesMs = [250, 500, 1000, 2000, 4000]
const awayCode = /\bE(?:CONNREFUSED|CONNRESET|PIPE)\b/
const pageSize = 50
const historyLength = 100
const maxPages = 5

/** Where the extensions for methods of payment begin that the samples require. */
const methodExtension = 'https://sample-card-network.github.io/'

/** The extensions of a card that requests name: those of AP2, and those for methods of payment. */
const listExtensions = ({ capabilities }: AgentCard, roles: readonly string[]): string[] => {
  if (roles.length === 0) return []
  const named = (capabilities?.extensions ?? []).map(({ uri }) => uri)
  const payments = named.filter((uri) => uri.startsWith(methodExtension))
  const ap2 = named.filter((uri) => ap2Uris.includes(uri))
  return [...(ap2.length > 0 ? ap2 : currentAp2Uris), ...payments]
}

const open = async ({ row, ...target }: AgentTarget, signal: AbortSignal, beforeSend?: () => void) => {
  const { fetchImpl, exchange } = createEgressFetch({
    ...target,
    signal,
    allowPrivate: row.allow_private,
    ...(beforeSend && { beforeSend }),
  })
  const options = { fetchImpl, legacyCompat: { enabled: true } }
  const card = AgentCard.fromJSON(row.card)
  const client = await new ClientFactory({
    transports: [new JsonRpcTransportFactory(options), new RestTransportFactory(options)],
    cardResolver: new DefaultAgentCardResolver(options),
  }).createFromAgentCard(card)
  const extensions = listExtensions(card, row.roles)
  const request = {
    signal,
    ...(extensions.length > 0 && {
      serviceParameters: ServiceParameters.create(withA2AExtensions(...extensions)),
    }),
  }
  return { client, exchange, request, canPush: card.capabilities?.pushNotifications === true }
}

const noMore = { metadata: undefined, filename: '', mediaType: '' }
const toMessage = ({ parts, context_id, task_id }: AgentMessage, messageId: string): Message => ({
  messageId,
  role: Role.ROLE_USER,
  contextId: context_id ?? '',
  taskId: task_id ?? '',
  parts: parts.map((part) => ({
    content: 'text' in part ? { $case: 'text', value: part.text } : { $case: 'data', value: part.data },
    ...noMore,
  })),
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
})

/** The address says which message it is about, and a push is nothing but a reason to look: it needs no token. */
const toPushConfig = (url: string): TaskPushNotificationConfig => ({
  id: '',
  taskId: '',
  tenant: '',
  url,
  token: '',
  authentication: undefined,
})

const refused = (agent: string, reason: string): AgentReply => ({
  agent,
  task_id: null,
  context_id: null,
  state: 'rejected',
  texts: [reason.slice(0, 2000)],
  data: [],
  push_id: null,
})

/** Whether the agent answered with an error of the protocol. */
export const isProtocolError = (error: unknown): boolean =>
  error instanceof A2AError || (error instanceof Error && 'envelopeCode' in error)

/** An error of the protocol is an answer of the agent; so is a status that says that it did nothing. */
const isAnswer = (error: unknown, status: number | null): boolean =>
  isProtocolError(error) || (status !== null && status >= 300 && status < 500 && status !== 408)

const internalError = -32603
/** An answer that says that the agent did nothing: not one of an agent that broke while it worked. */
export const isPlainRefusal = (error: unknown, status: number | null): boolean =>
  isAnswer(error, status) && (error as { envelopeCode?: unknown }).envelopeCode !== internalError

/**
 * Sends a message under an id and resolves with the reply; a refusal is one. Throws only where it is not known whether the agent got
 * it, and with what `beforeSend` throws, which is called in the moment before the first byte. `isRefusal` says which errors are a
 * refusal.
 */
export const sendMessage = async (
  target: AgentTarget,
  message: AgentMessage,
  messageId: string,
  beforeSend: () => void,
  signal: AbortSignal,
  isRefusal = isAnswer,
): Promise<AgentReply> => {
  using deadline = openDeadline(answerTimeoutMs, signal)
  const { client, exchange, request, canPush } = await open(target, deadline.signal, beforeSend)
  const pushId = canPush && target.pushUrl !== null ? messageId : null
  const push = pushId === null ? undefined : toPushConfig(`${target.pushUrl}/${pushId}`)
  const configuration = {
    acceptedOutputModes: [],
    taskPushNotificationConfig: push,
    returnImmediately: false,
  }
  const sent = { tenant: '', message: toMessage(message, messageId), metadata: undefined, configuration }
  for (let attempt = 0; ; attempt++)
    try {
      return { ...toAgentReply(message.agent, await client.sendMessage(sent, request)), push_id: pushId }
    } catch (error) {
      signal.throwIfAborted()
      if (isMasonError(error, 'lease_lost', 'database_unavailable')) throw error
      if (!exchange.isSent) {
        const { code, message: reason } = findRootCause(error)
        const pauseMs = awayCode.test(`${code} ${reason}`) ? awayPausesMs[attempt] : undefined
        if (pauseMs === undefined)
          return {
            ...refused(message.agent, `${message.agent} could not be reached: ${reason}`),
            is_unreached: true,
          }
        await pause(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted())
        continue
      }
      if (isRefusal(error, exchange.status))
        return refused(message.agent, `${message.agent} refused: ${toErrorMessage(error)}`)
      throw error
    }
}

/** The task as it is now. */
export const readTask = async (
  target: AgentTarget,
  taskId: string,
  signal: AbortSignal,
): Promise<AgentReply> => {
  using deadline = openDeadline(lookupTimeoutMs, signal)
  const { client, request } = await open(target, deadline.signal)
  return toAgentReply(target.row.name, await client.getTask({ tenant: '', id: taskId }, request))
}

const has = ({ history }: Task, messageId: string): boolean =>
  history.some((message) => message.messageId === messageId)

/**
 * What became of a message whose answer was lost, by its id in the history of the tasks of its context; null: the agent never got it.
 * Throws where the agent cannot say, as those of A2A 0.3 cannot for a message that begins a task.
 */
export const findMessage = async (
  target: AgentTarget,
  { agent, task_id, context_id }: AgentMessage,
  messageId: string,
  signal: AbortSignal,
): Promise<AgentReply | null> => {
  using deadline = openDeadline(lookupTimeoutMs, signal)
  const { client, request } = await open(target, deadline.signal)
  const unknown = (): MasonError =>
    new MasonError('effect_unknown', `${agent} cannot say whether it got the message ${messageId}`)
  if (task_id !== undefined) {
    const task = await client.getTask({ tenant: '', id: task_id, historyLength }, request)
    if (has(task, messageId)) return toAgentReply(agent, task)
    if (task.history.length === 0) throw unknown()
    return null
  }
  for (let page = 1, pageToken = ''; ; page++) {
    const { tasks, nextPageToken } = await client.listTasks(
      {
        tenant: '',
        contextId: context_id ?? '',
        status: 0,
        pageSize,
        pageToken,
        historyLength,
        statusTimestampAfter: undefined,
        includeArtifacts: true,
      },
      request,
    )
    const found = tasks.find((task) => has(task, messageId))
    if (found) return toAgentReply(agent, found)
    if (tasks.some(({ history }) => history.length === 0) || page === maxPages) throw unknown()
    if (nextPageToken === '') return null
    pageToken = nextPageToken
  }
}
