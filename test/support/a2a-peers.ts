import { Role, type StreamResponse, type Task, taskStateToJSON } from '@a2a-js/sdk'
import * as sdk from '@a2a-js/sdk/client'
import * as sdk03 from 'a2a-v03/client'

/** What a test sends; the same for every peer. */
export type PeerMessage = {
  messageId: string
  text?: string
  data?: object[]
  contextId?: string
  taskId?: string
}
/** A task as both versions have it. */
export type PeerTask = {
  id: string
  contextId: string
  state: string
  says: string
  answer: string
  data: unknown[]
}
/** Where a peer wants to hear of a task. */
export type PeerPush = { id: string; url: string; token: string; scheme: string; credentials: string }
/** A program of another maker that calls an agent. */
export type Peer = {
  send(message: PeerMessage): Promise<PeerTask>
  /** The states that a stream shows, with the text that it adds up to. */
  stream(message: PeerMessage): Promise<{ states: string[]; text: string; id: string }>
  resubscribe(id: string): AsyncGenerator<string>
  get(id: string): Promise<PeerTask>
  cancel(id: string): Promise<PeerTask>
  /** Asks for pushes of a task. */
  push(taskId: string, config: PeerPush): Promise<unknown>
  /** The addresses of its pushes. */
  pushes(taskId: string): Promise<string[]>
  unpush(taskId: string, id: string): Promise<void>
}

/** Calls the agent of a card at `cardUrl`; `fetchImpl` adds what the peer authenticates with. */
export type PeerOptions = { cardUrl: string; fetchImpl: typeof fetch; extensions?: string[] }

type Content = { text?: string; data?: unknown }

const toTask = (
  ids: { id: string; contextId: string },
  state: string,
  says: Content[],
  artifacts: Content[],
): PeerTask => ({
  ...ids,
  state,
  says: says.flatMap(({ text }) => text ?? []).join(),
  answer: artifacts.flatMap(({ text }) => text ?? []).join(),
  data: [...says, ...artifacts].flatMap(({ data }) => (data === undefined ? [] : [data])),
})

const stateOf = (state = 0): string =>
  taskStateToJSON(state).replace('TASK_STATE_', '').toLowerCase().replace('_', '-')

const toContents = (parts: { content?: { $case: string; value: unknown } | undefined }[] = []): Content[] =>
  parts.flatMap(({ content }) => (content ? [{ [content.$case]: content.value }] : []))

const fromTask = ({ id, contextId, status, artifacts }: Task): PeerTask =>
  toTask(
    { id, contextId },
    stateOf(status?.state),
    toContents(status?.message?.parts),
    artifacts.flatMap(({ parts }) => toContents(parts)),
  )

/** A peer of protocol 1.0. */
export const openPeer = async (transport: 'JSONRPC' | 'HTTP+JSON', options: PeerOptions): Promise<Peer> => {
  const { cardUrl, fetchImpl, extensions = [] } = options
  const factory = new sdk.ClientFactory({
    transports: [new sdk.JsonRpcTransportFactory({ fetchImpl }), new sdk.RestTransportFactory({ fetchImpl })],
    preferredTransports: [transport],
    cardResolver: new sdk.DefaultAgentCardResolver({ fetchImpl }),
  })
  const client = await factory.createFromUrl(cardUrl)
  const serviceParameters = sdk.ServiceParameters.create(sdk.withA2AExtensions(...extensions))
  const more = { metadata: undefined, filename: '', mediaType: '' }
  const toRequest = ({ messageId, text, data = [], contextId = '', taskId = '' }: PeerMessage) => ({
    tenant: '',
    message: {
      ...{ messageId, contextId, taskId, role: Role.ROLE_USER },
      parts: [
        ...(text === undefined ? [] : [{ content: { $case: 'text' as const, value: text }, ...more }]),
        ...data.map((value) => ({ content: { $case: 'data' as const, value }, ...more })),
      ],
      ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
    },
    configuration: undefined,
    metadata: undefined,
  })
  const readStates = (event: StreamResponse): string[] => {
    const { payload } = event
    if (payload?.$case === 'task' || payload?.$case === 'statusUpdate')
      return [stateOf(payload.value.status?.state)]
    return []
  }
  return {
    send: async (message) =>
      fromTask((await client.sendMessage(toRequest(message), { serviceParameters })) as Task),
    async stream(message) {
      const shown = { states: [] as string[], text: '', id: '' }
      for await (const event of client.sendMessageStream(toRequest(message), { serviceParameters })) {
        shown.states.push(...readStates(event))
        if (event.payload?.$case === 'task') shown.id = event.payload.value.id
        if (event.payload?.$case !== 'artifactUpdate') continue
        const { append, artifact } = event.payload.value
        const [piece] = toContents(artifact?.parts)
        shown.text = append ? shown.text + piece?.text : (piece?.text ?? '')
      }
      return shown
    },
    async *resubscribe(id) {
      for await (const event of client.resubscribeTask({ id, tenant: '' })) yield* readStates(event)
    },
    get: async (id) => fromTask(await client.getTask({ id, tenant: '' })),
    cancel: async (id) => fromTask(await client.cancelTask({ id, tenant: '', metadata: undefined })),
    push: (taskId, { scheme, credentials, ...config }) =>
      client.createTaskPushNotificationConfig({
        ...{ tenant: '', taskId, ...config, authentication: { scheme, credentials } },
      }),
    pushes: async (taskId) => {
      const page = { tenant: '', taskId, pageSize: 0, pageToken: '' }
      return (await client.listTaskPushNotificationConfig(page)).configs.map(({ url }) => url)
    },
    unpush: (taskId, id) => client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id }),
  }
}

