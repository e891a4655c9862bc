import type { AgentMessage, AgentReply } from '../state/ports/agents.ts'
import type { NodeContext } from './definitions.ts'

type AskContext = Pick<NodeContext<never, 'agents'>, 'agents' | 'effect' | 'wait'>

/**
 * Sends a message to an agent, once, and waits until its task has ended or asks for something. One message in a call. The reply of
 * a task that the agent did not end in time is `failed`.
 */
export const askAgent = async (
  { agents, effect, wait }: AskContext,
  message: AgentMessage,
): Promise<AgentReply> => {
  const reply = agents.read(await effect(await agents.send(message)))
  if ((reply.state !== 'submitted' && reply.state !== 'working') || reply.task_id === null) return reply
  const outcome = await wait(agents.wait(reply))
  if (outcome.reply !== undefined) return agents.read(outcome.reply)
  const reason = String(outcome.error ?? `the task of ${reply.agent} is ${outcome.status}`)
  return { ...reply, state: 'failed', texts: [reason] }
}
