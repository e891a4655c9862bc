import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { AgentCard, Message, Task } from '@a2a-js/sdk'
import * as sdk from '@a2a-js/sdk/server'
import * as sdk03 from 'a2a-v03/server'

/** What an agent of a test receives, and what it answers: states as 0.3 writes them, parts as JSON. */
export type Received = {
  text: string
  data: Record<string, unknown>
  /** All values of a data key, which `data` has once. */
  all(key: string): unknown[]
  taskId: string
  contextId: string
  nth: number
}
export type Answer = { state: string; says?: object[]; artifacts?: object[][] }

/** An agent of another maker, built on the SDK of a version of the protocol, as a server on loopback. */
export type AgentServer = {
  url: string
  version: '1.0' | '0.3'
  answer: (received: Received) => Answer | Promise<Answer>
  /** Messages that were carried out. */
  received: Received[]
  /** Requests as they came: method and headers. */
  requests: {
    method: string
    headers: Record<string, unknown>
    messageId: string | null
    /** Where it is asked to push; the test pushes for it. */
    pushUrl: string | null
  }[]
  /** Whether its card says that it can push. */
  canPush: boolean
  /** Those that its card names. */
  extensions: object[]
  /** So many answers to messages are lost after they were carried out. */
  loses: number
  /** Ends a task that is open. */
  end(taskId: string, answer: Answer): Promise<void>
  close(): Promise<void>
}

type RpcBody = {
  method: string
  params?: {
    message?: { messageId: string }
    configuration?: Partial<Record<'taskPushNotificationConfig' | 'pushNotificationConfig', { url: string }>>
  }
}

type Part = { text?: string; data?: Record<string, unknown>; kind?: string }

const readParts = (parts: Part[]): Pick<Received, 'text' | 'data' | 'all'> => ({
  all: (key) => parts.flatMap(({ data }) => (data && key in data ? [data[key]] : [])),
  text: parts.flatMap(({ text }) => text ?? []).join('\n'),
  data: Object.assign({}, ...parts.flatMap(({ data }) => data ?? [])),
})

const toKind = (part: object): object => ({ kind: 'text' in part ? 'text' : 'data', ...part })
const toState = (state: string): string => `TASK_STATE_${state.toUpperCase().replace('-', '_')}`

/** The task of 0.3; `id` names its messages. */
const toTask03 = (ids: { id: string; contextId: string }, history: object[], answer: Answer, id: string) => ({
  ...{ kind: 'task' as const, ...ids, history },
  status: {
    state: answer.state,
    timestamp: new Date().toISOString(),
    ...(answer.says && {
      message: {
        ...{
          kind: 'message',
          role: 'agent',
          messageId: `${id}-says`,
          taskId: ids.id,
          contextId: ids.contextId,
        },
        parts: answer.says.map(toKind),
      },
    }),
  },
  artifacts: (answer.artifacts ?? []).map((parts, at) => ({
    artifactId: `a${at}`,
    parts: parts.map(toKind),
  })),
})
const toTask10 = (
  ids: { id: string; contextId: string },
  history: object[],
  answer: Answer,
  id: string,
): Task =>
  Task.fromJSON({
    ...{ ...ids, history },
    status: {
      state: toState(answer.state),
      timestamp: new Date().toISOString(),
      ...(answer.says && {
        message: {
          role: 'ROLE_AGENT',
          messageId: `${id}-says`,
          taskId: ids.id,
          contextId: ids.contextId,
          parts: answer.says,
        },
      }),
    },
    artifacts: (answer.artifacts ?? []).map((parts, at) => ({ artifactId: `a${at}`, parts })),
  })

