import {
  type Artifact,
  type Message,
  type SendMessageConfiguration,
  type StreamResponse,
  type Task,
  type TaskPushNotificationConfig,
  TaskState,
} from '@a2a-js/sdk'
import {
  A2AError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors'
import type { JsonRpcTransportHandler } from '@a2a-js/sdk/server'
import type { BusinessRuns } from '../../../engine/runs/business-runs.ts'
import { isStorableId } from '../../../infra/lib/json-text.ts'
import { openDeadline } from '../../../state/deadline.ts'
import { isMasonError } from '../../../state/errors.ts'
import type { RunEntry } from '../../../state/ports/tracer.ts'
import type { RunView } from '../../../state/run-view.ts'
import type { AgentPushes } from './agent-pushes.ts'
import { malformed, toA2AError } from './errors.ts'
import { listActivated } from './extensions.ts'
import { readOrigin, toAnswer, toMessageKey, toRunRequest, toSessionId, toUserId } from './messages.ts'
import type { SendCheck } from './send-checks.ts'
import { type TaskAnswer, toAnswerKey } from './task-answers.ts'
import {
  isEnded,
  listArtifacts,
  maxTaskDataBytes,
  toAnswerPiece,
  toEndMetadata,
  toRunStatus,
  toState,
  toTask,
  toTaskStatus,
} from './tasks.ts'

type Admitted = Awaited<ReturnType<BusinessRuns['submit']>>['run']

/** What the SDK's transports call. */
export type RequestHandler = ConstructorParameters<typeof JsonRpcTransportHandler>[0]

/** One request of another agent. */
export type AgentCall = SendCheck & {
  business: BusinessRuns
  businessId: string
  pushes: AgentPushes
  listAnswers(runIds: string[]): Promise<TaskAnswer[]>
  /** Whose contexts and tasks it sees: the token. */
  caller: string
  scenario: string | undefined
  entry: RunEntry
  /** Aborts when the caller disconnects or the server closes. */
  signal: AbortSignal
  /** Whether the status update that a stream gave last ends it: what 0.3 calls final. */
  isFinal?: boolean
  /** Whether the handler had a result or an error: what fails after it is ours. */
  isAnswered?: boolean
  /** Gets what the SDK failed at before: the request. */
  onMistyped(error: unknown): void
  /** Gets what is not an error of the protocol; the caller learns only that something went wrong on our side. */
  onError(error: unknown): void
}

/** How long a message waits for its task; then the task is returned as it is. */
const maxWaitMs = 300_000
/** So many bytes of data the histories of a list of tasks have together. */
const maxListDataBytes = 1024 * 1024
/** How long a cancel waits for the process that runs the task. */
const cancelWaitMs = 5_000
/** After every action: no replay. */
const afterAll = 2 ** 31 - 1
/** Of other nodes, what they write is not the answer. */
const answerNodes = ['answer', 'report', 'structured_answer']

/**
 * The operations of A2A on the runs of a business. The runtime is the truth: a message is a run or the answer to its question, a
 * task is a run, and nothing else is stored.
 */
export const createRequestHandler = (call: AgentCall, protocol: '1.0' | '0.3'): RequestHandler => {
  const { business, businessId, pushes, caller, card, signal } = call

  const openBlob = (run: RunView) => (hash: string) => business.blob(run.id, hash)
  const toOwnTask = async (run: RunView, historyLength?: number): Promise<Task> => {
    const origin = readOrigin(run, caller)
    if (!origin) throw new TaskNotFoundError(`there is no task "${run.id}"`)
    const answers = await call.listAnswers([run.id])
    return toTask(run, origin, { openBlob: openBlob(run), answers, historyLength })
  }
  /** Another caller's task is not there. */
  const readOwn = async (taskId: string): Promise<RunView> => {
    if (typeof taskId !== 'string' || taskId.trim() === '') throw malformed('the id of the task is required')
    const run = await business.run(taskId)
    if (!run || !readOrigin(run, caller)) throw new TaskNotFoundError(`there is no task "${taskId}"`)
    return run
  }

  const answer = async (message: Message): Promise<RunView> => {
    const run = await readOwn(message.taskId)
    const { contextId } = readOrigin(run, caller) ?? {}
    if (message.contextId && message.contextId !== contextId)
      throw malformed(`message.contextId is not that of the task "${run.id}"; leave it out`)
    const question = run.input_request
    const value = question && toAnswer(message, question)
    try {
      // a message that is sent again finds its first answer
      const key = toAnswerKey(await toMessageKey(caller, message), message.messageId)
      return await business.answer(run.id, question?.id ?? '', value, key)
    } catch (error) {
      if (!isMasonError(error, 'not_found')) throw error
      const state = isEnded(run) ? `has ended (${run.status})` : 'asks for nothing at present'
      throw new UnsupportedOperationError(`the task "${run.id}" ${state}; send a message without taskId`)
    }
  }

  /** The run of a message, which is durable from then on. */
  const accept = async (message: Message | undefined): Promise<RunView | Admitted> => {
    if (!message) throw malformed('message is required')
    if (message.taskId) return answer(message)
    const extensions = listActivated(card, call.extensions)
    const key = await toMessageKey(caller, message)
    const request = await toRunRequest(message, { caller, key, scenario: call.scenario, extensions })
    try {
      const { run, replayed } = await business.submit(request, key, call.entry)
      return replayed ? await readOwn(run.id) : run
    } catch (error) {
      if (!isMasonError(error, 'idempotency_conflict')) throw error
      // the same message beside other metadata, or since the card has another scenario
      const { data } = await business.runs({ idempotency_key: key, user_id: toUserId(caller), limit: 1 })
      return readOwn(data[0]?.id ?? '')
    }
  }

  /** The run once it has ended or waits for a person, or as it is after `ms`. */
  const settle = async (run: string | Admitted, ms: number): Promise<RunView> => {
    using deadline = openDeadline(ms, signal)
    try {
      return await business.wait(run, deadline.signal)
    } catch (error) {
      if (!deadline.signal.aborted || signal.aborted) throw error
      return readOwn(typeof run === 'string' ? run : run.id)
    }
  }

  async function* follow(
    first: RunView,
    endsAtQuestion: boolean,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const origin = readOrigin(first, caller) as NonNullable<ReturnType<typeof readOrigin>>
    const ids = { taskId: first.id, contextId: origin.contextId }
    const isOver = (run: RunView): boolean =>
      isEnded(run) || (endsAtQuestion && run.status === 'input_required')
    const toUpdate = (artifact: Artifact, append: boolean, lastChunk: boolean): StreamResponse => {
      const value = { ...ids, artifact, append, lastChunk, metadata: undefined }
      return { payload: { $case: 'artifactUpdate', value } }
    }
    const toKey = (run: RunView): string =>
      `${toState(run)} ${run.input_request?.id} ${run.consent_request?.payment_id}`
    yield { payload: { $case: 'task', value: await toOwnTask(first) } }
    if (isOver(first)) return
    let sent = toKey(first)
    let attempt = 0
    for await (const event of business.events({ run_id: first.id }, afterAll, signal)) {
      if (event.event === 'delta') {
        if (!answerNodes.includes(event.data.node)) continue
        const append = event.data.attempt === attempt
        attempt = event.data.attempt
        yield toUpdate(toAnswerPiece(event.data.text), append, false)
        continue
      }
      if (event.event === 'action' || event.event === 'todos') continue
      const run = event.event === 'done' ? event.data : await readOwn(first.id)
      if (toKey(run) === sent) continue
      sent = toKey(run)
      for (const artifact of listArtifacts(run)) yield toUpdate(artifact, false, true)
      call.isFinal = isOver(run)
      const value = { ...ids, status: toTaskStatus(run, origin), metadata: toEndMetadata(run) }
      yield { payload: { $case: 'statusUpdate', value } }
      if (isOver(run)) return
    }
  }

  const listTasks: RequestHandler['listTasks'] = async (filter) => {
    const {
      contextId,
      pageSize = 50,
      pageToken,
      historyLength,
      statusTimestampAfter,
      includeArtifacts,
    } = filter
    checkHistoryLength(historyLength)
    if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > 100)
      throw malformed('pageSize must be between 1 and 100')
    const since = Math.max(0, Date.parse(statusTimestampAfter || '1970'))
    if (Number.isNaN(since)) throw malformed('statusTimestampAfter must be a time in ISO 8601')
    const status = toRunStatus(filter.status)
    if (filter.status === TaskState.UNRECOGNIZED) throw malformed('status is no state of tasks')
    const runs = {
      user_id: toUserId(caller),
      ...(contextId && { session_id: toSessionId(caller, contextId) }),
      ...(status && { status }),
      ...(status === 'running' && { consent: filter.status === TaskState.TASK_STATE_AUTH_REQUIRED }),
      ...(statusTimestampAfter && { status_from: since }),
    }
    const empty = { data: [], next_cursor: null }
    const [page, totalSize] = await Promise.all([
      status === null
        ? empty
        : business.runs({ ...runs, limit: pageSize, ...(pageToken && { cursor: pageToken }) }),
      status === null ? 0 : business.countRuns(runs),
    ])
    const answered = await call.listAnswers(page.data.map(({ id }) => id))
    const tasks: Task[] = []
    let dataBytes = maxListDataBytes
    for (const listed of page.data) {
      // lists have the beginnings of long answers
      const isCut = includeArtifacts && (listed.truncated ?? []).length > 0
      const run = isCut ? ((await business.run(listed.id)) ?? listed) : listed
      const origin = readOrigin(run, caller)
      if (!origin) continue
      const maxBytes = Math.min(dataBytes, maxTaskDataBytes)
      const budget = { remainingBytes: maxBytes }
      const answers = answered.filter(({ run_id }) => run_id === run.id)
      const task = await toTask(run, origin, { openBlob: openBlob(run), answers, historyLength, budget })
      dataBytes -= maxBytes - budget.remainingBytes
      tasks.push(includeArtifacts ? task : { ...task, artifacts: [] })
    }
    return { tasks, nextPageToken: page.next_cursor ?? '', pageSize, totalSize }
  }

  const checkHistoryLength = (length: number | undefined): void => {
    if (length !== undefined && !(Number.isInteger(length) && length >= 0))
      throw malformed('historyLength must be a whole number')
  }
  const checkPush = async ({ id, url, token, authentication }: TaskPushNotificationConfig): Promise<void> => {
    const { scheme = '', credentials = '' } = authentication ?? {}
    // the SDK hands on what clients of 0.3 sent
    if ([id, url, token, scheme, credentials].some((one) => typeof one !== 'string'))
      throw malformed('id, url, token and authentication of the push configuration must be texts')
    if (id.length > 255 || token.length > 1000 || !isStorableId(id))
      throw malformed('id or token of the push is too long, or has U+0000, U+FFFD or half a surrogate pair')
    if (!/^[\x20-\x7e]*$/.test(`${token}${scheme}${credentials}`) || `${scheme}${credentials}`.length > 4000)
      throw malformed('token and authentication of the push configuration must be short ASCII texts')
    await pushes.check(businessId, url)
  }
  const putPush = async (
    config: TaskPushNotificationConfig,
    taskId: string,
  ): Promise<TaskPushNotificationConfig> => {
    await checkPush(config)
    // a client may leave the id out: then it has one configuration
    const { id = taskId, url, token, authentication } = { ...config, id: config.id || undefined }
    const { scheme = '', credentials = '' } = authentication ?? {}
    await pushes.put(businessId, taskId, { id, url, protocol, token, scheme, credentials })
    return { ...config, id, taskId }
  }
  /** Configurations without their secrets. */
  const listPushes = async (taskId: string): Promise<TaskPushNotificationConfig[]> => {
    await readOwn(taskId)
    const configs = await pushes.list(businessId, taskId)
    return configs.map((config) => ({ ...config, taskId, tenant: '', token: '', authentication: undefined }))
  }

  /** The run of a message, with its push configuration. */
  const begin = async (
    message: Message | undefined,
    configuration: SendMessageConfiguration | undefined,
  ): Promise<RunView | Admitted> => {
    checkHistoryLength(configuration?.historyLength)
    const push = configuration?.taskPushNotificationConfig
    if (push) await checkPush(push)
    const run = await accept(message)
    if (push) await putPush(push, run.id)
    return run
  }

  return guard(
    {
      getAgentCard: async () => card,
      getAuthenticatedExtendedAgentCard: async () => {
        throw new UnsupportedOperationError('this agent has no extended card')
      },
      async sendMessage({ message, configuration }) {
        const run = await begin(message, configuration)
        const wait = configuration?.returnImmediately ? 0 : maxWaitMs
        const settled =
          wait === 0 ? await readOwn(run.id) : await settle('prompt' in run ? run.id : run, wait)
        return toOwnTask(settled, configuration?.historyLength)
      },
      async *sendMessageStream({ message, configuration }) {
        const { id } = await begin(message, configuration)
        yield* follow(await readOwn(id), true)
      },
      async *resubscribe({ id }) {
        const run = await readOwn(id)
        if (isEnded(run))
          throw new UnsupportedOperationError(
            `the task "${id}" has ended (${run.status}): read it with GetTask`,
          )
        yield* follow(run, false)
      },
      async getTask({ id, historyLength }) {
        checkHistoryLength(historyLength)
        return toOwnTask(await readOwn(id), historyLength)
      },
      async cancelTask({ id }) {
        await readOwn(id)
        try {
          await business.cancel(id, 'cancelled by the agent that asked for it')
        } catch (error) {
          if (isMasonError(error, 'run_ended')) throw new TaskNotCancelableError(error.message)
          throw error
        }
        return toOwnTask(await settle(id, cancelWaitMs))
      },
      listTasks,
      async createTaskPushNotificationConfig(config) {
        await readOwn(config.taskId)
        return putPush(config, config.taskId)
      },
      async getTaskPushNotificationConfig({ taskId, id }) {
        const config = (await listPushes(taskId)).find((one) => one.id === (id || taskId))
        if (!config) throw new TaskNotFoundError('the task has no push configuration of this id')
        return config
      },
      listTaskPushNotificationConfigs: async ({ taskId }) => ({
        configs: await listPushes(taskId),
        nextPageToken: '',
      }),
      async deleteTaskPushNotificationConfig({ taskId, id }) {
        await readOwn(taskId)
        await pushes.remove(businessId, taskId, id || taskId)
      },
    },
    call,
  )
}

/** Every error is the protocol's own, or is reported. */
const guard = (handler: RequestHandler, call: AgentCall): RequestHandler => {
  const convert = (error: unknown): Error => {
    call.isAnswered = true
    const known = toA2AError(error)
    if (known) return known
    call.onError(error)
    return new A2AError('something went wrong on our side')
  }
  async function* guardStream(events: AsyncGenerator<StreamResponse, void, undefined>) {
    try {
      for await (const event of events) {
        call.isAnswered = true
        yield event
      }
    } catch (error) {
      throw convert(error)
    }
  }
  const { sendMessageStream, resubscribe, ...others } = handler
  const guarded = Object.entries(others).map(([name, method]) => [
    name,
    async (...input: never[]) => {
      const result = await (method as (...input: never[]) => Promise<unknown>)(...input).catch(
        (error: unknown) => {
          throw convert(error)
        },
      )
      // some transports read the card before the parameters
      if (name !== 'getAgentCard') call.isAnswered = true
      return result
    },
  ])
  return {
    ...Object.fromEntries(guarded),
    sendMessageStream: (...input) => guardStream(sendMessageStream(...input)),
    resubscribe: (...input) => guardStream(resubscribe(...input)),
  }
}