type Task03 = Extract<Awaited<ReturnType<sdk03.Client['sendMessage']>>, { kind: 'task' }>
const fromTask03 = ({ id, contextId, status, artifacts = [] }: Task03): PeerTask =>
  toTask(
    { id, contextId },
    status.state,
    (status.message?.parts ?? []) as Content[],
    artifacts.flatMap(({ parts }) => parts as Content[]),
  )

/** A peer of protocol 0.3. */
export const openPeer03 = async (transport: 'JSONRPC' | 'HTTP+JSON', options: PeerOptions): Promise<Peer> => {
  const { cardUrl, fetchImpl, extensions = [] } = options
  const factory = new sdk03.ClientFactory({
    transports: [
      new sdk03.JsonRpcTransportFactory({ fetchImpl }),
      new sdk03.RestTransportFactory({ fetchImpl }),
    ],
    preferredTransports: [transport],
    cardResolver: new sdk03.DefaultAgentCardResolver({ fetchImpl }),
  })
  const client = await factory.createFromUrl(cardUrl)
  const serviceParameters = { 'X-A2A-Extensions': extensions.join(', ') }
  const toRequest = ({ messageId, text, data = [], contextId, taskId }: PeerMessage) => ({
    message: {
      kind: 'message' as const,
      // as the samples of AP2 send it
      role: 'agent' as const,
      messageId,
      parts: [
        ...(text === undefined ? [] : [{ kind: 'text' as const, text }]),
        ...data.map((value) => ({ kind: 'data' as const, data: value as Record<string, unknown> })),
      ],
      ...(contextId !== undefined && { contextId }),
      ...(taskId !== undefined && { taskId }),
    },
  })
  return {
    send: async (message) =>
      fromTask03((await client.sendMessage(toRequest(message), { serviceParameters })) as Task03),
    async stream(message) {
      const shown = { states: [] as string[], text: '', id: '' }
      for await (const event of client.sendMessageStream(toRequest(message), { serviceParameters })) {
        if (event.kind === 'task') shown.id = event.id
        if (event.kind === 'task' || event.kind === 'status-update') shown.states.push(event.status.state)
        if (event.kind !== 'artifact-update') continue
        const [piece] = event.artifact.parts as Content[]
        shown.text = event.append ? shown.text + piece?.text : (piece?.text ?? '')
      }
      return shown
    },
    async *resubscribe(id) {
      for await (const event of client.resubscribeTask({ id }))
        if (event.kind === 'task' || event.kind === 'status-update') yield event.status.state
    },
    get: async (id) => fromTask03(await client.getTask({ id })),
    cancel: async (id) => fromTask03(await client.cancelTask({ id })),
    push: (taskId, { scheme, credentials, ...config }) =>
      client.setTaskPushNotificationConfig({
        taskId,
        pushNotificationConfig: { ...config, authentication: { schemes: [scheme], credentials } },
      }),
    pushes: async (taskId) =>
      (await client.listTaskPushNotificationConfig({ id: taskId })).map(
        ({ pushNotificationConfig }) => pushNotificationConfig.url,
      ),
    unpush: (id, pushNotificationConfigId) =>
      client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId }),
  }
}
