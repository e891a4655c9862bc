import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { type Message, Message as Messages, Task as Tasks, taskStateToJSON } from '@a2a-js/sdk'
import {
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors'
import type { JsonRpcTransportHandler } from '@a2a-js/sdk/server'
import { hashJson } from '../../src/payments/mandates/tokens/authorizations.ts'
import type { Books } from './books.ts'
import { type Answer, type Incoming, type Part, RefusalError, readMessage } from './messages.ts'

/** A task in the form of A2A 1.0. */
type StoredTask = {
  id: string
  contextId: string
  status: { state: string; timestamp: string; message?: { parts: Part[]; messageId: string } }
  artifacts: { artifactId: string; parts: Part[] }[]
  history: { messageId: string }[]
}
type RequestHandler = ConstructorParameters<typeof JsonRpcTransportHandler>[0]

/** A message waits so long for its task; then the task is returned as it is, and goes on. */
const maxWaitMs = 20_000
const toState = (state: string): string => `TASK_STATE_${state.toUpperCase().replace('-', '_')}`
const [working, asks] = [toState('working'), toState('input-required')]

/**
 * The operations of A2A over books: a message is written before it is carried out, once, and again after a kill, under the same id.
 * `handle` must find in the books what it did before; `tell` hears of each message and answer.
 */
export const createTasks = (
  books: Books,
  handle: (message: Incoming) => Promise<Answer>,
  tell: (what: { got?: Incoming; gave?: Answer; peer: string }) => void,
) => {
  const running = new Map<string, Promise<void>>()
  const find = (id: string): StoredTask => {
    const task = books.get<StoredTask>('tasks', id)
    if (!task) throw new TaskNotFoundError(`there is no task "${id}"`)
    return task
  }

  const carryOut = async (task: StoredTask, peer: string): Promise<void> => {
    const own = task.history.at(-1) as { messageId: string }
    const answer: Answer = await handle(readMessage(own)).catch((error: unknown) => {
      if (!(error instanceof RefusalError)) throw error
      return { state: error.state, says: [{ text: error.message }], artifacts: error.artifacts }
    })
    const { state, says, artifacts = [] } = answer
    const message = says && {
      ...{ role: 'ROLE_AGENT', messageId: randomUUID(), taskId: task.id, contextId: task.contextId },
      parts: says,
    }
    const status = { state: toState(state), timestamp: new Date().toISOString(), ...(message && { message }) }
    const kept = artifacts.map((parts, at) => ({ artifactId: `${task.id}-${at + 1}`, parts }))
    books.write(['tasks', task.id, { ...task, status, artifacts: kept }])
    tell({ gave: answer, peer })
  }
  const start = (task: StoredTask, peer: string): void => {
    const work = carryOut(task, peer)
      // it is not known what was done: the task stays as it is until the next start
      .catch((error: unknown) => void process.stderr.write(`task ${task.id}: ${(error as Error).stack}\n`))
      .finally(() => running.delete(task.id))
    running.set(task.id, work)
  }

  const accept = (message: Message, from: string): string => {
    const key = `${message.contextId} ${message.messageId}`
    const hash = hashJson(Messages.toJSON({ ...message, metadata: undefined }))
    const known = books.get<{ task: string; hash: string }>('messages', key)
    if (known && known.hash !== hash)
      throw new RequestMalformedError('message.messageId was used for another message: send a new one')
    if (known) return known.task
    const before = message.taskId ? find(message.taskId) : null
    if (before && message.contextId && message.contextId !== before.contextId)
      throw new RequestMalformedError('message.contextId is not that of the task: leave it out')
    if (before && before.status.state !== asks)
      throw new UnsupportedOperationError(
        `the task "${before.id}" asks for nothing: send a message without taskId`,
      )
    const id = before?.id ?? randomUUID()
    const contextId = before?.contextId ?? (message.contextId || randomUUID())
    const own = Messages.toJSON({ ...message, taskId: id, contextId }) as { messageId: string }
    const said = before?.status.message
    const task: StoredTask = {
      ...{ id, contextId, artifacts: [] },
      status: { state: working, timestamp: new Date().toISOString() },
      history: [...(before?.history ?? []), ...(said ? [said] : []), own],
    }
    books.write(['tasks', id, task], ['messages', key, { task: id, hash }])
    tell({ got: readMessage(own), peer: from })
    start(task, from)
    return id
  }

  const toTask = (id: string, historyLength?: number): Tasks => {
    const task = find(id)
    const history =
      historyLength === undefined ? task.history : task.history.slice(-historyLength || Infinity)
    return Tasks.fromJSON({ ...task, history })
  }
  const unsupported = async (): Promise<never> => {
    throw new UnsupportedOperationError('this agent does not push: read the task')
  }

  const unsupportedStream = (): never => {
    throw new UnsupportedOperationError('this agent does not stream: send the message without it')
  }

  const createHandler = (from: string): RequestHandler => ({
    async sendMessage({ message, configuration }) {
      if (!message) throw new RequestMalformedError('message is required')
      const id = accept(message, from)
      if (!configuration?.returnImmediately) await Promise.race([running.get(id), pause(maxWaitMs)])
      return toTask(id, configuration?.historyLength)
    },
    getTask: async ({ id, historyLength }) => toTask(id, historyLength),
    async listTasks({ contextId, status, pageSize = 50, pageToken, historyLength, includeArtifacts }) {
      if (!contextId) throw new RequestMalformedError('contextId is required')
      const state = status ? taskStateToJSON(status) : undefined
      const found = books
        .list<StoredTask>('tasks')
        .filter((task) => task.contextId === contextId && (!state || task.status.state === state))
        .reverse()
      const from = Number(pageToken) || 0
      const tasks = found.slice(from, from + pageSize).map((task) => {
        const shown = toTask(task.id, historyLength)
        return includeArtifacts ? shown : { ...shown, artifacts: [] }
      })
      const nextPageToken = from + pageSize < found.length ? String(from + pageSize) : ''
      return { tasks, nextPageToken, pageSize, totalSize: found.length }
    },
    async cancelTask({ id }) {
      throw new TaskNotCancelableError(`the task "${find(id).id}" cannot be canceled`)
    },
    ...{ getAgentCard: unsupported, getAuthenticatedExtendedAgentCard: unsupported },
    ...{ sendMessageStream: unsupportedStream, resubscribe: unsupportedStream },
    ...{ createTaskPushNotificationConfig: unsupported, getTaskPushNotificationConfig: unsupported },
    ...{ listTaskPushNotificationConfigs: unsupported, deleteTaskPushNotificationConfig: unsupported },
  })

  return {
    createHandler,
    /** Carries out again what a kill cut off. */
    resume(): void {
      for (const task of books.list<StoredTask>('tasks')) if (task.status.state === working) start(task, '')
    },
  }
}
