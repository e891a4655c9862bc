import { databaseRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { agentCardsRef } from './a2a.ref.ts'
import { createAgentCards } from './server/agent-cards.ts'

export default defineService({
  provides: agentCardsRef,
  needs: { database: databaseRef },
  start: ({ database }) => createAgentCards(database),
})
