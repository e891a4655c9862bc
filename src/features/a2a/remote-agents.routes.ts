import { resourceRoutes } from '../../routes/resource-routes.ts'
import { defineRoutes } from '../definitions.ts'
import { remoteAgentsRef } from './a2a.ref.ts'
import { remoteAgentSchemas } from './client/remote-agents.ts'

/** Agents of others that the runs of a business may call. */
export default defineRoutes({
  needs: { agents: remoteAgentsRef },
  add(app, { agents }) {
    resourceRoutes(app, {
      path: '/admin/v1/businesses/:business_id/agents',
      one: 'an agent',
      many: 'agents',
      ids: ['RemoteAgent', 'RemoteAgents'],
      ...remoteAgentSchemas,
      summaries: {
        create: 'Adds an agent that runs of the business may call; its card is read',
        change: 'Changes an agent, and reads its card again; absent fields stay unchanged',
        remove: 'Deletes an agent',
      },
      problems: { create: ['secret_unreadable'], change: ['secret_unreadable'] },
      store: () => agents,
    })
  },
})
