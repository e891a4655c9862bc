import { remoteAgentSchemas } from '../../../accounts/remote-agents.ts'
import type { App, ServerContext } from '../plumbing/route.ts'
import { resourceRoutes } from './resource-routes.ts'

/** Agents of others that the runs of a business may call. */
export const remoteAgentsRoutes = (app: App, { runtime }: ServerContext): void => {
  const { remoteAgents } = runtime.admin
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
    store: () => ({
      list: ({ business_id = '' }, page) => remoteAgents.list(business_id, page),
      create: ({ business_id = '' }, input) => remoteAgents.create(business_id, input),
      get: ({ business_id = '' }, id) => remoteAgents.get(business_id, id),
      change: ({ business_id = '' }, id, change) => remoteAgents.change(business_id, id, change),
      remove: ({ business_id = '' }, id) => remoteAgents.remove(business_id, id),
    }),
  })
}
