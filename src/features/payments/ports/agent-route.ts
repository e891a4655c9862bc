import { z } from 'zod'

const name = z.string().min(1).max(500).nullable()

/**
 * By which agents a payment over A2A goes, as the steps before it named them. It proves nothing: the executor pays the merchant that
 * signed the cart, and asks only agents that an admin has added.
 */
export const agentRouteSchema = z.object({
  agent: z.string().min(1).max(64),
  context_id: name,
  credentials_agent: name,
  credentials_context_id: name,
  alias: name,
  user_email: name,
  risk_data: z.string().min(1).max(100_000).nullable(),
})
/** See `agentRouteSchema`. */
export type AgentRoute = z.infer<typeof agentRouteSchema>
