import type { Json } from '../runtime-state.ts'
import type { EffectRequest } from './effects.ts'
import type { WaitRequest } from './waits.ts'

/** A part of a message to an agent: words, or data under names that both sides know. */
export type AgentPart = { text: string } | { data: { [key: string]: Json } }

/** What is sent to the agent of this name. `context_id` and `task_id`: as an earlier reply of it named them. */
export type AgentMessage = {
  agent: string
  parts: AgentPart[]
  context_id?: string | undefined
  task_id?: string | undefined
}

/** The states of a task, as A2A 0.3 writes them. */
export const agentStates = [
  'submitted',
  'working',
  'completed',
  'failed',
  'canceled',
  'rejected',
  'input-required',
  'auth-required',
] as const

/** What an agent answered. Nothing in it is trusted. `rejected` is also what it, or Mason, refused at once: `texts` says why. */
export type AgentReply = {
  agent: string
  task_id: string | null
  context_id: string | null
  state: (typeof agentStates)[number]
  /** Text parts: of the status message, then of artifacts, in order. */
  texts: string[]
  /** Data parts: of artifacts, then of the status message, in order. */
  data: { [key: string]: Json }[]
  /** By which the agent's pushes name this message; null: it was asked for none. */
  push_id: string | null
  /** Whether Mason could not reach the agent, so that nothing was sent. Never set by what an agent says. */
  is_unreached?: true
}

/** An agent that the business may call, as its card describes it. `roles`: those of AP2 that an admin allowed it. */
export type RemoteAgent = {
  name: string
  roles: string[]
  description: string
  url: string
  skills: { id: string; name: string; description: string }[]
}

/** How runs call agents that an admin has added for their business. */
export type Agents = {
  /** All of them, or those of a role, by name. */
  list(role?: string): Promise<RemoteAgent[]>
  /** Sends a message once. The response is for `read`. Throws `not_found` where there is no such agent. */
  send(message: AgentMessage): Promise<EffectRequest>
  /** Waits for a task that is still open; the outcome is for `read`. */
  wait(reply: AgentReply): WaitRequest
  /** The reply in the response of `send`, or in the outcome of `wait`. */
  read(answer: Json): AgentReply
}

declare module './services.ts' {
  interface Services {
    agents: Agents
  }
}
