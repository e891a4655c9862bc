import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { Message, Task } from '@a2a-js/sdk'
import {
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors'
import type { RequestHandler } from '../../src/features/a2a/server/handler.ts'
import { hashJson } from '../../src/features/payments/mandates/tokens/authorizations.ts'
import type { Books } from './books.ts'
import { type Answer, type Handle, type Part, RefusalError, readMessage } from './messages.ts'

/** A task in the form of A2A 1.0. */
type StoredTask = {
  id: string
  contextId: string
  status: { state: string; timestamp: string; message?: object }
  artifacts: { artifactId: string; parts: Part[] }[]
  history: object[]
}

/** What an agent prints of a message that it got, or of its answer: texts, and the names of data. */
export type AgentLine =
  | { from: string; text: string; keys: string[] }
  | { to: string; state: string; text: string; keys: string[] }

/** A message waits so long for its task; then the task is returned as it is, and goes on. */
const maxWaitMs = 20_000
const toStatus = (state: string) => ({
  state: `TASK_STATE_${state.toUpperCase().replace('-', '_')}`,
  timestamp: new Date().toISOString(),
})
const [working, asks] = [toStatus('working').state, toStatus('input-required').state]
const unsupported = (): never => {
  throw new UnsupportedOperationError('this agent neither streams nor pushes: read the task')
}

/**
 * The operations of A2A over books: a message is written before it is carried out, once, and again after a kill, under the same id.
 * `handle` must find in the books what it did before.
 */
export const createTasks = (books: Books, handle: Handle, tell: (line: AgentLine) => void) => {
  const running = new Map<string, Promise<void>>()
  const find = (id: string): StoredTask => {
    const task = books.get<StoredTask>('tasks', id)
    if (!task) throw new TaskNotFoundError(`there is no task "${id}"`)
    return task
  }

  const carryOut = async (task: StoredTask, peer: string): Promise<void> => {
    const message = readMessage(task.history.at(-1) ?? {})
    const answer: Answer = await handle(message).catch((error: unknown) => {
      if (!(error instanceof RefusalError)) throw error
      return { state: error.state, says: [{ text: error.message }], artifacts: error.artifacts }
    })
    const { state, says = [], artifacts: made = [] } = answer
    const { id: taskId, contextId } = task
    const said = { role: 'ROLE_AGENT', messageId: randomUUID(), taskId, contextId, parts: says }
    const status = { ...toStatus(state), ...(says.length > 0 && { message: said }) }
    const artifacts = made.map((parts, at) => ({ artifactId: `${taskId}-${at + 1}`, parts }))
    books.write(['tasks', taskId, { ...task, status, artifacts }])
    const parts = [...says, ...made.flat()]
    const text = parts.flatMap((part) => ('text' in part ? part.text : [])).join(' ')
    const keys = parts.flatMap((part) => ('data' in part ? Object.keys(part.data) : []))
    tell({ to: peer, state, text, keys })
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
    const hash = hashJson(Message.toJSON({ ...message, metadata: undefined }))
    const known = books.get<{ task: string; hash: string }>('messages', key)
    if (known && known.hash !== hash)
      throw new RequestMalformedError('message.messageId was used for another message: send a new one')
    if (known) return known.task
    const before = message.taskId ? find(message.taskId) : null
    if (before && message.contextId && message.contextId !== before.contextId)
      throw new RequestMalformedError('message.contextId is not that of the task: leave it out')
    if (before && before.status.state !== asks)
      throw new UnsupportedOperationError(`the task "${before.id}" asks for nothing: leave taskId out`)
    const id = before?.id ?? randomUUID()
    const contextId = before?.contextId ?? (message.contextId || randomUUID())
    const own = Message.toJSON({ ...message, taskId: id, contextId }) as object
    const history = [...(before?.history ?? []), ...[before?.status.message ?? []].flat(), own]
    const task: StoredTask = { id, contextId, artifacts: [], status: toStatus('working'), history }
    books.write(['tasks', id, task], ['messages', key, { task: id, hash }])
    const { text, keys } = readMessage(own)
    tell({ from, text, keys })
    start(task, from)
    return id
  }

  const toTask = ({ history, ...task }: StoredTask, length = Infinity): Task =>
    Task.fromJSON({ ...task, history: history.slice(-length || Infinity) })

  return {
    createHandler: (from: string): RequestHandler => ({
      async sendMessage({ message, configuration }) {
        if (!message) throw new RequestMalformedError('message is required')
        const id = accept(message, from)
        if (!configuration?.returnImmediately) await Promise.race([running.get(id), pause(maxWaitMs)])
        return toTask(find(id), configuration?.historyLength)
      },
      getTask: async ({ id, historyLength }) => toTask(find(id), historyLength),
      async listTasks({ contextId, status, pageSize = 50, pageToken, historyLength, includeArtifacts }) {
        if (pageSize < 1 || pageSize > 100)
          throw new RequestMalformedError('pageSize must be between 1 and 100')
        if (!contextId) throw new RequestMalformedError('contextId is required')
        if (status) throw new UnsupportedOperationError('this agent does not list tasks by status')
        const all = books.list<StoredTask>('tasks')
        const found = all.filter((task) => task.contextId === contextId).reverse()
        const from = Number(pageToken) || 0
        const tasks = found
          .slice(from, from + pageSize)
          .map((task) => toTask({ ...task, ...(!includeArtifacts && { artifacts: [] }) }, historyLength))
        const nextPageToken = from + pageSize < found.length ? String(from + pageSize) : ''
        return { tasks, nextPageToken, pageSize, totalSize: found.length }
      },
      async cancelTask({ id }) {
        throw new TaskNotCancelableError(`the task "${find(id).id}" cannot be canceled`)
      },
      ...{ getAgentCard: unsupported, getAuthenticatedExtendedAgentCard: unsupported },
      ...{ sendMessageStream: unsupported, resubscribe: unsupported },
      ...{ createTaskPushNotificationConfig: unsupported, getTaskPushNotificationConfig: unsupported },
      ...{ listTaskPushNotificationConfigs: unsupported, deleteTaskPushNotificationConfig: unsupported },
    }),
    /** Carries out again what a kill cut off. */
    resume(): void {
      for (const task of books.list<StoredTask>('tasks')) if (task.status.state === working) start(task, '')
    },
  }
}