/** Starts an agent with a card at /.well-known/agent-card.json. */
export const startAgentServer = async (version: '1.0' | '0.3'): Promise<AgentServer> => {
  const agent: AgentServer = {
    ...{ url: '', version, received: [], requests: [], loses: 0, canPush: false, extensions: [] },
    answer: ({ text }) => ({ state: 'completed', artifacts: [[{ text: `You said: ${text}` }]] }),
    end: async () => {},
    close: async () => {},
  }
  let nth = 0
  const carryOut = async (
    { parts = [] }: { parts?: Part[] },
    ids: { id: string; contextId: string },
  ): Promise<Answer> => {
    const received = { ...readParts(parts), taskId: ids.id, contextId: ids.contextId, nth: ++nth }
    agent.received.push(received)
    return agent.answer(received)
  }
  const server = createServer(async (request, response) => {
    if (request.method === 'GET') {
      response.setHeader('content-type', 'application/json')
      return response.end(JSON.stringify(toCard()))
    }
    const body = (await json(request)) as RpcBody
    const messageId = body.params?.message?.messageId ?? null
    const { configuration = {} } = body.params ?? {}
    const push = configuration.taskPushNotificationConfig ?? configuration.pushNotificationConfig
    agent.requests.push({
      method: body.method,
      headers: request.headers,
      messageId,
      pushUrl: push?.url ?? null,
    })
    delete configuration.taskPushNotificationConfig
    delete configuration.pushNotificationConfig
    const answer = await handle(body)
    if (messageId !== null && agent.loses > 0) {
      agent.loses--
      return request.socket.destroy()
    }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(answer))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const common = {
    ...{ name: `Agent ${version}`, description: 'Sells coffee makers', version: '1.0.0' },
    ...{ defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'] },
    skills: [{ id: 'search', name: 'Search', description: 'Finds products', tags: ['shop'] }],
  }
  const card03 = {
    ...common,
    ...{ protocolVersion: '0.3.0', url: `${url}/rpc`, preferredTransport: 'JSONRPC', capabilities: {} },
  }
  const card10 = {
    ...common,
    supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: false, pushNotifications: false },
  }
  const toCard = () => ({
    ...(version === '1.0' ? card10 : card03),
    capabilities: {
      ...{ streaming: false, pushNotifications: agent.canPush },
      ...(agent.extensions.length > 0 && { extensions: agent.extensions }),
    },
  })

  const store = new sdk.InMemoryTaskStore()
  const store03 = new sdk03.InMemoryTaskStore()
  const context = new sdk.ServerCallContext({ requestedVersion: '1.0' })
  const transport = new sdk.JsonRpcTransportHandler(
    new sdk.DefaultRequestHandler(AgentCard.fromJSON(card10), store, {
      async execute({ userMessage, taskId, contextId, task }, bus) {
        const ids = { id: taskId, contextId }
        const history = [...(task?.history.map((one) => Message.toJSON(one) as object) ?? [])]
        const own = Message.toJSON({ ...userMessage, taskId, contextId }) as Parameters<
          typeof carryOut
        >[0] & {
          messageId: string
        }
        const seen = history.some((one) => (one as { messageId?: string }).messageId === own.messageId)
        const answered = await carryOut(own, ids)
        bus.publish(
          sdk.AgentEvent.task(toTask10(ids, seen ? history : [...history, own], answered, own.messageId)),
        )
        bus.finished()
      },
      async cancelTask() {},
    }),
  )
  const transport03 = new sdk03.JsonRpcTransportHandler(
    new sdk03.DefaultRequestHandler(card03 as never, store03, {
      async execute({ userMessage, taskId, contextId, task }, bus) {
        const ids = { id: taskId, contextId }
        const history = [...(task?.history ?? [])].filter(
          ({ messageId }) => messageId !== userMessage.messageId,
        )
        const answered = await carryOut(userMessage as Parameters<typeof carryOut>[0], ids)
        const own = { ...userMessage, taskId, contextId }
        bus.publish(toTask03(ids, [...history, own], answered, userMessage.messageId) as never)
        bus.finished()
      },
      async cancelTask() {},
    }),
  )
  const handle = (body: object): Promise<unknown> =>
    version === '1.0' ? transport.handle(body as never, context) : transport03.handle(body)
  return Object.assign(agent, {
    url,
    async end(taskId: string, answer: Answer) {
      if (version === '1.0') {
        const task = (await store.load(taskId, context)) as Task
        const history = task.history.map((one) => Message.toJSON(one) as object)
        await store.save(toTask10(task, history, answer, 'end'), context)
      } else {
        const task = await store03.load(taskId)
        await store03.save(toTask03(task as never, task?.history ?? [], answer, 'end') as never)
      }
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  })
}
