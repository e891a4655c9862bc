import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { MasonError } from '../../state/errors.ts'
import { plainText } from '../../state/registry/common.ts'
import { businessOf } from '../auth.ts'
import type { App, ServerContext } from '../route.ts'
import { doorQuery, doorRoute } from './door.ts'
import type { ModelService } from './service.ts'

const modelSchema = z.strictObject({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string().meta({ description: 'The vendor' }),
  category: z.string(),
  capabilities: z.array(z.string()),
})
type Model = z.infer<typeof modelSchema>

const shown = ({
  name,
  vendor,
  category,
  capabilities,
}: ReturnType<ModelService['list']>[number]): Model => ({
  id: name,
  object: 'model',
  // of no meaning for an alias, but clients expect a number
  created: 0,
  owned_by: vendor,
  category,
  capabilities: [...capabilities],
})

/** `user`: on behalf of a user, who may have been granted keys of his own. */
const listQuery = doorQuery.extend({ user: plainText(200).min(1).optional() })

/** GET /v1/models and GET /v1/models/{id}: what the caller could call, by alias. */
export const modelsRoutes = (app: App, { runtime }: ServerContext): void => {
  const openTo = (request: FastifyRequest, user: string | undefined) => {
    const { caller, query, body } = request
    const business_id = caller === null ? 'default' : businessOf(caller, query, body)
    return runtime.modelService.list({ business_id, user_id: user ?? null, run_id: null })
  }

  app.get('/v1/models', {
    ...doorRoute({
      id: 'listModels',
      summary: 'Lists the models that the caller can call, as OpenAI has it',
      description:
        'A model is listed while it, its vendor and its endpoint are active and a key of its vendor is for the caller; `user` asks on behalf of a user.',
      role: 'read',
      answers: {
        200: {
          description: 'All of them',
          schema: z.strictObject({ object: z.literal('list'), data: z.array(modelSchema) }),
        },
      },
    }),
    schema: { querystring: listQuery },
    handler: async (request) => ({
      object: 'list',
      data: openTo(request, request.query.user).map(shown),
    }),
  })

  app.get('/v1/models/:id', {
    ...doorRoute({
      id: 'getModel',
      summary: 'Shows a model',
      role: 'read',
      answers: { 200: { description: 'The model', schema: modelSchema } },
      problems: ['not_found'],
    }),
    schema: { params: z.object({ id: z.string().max(200) }), querystring: listQuery },
    handler: async (request) => {
      const { id } = request.params
      const model = openTo(request, request.query.user).find(({ name }) => name === id)
      if (!model)
        throw new MasonError('not_found', `there is no model "${id}"`, {
          remedy: 'GET /v1/models lists those that you can call',
        })
      return shown(model)
    },
  })
}
