import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { respondsWith } from '../../routes/route.ts'
import { MasonError } from '../../state/errors.ts'
import { createPlainTextSchema } from '../../state/resource-schema.ts'
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

const createWord = (description: string) =>
  createPlainTextSchema(100).min(1).describe(`${description}, as the vendor names it`).nullish()
const user = userSchema.nullish()

/** https://platform.openai.com/docs/api-reference/images/create */
const imagesBody = z
  .object({
    model: modelAliasSchema,
    prompt: z.string().min(1).max(32_000).describe('What the image shows'),
    n: z.int().min(1).max(10).describe('How many images').nullish(),
    size: createWord('Width and height'),
    quality: createWord('The quality'),
    style: createWord('The style'),
    background: createWord('The background'),
    output_format: createWord('The file type'),
    response_format: z.enum(['url', 'b64_json']).describe('Addresses or base64').nullish(),
    stream: z.literal(false, 'images are not streamed').describe('Images are not streamed').nullish(),
    user,
  })
  .meta({ examples: [{ model: 'painter', prompt: 'a cat', n: 1, size: '1024x1024' }] })

/** https://platform.openai.com/docs/api-reference/audio/createSpeech */
const speechBody = z
  .object({
    model: modelAliasSchema,
    input: z.string().min(1).max(32_000).describe('The text that is read'),
    voice: createWord('The voice'),
    instructions: z.string().max(32_000).describe('How it is read').nullish(),
    response_format: createWord('The file type'),
    speed: z.number().min(0.25).max(4).describe('The speed; 1 is usual').nullish(),
    stream_format: z
      .literal('audio', 'only whole recordings are sent')
      .describe('Only whole recordings are sent')
      .nullish(),
    user,
  })
  .meta({ examples: [{ model: 'speaker', input: 'Good morning', voice: 'nova' }] })

/** https://platform.openai.com/docs/api-reference/audio/createTranscription, a form: all but the file is text */
const transcriptionBody = z.object({
  model: modelAliasSchema,
  file: z.file('must be a file').min(1, 'must not be empty').describe('The recording'),
  language: createWord('The language'),
  prompt: z.string().max(32_000).describe('Names and words that occur').optional(),
  temperature: z.coerce
    .number()
    .min(0)
    .max(1)
    .describe('How much chance there is in the choice of words')
    .optional(),
  response_format: z
    .enum(['json', 'text'], 'must be json or text: no others are made here')
    .describe('JSON, or the text alone')
    .optional(),
  stream: z
    .literal('false', 'transcriptions are not streamed')
    .describe('Transcriptions are not streamed')
    .optional(),
  user,
})

/** The fields that are set go on to the vendor, those that only this endpoint reads left out. */
const toRequest = (
  prompt: string | null,
  { model: _, ...parameters }: Record<string, unknown>,
  files?: GatewayRequest['files'],
): GatewayRequest => ({
  ...emptyGatewayRequest,
  prompt,
  ...(files && { files }),
  parameters: Object.fromEntries(
    Object.entries(parameters).filter(([name, value]) => value != null && !/^stream/.test(name)),
  ) as GatewayRequest['parameters'],
})

const toUsage = ({ usage: { prompt_tokens, completion_tokens, total_tokens } }: GatewayResponse) => ({
  input_tokens: prompt_tokens,
  output_tokens: completion_tokens,
  total_tokens,
})

const countedByVendor = '`usage` is what it took, as far as the vendor counts tokens.'

const toImages = (response: GatewayResponse) => ({
  created: Math.floor(Date.now() / 1000),
  data: response.result.images.map((image) =>
    'url' in image ? { url: image.url } : { b64_json: image.base64 },
  ),
  usage: toUsage(response),
})

const sendRecording = ({ result: { audio } }: GatewayResponse, reply: FastifyReply): FastifyReply => {
  if (audio === null || !('base64' in audio))
    throw new MasonError('model_bad_reply', 'the recording came as an address, which is not fetched here')
  return reply.type(audio.mime_type ?? 'audio/mpeg').send(Buffer.from(audio.base64, 'base64'))
}

/** POST /v1/images/generations, /v1/audio/transcriptions and /v1/audio/speech: models of these categories. */
export default defineEndpointRoutes((app, endpoint) => {
  app.post('/v1/images/generations', {
    ...modelCallRoute({
      id: 'createImage',
      summary: 'Makes images by a model of the registry, as in the OpenAI API',
      description: 'Images are base64 or addresses, as the vendor gives them.',
      ...respondsWith(200, 'A list of images', describeOpenAIObject('images/object', countedByVendor)),
    }),
    schema: { querystring: openAIQuery, body: imagesBody },
    handler: (request, reply) => {
      const { prompt, ...body } = request.body
      const call = openGatewayCall(endpoint, request, reply, { category: 'text-to-image' })
      return answerByGateway(call, toRequest(prompt, body), toImages)
    },
  })

  app.post('/v1/audio/speech', {
    ...modelCallRoute({
      id: 'createSpeech',
      summary: 'Reads a text aloud by a model of the registry, as in the OpenAI API',
      responses: { 200: { description: 'The recording', type: 'application/octet-stream' } },
    }),
    schema: { querystring: openAIQuery, body: speechBody },
    handler: (request, reply) => {
      const { input, ...body } = request.body
      const call = openGatewayCall(endpoint, request, reply, { category: 'text-to-speech' })
      return answerByGateway(call, toRequest(input, body), (response) => sendRecording(response, reply))
    },
  })

  app.post('/v1/audio/transcriptions', {
    ...modelCallRoute({
      id: 'createTranscription',
      summary: 'Writes down a recording by a model of the registry, as in the OpenAI API',
      form: true,
      ...respondsWith(200, 'The text', describeOpenAIObject('audio/json-object', countedByVendor)),
    }),
    schema: { querystring: openAIQuery, body: transcriptionBody },
    handler: async (request, reply) => {
      const { file, prompt = null, response_format, ...body } = request.body
      const base64 = Buffer.from(await file.arrayBuffer()).toString('base64')
      const files = [{ name: file.name, mime_type: file.type || 'application/octet-stream', base64 }]
      const call = openGatewayCall(endpoint, request, reply, { category: 'speech-to-text' })
      return answerByGateway(call, toRequest(prompt, body, files), (response) => {
        const { text } = response.result
        if (response_format === 'text') return reply.type('text/plain; charset=utf-8').send(text)
        return { text, usage: { type: 'tokens', ...toUsage(response) } }
      })
    },
  })
})
