import { z } from 'zod'
import { askAgent } from '../../graph/ask-agent.ts'
import { errorDraft } from '../../graph/call-drafts.ts'
import { chooseAgent } from '../../graph/choose-agent.ts'
import type { NodeContext } from '../../graph/definitions.ts'
import type { ActionDraft } from '../../state/checkpoint.ts'
import type { AgentMessage, AgentPart, AgentReply } from '../../state/ports/agents.ts'
import type { FeatureServices } from '../../state/ports/services.ts'
import type { Json } from '../../state/runtime-state.ts'
import { toPlainLine } from '../../state/text/plain-line.ts'
import { explainFailure } from '../ap2-failures.ts'
import { ap2Defaults, ap2Keys } from '../ap2-wire.ts'

/** What the data parts of an agent's reply say. */
type ReplyParts = ReturnType<FeatureServices['payments']['readParts']>
/** A cart or checkout of a merchant, of which nothing is verified. */
export type AgentOffer = ReplyParts['offers'][number]

type ShoppingContext = Pick<
  NodeContext<never, 'agents' | 'payments'>,
  'agents' | 'payments' | 'effect' | 'wait'
>

/** How a call names an agent. */
export const agentNameSchema = z.string().min(1).max(64)

/** A data part of one key, as the samples of AP2 send them. */
export const dataPart = (key: string, value: Json): AgentPart => ({ data: { [key]: value } })

const maxWords = 1000

const words = ({ texts }: AgentReply): string => toPlainLine(texts.join(' '), maxWords) || 'no reason'

/** Ends a call with an error that has words of an agent, which are not trusted. */
export const failCall = <State>(
  { checkpoint }: { checkpoint(draft: ActionDraft): State },
  summary: string,
  text: string,
): State => {
  const draft = errorDraft(summary, `Error: ${text}`)
  return checkpoint({ ...draft, result: { ...draft.result, provenance: 'agent' } })
}

/** Why a reply is of no use: what the failure means and what to do, or the agent's own words; null: it is of use. */
const explainReply = (reply: AgentReply): string | null => {
  const { agent, state } = reply
  if (state === 'completed') return null
  const reason = explainFailure(reply.texts)
  if (reason !== null) return `${agent} refused: ${reason}.`
  if (state === 'input-required' || state === 'auth-required')
    return `${agent} asks for something first: ${words(reply)}. Answer with call_agent and the task_id ${reply.task_id}, then call this again.`
  return `${agent} did not do it (${state}): ${words(reply)}. Tell the user, and try another way or another agent.`
}

/** Sends a message of AP2 and reads the reply. One message in a call. */
export const askShop = async (
  { payments, ...context }: ShoppingContext,
  message: AgentMessage,
): Promise<{ parts: ReplyParts; context_id: string | null } | { problem: string }> => {
  const reply = await askAgent(context, message)
  const problem = explainReply(reply)
  if (problem !== null) return { problem }
  return { parts: payments.readParts(reply.data), context_id: reply.context_id ?? message.context_id ?? null }
}

/** Asks the merchant of this name, or the only one, for offers. */
export const searchShop = async (
  context: ShoppingContext,
  named: string | undefined,
  search: readonly AgentPart[],
) => {
  const { name: agent } = await chooseAgent(context.agents, 'merchant', named)
  const riskData = dataPart(ap2Keys.riskData, ap2Defaults.riskData)
  const shopper = dataPart(ap2Keys.shoppingAgentId, ap2Defaults.shoppingAgentId)
  return { agent, reply: await askShop(context, { agent, parts: [...search, riskData, shopper] }) }
}

/** Why there is nothing in a reply that could be read. */
export const sayProblems = (problems: readonly string[]): string =>
  problems.length === 0 ? '' : ` What it sent cannot be used: ${problems.join('; ')}.`
