import { z } from 'zod'
import { MasonError } from '../../state/errors.ts'
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

/** GET /v1/models and GET /v1/models/{id}: the active models of the registry, by alias. */
export const modelsRoutes = (app: App, { runtime }: ServerContext): void => {
  app.get('/v1/models', {
    ...doorRoute({
      id: 'listModels',
      summary: 'Lists the models there are, as OpenAI has it',
      role: 'read',
      answers: {
        200: {
          description: 'All of them',
          schema: z.strictObject({ object: z.literal('list'), data: z.array(modelSchema) }),
        },
      },
    }),
    schema: { querystring: doorQuery },
    handler: async () => ({ object: 'list', data: runtime.modelService.list().map(shown) }),
  })

  app.get('/v1/models/:id', {
    ...doorRoute({
      id: 'getModel',
      summary: 'Shows a model',
      role: 'read',
      answers: { 200: { description: 'The model', schema: modelSchema } },
      problems: ['not_found'],
    }),
    schema: { params: z.object({ id: z.string().max(200) }), querystring: doorQuery },
    handler: async ({ params: { id } }) => {
      const model = runtime.modelService.list().find(({ name }) => name === id)
      if (!model)
        throw new MasonError('not_found', `there is no model "${id}"`, {
          remedy: 'GET /v1/models lists the models there are',
        })
      return shown(model)
    },
  })
}
