import { type Message, type Part, type Task, TaskState } from '@a2a-js/sdk'
import type { AgentReply } from '../../../state/ports/agents.ts'
import type { Json } from '../../../state/runtime-state.ts'

const states: Record<TaskState, AgentReply['state']> = {
  [TaskState.TASK_STATE_UNSPECIFIED]: 'working',
  [TaskState.UNRECOGNIZED]: 'working',
  [TaskState.TASK_STATE_SUBMITTED]: 'submitted',
  [TaskState.TASK_STATE_WORKING]: 'working',
  [TaskState.TASK_STATE_COMPLETED]: 'completed',
  [TaskState.TASK_STATE_FAILED]: 'failed',
  [TaskState.TASK_STATE_CANCELED]: 'canceled',
  [TaskState.TASK_STATE_REJECTED]: 'rejected',
  [TaskState.TASK_STATE_INPUT_REQUIRED]: 'input-required',
  [TaskState.TASK_STATE_AUTH_REQUIRED]: 'auth-required',
}

/** Files are named, not read. */
const toText = ({ content, filename, mediaType }: Part): string | null => {
  const file = [filename, mediaType].filter(Boolean).join(', ') || 'unnamed'
  switch (content?.$case) {
    case 'text':
      return content.value
    case 'url':
      return `[file: ${file}, at ${content.value}]`
    case 'raw':
      return `[file: ${file}, ${content.value.length} bytes, not read]`
    default:
      return null
  }
}

const toData = ({ content }: Part): AgentReply['data'][number] | null => {
  if (content?.$case !== 'data') return null
  const value = content.value as Json
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : { value }
}

/** What an agent answered: a message, which ends the exchange, or a task. */
export const toAgentReply = (agent: string, answer: Message | Task): AgentReply => {
  const task = 'status' in answer ? answer : null
  const message = (task ? task.status?.message : (answer as Message))?.parts ?? []
  const artifacts = task?.artifacts.flatMap(({ parts }) => parts) ?? []
  return {
    agent,
    task_id: task ? task.id || null : (answer as Message).taskId || null,
    context_id: answer.contextId || null,
    state: task ? states[task.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED] : 'completed',
    texts: [...message, ...artifacts].map(toText).filter((text) => text !== null),
    data: [...artifacts, ...message].map(toData).filter((data) => data !== null),
    push_id: null,
  }
}
