import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { takePage } from '../../infra/database/pagination.ts'
import type { ModelGateway } from '../../models/ports/call-ports.ts'
import { MasonError } from '../../state/errors.ts'
import {
  defineEndpointRoutes,
  openAIQuery,
  openAIRoute,
  readGatewayCaller,
  userSchema,
} from './model-gateway.ts'

const modelSchema = z.strictObject({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string().meta({ description: 'The vendor' }),
  category: z.string(),
  capabilities: z.array(z.string()),
})

const toModel = ({ name, vendor, category, capabilities }: ReturnType<ModelGateway['list']>[number]) => ({
  id: name,
  object: 'model' as const,
  // an alias has no date of creation, but clients expect a number
  created: 0,
  owned_by: vendor,
  category,
  capabilities: [...capabilities],
})

type ListedModel = z.infer<typeof modelSchema>

/** A page by alias. OpenAI's clients read the first one only, which has more models than vendors offer. */
const toPage = (models: ReturnType<ModelGateway['list']>, after: string) => {
  const rest = models.filter(({ name }) => name > after).sort((a, b) => (a.name < b.name ? -1 : 1))
  const data: ListedModel[] = takePage(rest.map(toModel))
  return { object: 'list' as const, data, has_more: data.length < rest.length }
}

const modelQuery = openAIQuery.extend({ user: userSchema.optional() })
const listQuery = modelQuery.extend({
  after: z.string().max(200).describe('The last alias of the page before').default(''),
})

/** GET /v1/models and GET /v1/models/{id}: the models that the caller can call, by alias. */
export default defineEndpointRoutes((app, endpoint) => {
  const listOpenTo = (request: FastifyRequest, user: string | undefined) =>
    endpoint.models.list(readGatewayCaller(endpoint, request, user))

  app.get('/v1/models', {
    ...openAIRoute({
      id: 'listModels',
      summary: 'Lists the models that the caller can call, as in the OpenAI API',
      description:
        'A model is listed while it, its vendor and its endpoint are active and a key of its vendor is open to the caller; `user` lists on behalf of a user. At most 1 MiB; where `has_more` is true, `after` the last id gives the next page.',
      role: 'read',
      responses: {
        200: {
          description: 'Models in the order of their aliases',
          schema: z.strictObject({
            object: z.literal('list'),
            data: z.array(modelSchema),
            has_more: z.boolean(),
          }),
        },
      },
    }),
    schema: { querystring: listQuery },
    handler: async (request) => toPage(listOpenTo(request, request.query.user), request.query.after),
  })

  app.get('/v1/models/:id', {
    ...openAIRoute({
      id: 'getModel',
      summary: 'Returns a model',
      role: 'read',
      responses: { 200: { description: 'The model', schema: modelSchema } },
    }),
    schema: {
      params: z.object({ id: z.string().max(200).describe('The alias of the model') }),
      querystring: modelQuery,
    },
    handler: async (request) => {
      const { id } = request.params
      const model = listOpenTo(request, request.query.user).find(({ name }) => name === id)
      if (!model)
        throw new MasonError('not_found', `there is no model "${id}"`, {
          remedy: 'GET /v1/models lists the models that you can call',
        })
      return toModel(model)
    },
  })
})
