import { createIdParams } from '../../routes/parameters.ts'
import { describeAdmin, handleOne } from '../../routes/resource-routes.ts'
import { respondsWith } from '../../routes/route.ts'
import { defineRoutes } from '../definitions.ts'
import { agentCardsRef } from './a2a.ref.ts'
import { agentCardSchema, agentCardViewSchema } from './server/agent-cards.ts'

const cards = {
  path: '/admin/v1/businesses',
  one: 'an agent card',
  many: 'agent cards',
  remedy: 'PUT /admin/v1/businesses/{id}/agent-card adds it',
} as const

/** The card of a business for other agents. With it the business serves A2A, without it not. */
export default defineRoutes({
  needs: { store: agentCardsRef },
  add(app, { store }) {
    const path = `${cards.path}/:id/agent-card`
    const params = createIdParams('business')
    app.get(path, {
      schema: { params },
      config: describeAdmin(cards, 'getAgentCard', 'Returns the agent card of a business', {
        ...respondsWith(200, 'The card', agentCardViewSchema),
      }),
      handler: handleOne(cards, (_, id) => store.get(id)),
    })
    app.put(path, {
      schema: { params, body: agentCardSchema },
      config: describeAdmin(
        cards,
        'putAgentCard',
        'Replaces the agent card of a business, which serves A2A from then on',
        { ...respondsWith(200, 'The card', agentCardViewSchema) },
      ),
      handler: ({ params: { id }, body }) => store.put(id, body),
    })
    app.delete(path, {
      schema: { params },
      config: describeAdmin(cards, 'deleteAgentCard', 'Deletes the agent card of a business, and ends A2A', {
        ...respondsWith(204, 'It is deleted'),
      }),
      handler: async (request, reply) => {
        await handleOne(cards, async (_, id) => (await store.remove(id)) || null)(request)
        return reply.code(204).send()
      },
    })
  },
})
