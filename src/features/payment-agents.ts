import type { AgentMessage, AgentReply } from '../state/ports/agents.ts'

/** An agent that an admin has added: its roles, whose trusted key signs its carts, and the origin of its addresses. */
export type PaymentAgent = { roles: readonly string[]; issuer: string; origin: string }

/** How the executor calls the agents of a business. `key` names a message, which is never sent under another one. */
export type PaymentAgents = {
  find(businessId: string, name: string): Promise<PaymentAgent | null>
  /** Resolves with a refusal too; throws only where it is not known whether the agent got it. */
  send(
    businessId: string,
    message: AgentMessage,
    key: string,
    beforeSend: () => void,
    signal: AbortSignal,
  ): Promise<AgentReply>
  /** What became of a message; null: the agent never got it. Throws `effect_unknown` where it cannot say. */
  lookup(
    businessId: string,
    message: AgentMessage,
    key: string,
    signal: AbortSignal,
  ): Promise<AgentReply | null>
  readTask(businessId: string, agent: string, taskId: string, signal: AbortSignal): Promise<AgentReply>
}
