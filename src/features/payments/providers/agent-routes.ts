import type { PaymentAgent, PaymentAgents } from '../../payment-agents.ts'
import { createViolation, type Violation } from '../mandates/violations.ts'
import type { ApprovedOrder } from './provider.ts'

/** The agent of a name with a role, or why there is none. */
export const findAgent = async (
  agents: PaymentAgents,
  businessId: string,
  name: string,
  role: string,
): Promise<PaymentAgent | string> => {
  const agent = await agents.find(businessId, name)
  if (!agent) return `there is no agent "${name}": an admin adds it`
  return agent.roles.includes(role) ? agent : `the agent "${name}" has not the role ${role}: an admin adds it`
}

/** Why an order cannot go over the agent of its route: only the agent of the merchant that signed the cart is paid. */
export const findRouteProblems = async (
  agents: PaymentAgents,
  businessId: string,
  { request: { route }, payee_issuer }: ApprovedOrder,
): Promise<Violation[]> => {
  const refuse = (field: string, text: string) => [createViolation('no_route', field, text)]
  if (!route) return refuse('route', 'is missing: pay a cart that came over A2A')
  const merchant = await findAgent(agents, businessId, route.agent, 'merchant')
  if (typeof merchant === 'string') return refuse('route.agent', `cannot be paid: ${merchant}`)
  const { issuer } = merchant
  if (
    payee_issuer.startsWith('demo:') ||
    issuer === payee_issuer ||
    issuer === payee_issuer.replace(/\/$/, '')
  )
    return []
  return refuse(
    'route.agent',
    `is that of ${issuer}, and ${payee_issuer} signed the cart: an admin sets the issuer of the agent`,
  )
}
