import { defineRef } from '../definitions.ts'
import type { RemoteAgents } from './client/remote-agents.ts'
import type { AgentCards } from './server/agent-cards.ts'
import type { AgentPushes } from './server/agent-pushes.ts'

/** The cards that businesses show to other agents. */
export const agentCardsRef = defineRef<AgentCards>('a2a.cards')
/** Where other agents want to hear of their tasks. */
export const agentPushesRef = defineRef<AgentPushes>('a2a.pushes')
/** The agents that runs of a business may call, for admins. */
export const remoteAgentsRef = defineRef<RemoteAgents>('a2a.remote-agents')
