import { z } from 'zod'
import { MasonError } from '../../state/errors.ts'
import { plainText } from '../../state/registry/common.ts'
import type { App, ServerContext } from '../route.ts'
import { askAs, doorQuery, doorRoute, mended, wantedOf } from './door.ts'
import { type Answered, doorRole, type ModelAsk } from './service.ts'

const text = z.string().min(1, 'must not be empty')

/** https://platform.openai.com/docs/api-reference/embeddings/create */
const embeddingsRequestSchema = z.object({
  model: z.string().min(1).max(200),
  input: z.union([text, z.array(text).min(1).max(2048)], {
    error: 'must be a text or a list of 1 to 2048 texts, none of them empty; lists of tokens are not taken',
  }),
  encoding_format: z.enum(['float', 'base64']).nullish(),
  dimensions: z.int().min(1).nullish(),
  user: plainText(200).min(1).nullish(),
})
type EmbeddingsRequest = z.infer<typeof embeddingsRequestSchema>

const askOf = ({ input, dimensions, user }: EmbeddingsRequest): ModelAsk => ({
  role: doorRole,
  messages: [],
  tools: [],
  schema: null,
  input: [input].flat(),
  query: null,
  prompt: null,
  parameters: { ...(dimensions != null && { dimensions }), ...(user != null && { user }) },
  stream: false,
})

/** 32-bit floats, the lowest byte first. */
const base64Of = (vector: readonly number[]): string => {
  const bytes = Buffer.allocUnsafe(vector.length * 4)
  vector.forEach((number, at) => {
    bytes.writeFloatLE(number, at * 4)
  })
  return bytes.toString('base64')
}

const answerOf = ({ result, model, usage }: Answered, { encoding_format }: EmbeddingsRequest) => ({
  object: 'list',
  data: result.embeddings.map((vector, index) => ({
    object: 'embedding',
    index,
    embedding: encoding_format === 'base64' ? base64Of(vector) : vector,
  })),
  model,
  usage: { prompt_tokens: usage.prompt_tokens, total_tokens: usage.total_tokens },
})

/** POST /v1/embeddings: any embedding model of the registry. */
export const embeddingsRoutes = (app: App, server: ServerContext): void => {
  app.post('/v1/embeddings', {
    ...doorRoute({
      id: 'createEmbedding',
      summary: 'Embeds texts by a model of the registry, as OpenAI has it',
      role: 'submit',
      answers: { 200: { description: 'A list of embeddings', type: 'application/json' } },
      problems: ['malformed_json', 'payload_too_large', 'unsupported_media_type', 'not_found'],
    }),
    schema: { querystring: doorQuery, body: embeddingsRequestSchema },
    handler: async (request, reply) => {
      const { body } = request
      const { modelService } = server.runtime
      const { caller, signal, over } = askAs(server, request, reply, body.user)
      const wanted = wantedOf(body.model, 'embedding')
      const ask = askOf(body)
      try {
        const answered = await modelService.ask(wanted, ask, caller, () => undefined, signal)
        const { length } = answered.result.embeddings
        if (length !== ask.input.length)
          throw new MasonError('model_bad_reply', `${length} embeddings came for ${ask.input.length} texts`)
        return answerOf(answered, body)
      } catch (error) {
        return over.unanswered(mended(modelService, wanted, error))
      } finally {
        over.release()
      }
    },
  })
}
