/**
 * By which agents a payment over A2A goes, as the steps before it named them. It proves nothing: the executor pays the merchant that
 * signed the cart, and asks only agents that an admin has added.
 */
export type AgentRoute = {
  agent: string
  context_id: string | null
  credentials_agent: string | null
  credentials_context_id: string | null
  alias: string | null
  user_email: string | null
  risk_data: string | null
}
