import { text as readText } from 'node:stream/consumers'
import {
  type Artifact,
  type Message,
  type Part,
  Role,
  type Task,
  TaskState,
  type TaskStatus,
} from '@a2a-js/sdk'
import type { BlobContent } from '../../../files/blobs/blob-content.ts'
import type { RunStatus, RunView } from '../../../state/run-view.ts'
import type { Json } from '../../../state/runtime-state.ts'
import type { readOrigin } from './messages.ts'
import type { TaskAnswer, TaskQuestion } from './task-answers.ts'

type Origin = NonNullable<ReturnType<typeof readOrigin>>

const states: Record<RunStatus, TaskState> = {
  queued: TaskState.TASK_STATE_SUBMITTED,
  running: TaskState.TASK_STATE_WORKING,
  input_required: TaskState.TASK_STATE_INPUT_REQUIRED,
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  cancelled: TaskState.TASK_STATE_CANCELED,
}

/** The runs of a state; null: none are in it, undefined: all of them. */
export const toRunStatus = (state: TaskState): RunStatus | null | undefined => {
  if (state === TaskState.TASK_STATE_UNSPECIFIED) return undefined
  if (state === TaskState.TASK_STATE_AUTH_REQUIRED) return 'running'
  return (Object.keys(states) as RunStatus[]).find((status) => states[status] === state) ?? null
}

/** A run that waits for the approval of a payment needs something from outside the conversation. */
export const toState = (run: Pick<RunView, 'status' | 'consent_request'>): TaskState =>
  run.consent_request && run.status === 'running' ? TaskState.TASK_STATE_AUTH_REQUIRED : states[run.status]

/** Whether nothing changes any more. */
export const isEnded = ({ status }: Pick<RunView, 'status'>): boolean =>
  status === 'completed' || status === 'failed' || status === 'cancelled'

const noMore = { metadata: undefined, filename: '', mediaType: '' }
const toTextPart = (value: string): Part => ({ content: { $case: 'text', value }, ...noMore })
const toDataPart = (value: unknown): Part => ({ content: { $case: 'data', value }, ...noMore })

const toMessage = (
  messageId: string,
  role: Role,
  parts: Part[],
  run: RunView,
  contextId: string,
): Message => ({
  messageId,
  contextId,
  taskId: run.id,
  role,
  parts,
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
})

const toQuestionParts = ({ id, question, schema, options, expires_at }: TaskQuestion): Part[] => [
  toTextPart(question),
  toDataPart({ input_request: { id, schema, options, expires_at } }),
]

/** What the agent says with the status: its question, or why it failed. */
const readStatusParts = ({ input_request, consent_request, error, status }: RunView): Part[] => {
  if (status === 'input_required' && input_request) return toQuestionParts(input_request)
  if (status === 'running' && consent_request)
    return [toTextPart('A person has to approve the payment.'), toDataPart({ consent_request })]
  return error && status === 'failed' ? [toTextPart(error.message)] : []
}

export const toTaskStatus = (run: RunView, { contextId }: Origin): TaskStatus => {
  const parts = readStatusParts(run)
  const id = `${run.id}-${run.input_request?.id ?? run.consent_request?.payment_id ?? run.status}`
  return {
    state: toState(run),
    message: parts.length > 0 ? toMessage(id, Role.ROLE_AGENT, parts, run, contextId) : undefined,
    timestamp: run.ended_at ?? run.started_at ?? run.created_at,
  }
}

/** The artifact that the answer is in; `parts` may be a piece of it. */
const toAnswerArtifact = (parts: Part[]): Artifact => ({
  artifactId: 'answer',
  name: 'answer',
  description: '',
  parts,
  metadata: undefined,
  extensions: [],
})

/** A piece of the answer as it streams. */
export const toAnswerPiece = (text: string): Artifact => toAnswerArtifact([toTextPart(text)])

/** The answer of a run that has one: its text, and its structure where the run has one. */
export const listArtifacts = ({ answer, output_structure, status }: RunView): Artifact[] => {
  if (status !== 'completed') return []
  const fields = Object.fromEntries(output_structure.map(({ id, content }) => [id, content]))
  const parts = [
    ...(answer === null ? [] : [toTextPart(answer)]),
    ...(output_structure.length > 0 ? [toDataPart(fields)] : []),
  ]
  return parts.length > 0 ? [toAnswerArtifact(parts)] : []
}

/** How the answer ended, where it is not whole. */
export const toEndMetadata = ({ finish_reason, status }: RunView): { finish_reason: string } | undefined =>
  status === 'completed' && finish_reason && finish_reason !== 'answered' ? { finish_reason } : undefined

/** How many bytes of data a response may still have. */
export type DataBudget = { remainingBytes: number }
/** So many bytes of data the history of a task has in a response. */
export const maxTaskDataBytes = 256 * 1024
/** Takes so many bytes of a budget; the first that exceed it end it, so that nothing else is opened. */
const takeBytes = (budget: DataBudget, bytes: number): boolean => {
  const fits = bytes <= budget.remainingBytes
  budget.remainingBytes = fits ? budget.remainingBytes - bytes : 0
  return fits
}
const omittedPart = toTextPart('[data left out: the response has reached its limit]')

/** What the history of a task is made of. `openBlob` opens the data of its parts; absent `historyLength`: all messages. */
type TaskHistory = {
  openBlob(sha256: string): Promise<BlobContent | null>
  answers: readonly TaskAnswer[]
  historyLength: number | undefined
  budget?: DataBudget
}

/** The parts of the message that began a run, which are never none: data as they were sent, up to the limit. */
const readOpening = async (
  { prompt }: RunView,
  { parts }: Origin,
  { openBlob }: TaskHistory,
  budget: DataBudget,
): Promise<Part[]> => {
  const read: Part[] = []
  for (const part of parts) {
    if (part === 'text') {
      read.push(toTextPart(prompt))
      continue
    }
    const content = budget.remainingBytes > 0 ? await openBlob(part) : undefined
    if (content === null) continue
    const fits = content !== undefined && takeBytes(budget, content.bytes)
    read.push(fits ? toDataPart(JSON.parse(await readText(content.chunks))) : omittedPart)
  }
  return read.length > 0 ? read : [toTextPart(prompt)]
}

const toAnswerPart = (answer: Json, budget: DataBudget): Part => {
  if (!takeBytes(budget, Buffer.byteLength(JSON.stringify(answer)))) return omittedPart
  return typeof answer === 'string' ? toTextPart(answer) : toDataPart(answer)
}

/** A run as a task. Its history is the message that began it, and the agent's questions with the messages that answered them. */
export const toTask = async (run: RunView, origin: Origin, history: TaskHistory): Promise<Task> => {
  const { contextId, messageId } = origin
  const { answers, historyLength = Infinity, budget = { remainingBytes: maxTaskDataBytes } } = history
  const opening = historyLength > answers.length * 2 ? await readOpening(run, origin, history, budget) : []
  const messages = [
    toMessage(messageId, Role.ROLE_USER, opening, run, contextId),
    ...answers.flatMap((one) => [
      toMessage(`${run.id}-${one.id}`, Role.ROLE_AGENT, toQuestionParts(one), run, contextId),
      toMessage(one.message_id, Role.ROLE_USER, [toAnswerPart(one.stored.answer, budget)], run, contextId),
    ]),
  ]
  return {
    id: run.id,
    contextId,
    status: toTaskStatus(run, origin),
    artifacts: listArtifacts(run),
    history: messages.slice(Math.max(0, messages.length - historyLength)),
    metadata: toEndMetadata(run),
  }
}
