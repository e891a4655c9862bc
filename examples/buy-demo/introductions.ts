import type { setUpTrust } from '../purchase/stage.ts'
import { type Agents, agentNames } from './agents.ts'

/** Adds the agents of examples/ap2 to a Mason: their keys, those that runs call, and that they are paid over A2A. */
export const introduceAgents = async (
  { call, trust }: Pick<Awaited<ReturnType<typeof setUpTrust>>, 'call' | 'trust'>,
  agents: Agents,
): Promise<void> => {
  for (const name of agentNames) {
    const { url, trusted } = agents[name]
    const [role = ''] = trusted.roles
    await trust(trusted.issuer, trusted, role)
    const row = { name, card_url: `${url}/`, roles: [role] }
    if (name !== 'processor') await call('POST', '/admin/v1/businesses/default/agents', row)
  }
  await call('POST', '/admin/v1/providers', { name: 'agents', kind: 'agent', test: true })
}
