import { z } from 'zod'
import { respondsWith } from '../../routes/route.ts'
import { MasonError } from '../../state/errors.ts'
import {
  answerByGateway,
  defineEndpointRoutes,
  describeOpenAIObject,
  emptyGatewayRequest,
  type GatewayRequest,
  type GatewayResponse,
  modelAliasSchema,
  modelCallRoute,
  openAIQuery,
  openGatewayCall,
  userSchema,
} from './model-gateway.ts'

const text = z.string('must be a text; lists of tokens are not supported').min(1, 'must not be empty')

/** The body: https://platform.openai.com/docs/api-reference/embeddings/create */
const embeddingsRequestSchema = z
  .object({
    model: modelAliasSchema,
    input: z
      .union([text, z.array(text).min(1).max(2048)], 'must be a text or a list of 1 to 2048 texts')
      .describe('A text, or up to 2048'),
    encoding_format: z
      .enum(['float', 'base64'])
      .describe('Lists of numbers, or 32-bit floats in base64')
      .nullish(),
    dimensions: z
      .int()
      .min(1)
      .describe('How many numbers a vector has, where the vendor can choose')
      .nullish(),
    user: userSchema.nullish(),
  })
  .meta({ examples: [{ model: 'embedder', input: ['Which orders were returned?'] }] })
type EmbeddingsRequest = z.infer<typeof embeddingsRequestSchema>

const toGatewayRequest = ({ input, dimensions, user }: EmbeddingsRequest): GatewayRequest => ({
  ...emptyGatewayRequest,
  input: [input].flat(),
  parameters: { ...(dimensions != null && { dimensions }), ...(user != null && { user }) },
})

/** 32-bit floats, the lowest byte first. */
const toBase64 = (vector: readonly number[]): string => {
  const bytes = Buffer.allocUnsafe(vector.length * 4)
  vector.forEach((number, at) => {
    bytes.writeFloatLE(number, at * 4)
  })
  return bytes.toString('base64')
}

const toResponse = ({ result, model, usage }: GatewayResponse, { encoding_format }: EmbeddingsRequest) => ({
  object: 'list',
  data: result.embeddings.map((vector, index) => ({
    object: 'embedding',
    index,
    embedding: encoding_format === 'base64' ? toBase64(vector) : vector,
  })),
  model,
  usage: { prompt_tokens: usage.prompt_tokens, total_tokens: usage.total_tokens },
})

const embeddingsSchema = describeOpenAIObject(
  'embeddings/object',
  '`model` is the alias of the model that answered.',
)

/** POST /v1/embeddings: any embedding model of the registry. */
export default defineEndpointRoutes((app, endpoint) => {
  app.post('/v1/embeddings', {
    ...modelCallRoute({
      id: 'createEmbedding',
      summary: 'Embeds texts by a model of the registry, as in the OpenAI API',
      ...respondsWith(200, 'A list of embeddings', embeddingsSchema),
    }),
    schema: { querystring: openAIQuery, body: embeddingsRequestSchema },
    handler: async (request, reply) => {
      const gatewayRequest = toGatewayRequest(request.body)
      const call = openGatewayCall(endpoint, request, reply, { category: 'embedding' })
      return answerByGateway(call, gatewayRequest, (response) => {
        const { length } = response.result.embeddings
        const textCount = gatewayRequest.input.length
        if (length !== textCount)
          throw new MasonError('model_bad_reply', `${length} embeddings came for ${textCount} texts`)
        return toResponse(response, request.body)
      })
    },
  })
})
