import { z } from 'zod'
import {
  createPlainTextSchema,
  labelSchema,
  toChangeSchema,
  toViewSchema,
} from '../../state/resource-schema.ts'

/** How to call a vendor with a protocol of its own, and how to read the response of any vendor: data, not code. */

/** A JMESPath expression over the raw response (or one event of it). */
const path = z.string().min(1).max(4000)

/** Paths to the parts of the canonical result. Null: the response has no such part. */
export const formatPathsSchema = z.strictObject({
  text: path.describe('The text of the reply').optional(),
  reasoning: path.describe('The reasoning before it').optional(),
  tool_calls: path
    .describe(
      'A list of `{id?, index?, name?, arguments, whole?, skip?}`; arguments are an object or JSON text. Of a stream: `whole` ' +
        "arguments replace those before; `skip` marks one of the vendor's own tools, which is passed over with its later chunks",
    )
    .optional(),
  images: path
    .describe('A list of `{url}` or `{base64, mime_type?}`, or of texts: URLs, data: URLs or base64')
    .optional(),
  video: path.describe('One video, as an image is described').optional(),
  audio: path.describe('One recording, as an image is described').optional(),
  embedding: path.describe('A list of vectors, in the order of the inputs').optional(),
  ranking: path.describe('A list of `{index, score}`').optional(),
  job_id: path.describe('The id of a job that is polled').optional(),
  status: path.describe('The status of a job that is polled').optional(),
  finish: path.describe('Why the reply ended').optional(),
  model: path.describe('The model that answered').optional(),
  error: path.describe('An error inside a response with status 200: a text or `{message, code?}`').optional(),
  usage: z
    .union([
      path,
      z.strictObject({
        prompt_tokens: path.describe('Tokens of the prompt').optional(),
        completion_tokens: path.describe('Tokens of the reply').optional(),
        total_tokens: path.describe('Tokens of both').optional(),
        cached_tokens: path.describe('Tokens of the prompt that came from a cache').optional(),
        reasoning_tokens: path.describe('Tokens of the reasoning').optional(),
      }),
    ])
    .describe('One expression for an object of these names, or one each')
    .optional(),
})

/** Any JSON in which texts may contain `{{expression}}` over the canonical request. */
const templateSchema = z.json()

/** `{body}` alone may also be given as the template itself, without the other fields. */
export const requestTemplateSchema = z.union([
  z.strictObject({
    method: z.enum(['POST', 'PUT', 'GET']).describe('The method').default('POST'),
    path: z.string().max(2000).describe("Added to the endpoint's base_url; a template too").default(''),
    stream_path: z.string().max(2000).describe('Replaces `path` for a streamed response').optional(),
    headers: z.record(z.string(), z.string()).describe('Headers of its own').default({}),
    encoding: z
      .enum(['json', 'multipart'])
      .describe(
        '`multipart`: the members of `body` are form fields; `{base64, mime_type, name}` is a file, a list repeats its field',
      )
      .optional(),
    receives: z
      .enum(['json', 'bytes'])
      .describe('`bytes`: paths read `{base64, mime_type}` of a body that is not JSON')
      .optional(),
    body: templateSchema.describe('Any JSON; texts may contain `{{expression}}` over the canonical request'),
  }),
  templateSchema,
])

const streamSchema = z.strictObject({
  format: z.enum(['sse', 'ndjson']).describe('Server-sent events, or a line of JSON each'),
  done: z.string().max(200).describe('The text of the event that ends the stream, such as [DONE]').optional(),
  paths: formatPathsSchema.describe(
    'Over each event. Texts are joined, tool calls are joined by index, the last usage of each kind counts',
  ),
})

const pollSchema = z.strictObject({
  path: z.string().min(1).max(2000).describe('A template over `{job_id, model}`, added to base_url'),
  content: z
    .string()
    .min(1)
    .max(2000)
    .describe(
      'The same, where the bytes of a finished job are; absent: the result has them, or their address',
    )
    .optional(),
  method: z.enum(['GET', 'POST']).describe('The method of a poll').default('GET'),
  interval_ms: z.int().min(1).max(600_000).describe('Milliseconds between two polls').default(2000),
  done: z.array(z.string()).min(1).describe('Values of `paths.status` for a finished job'),
  failed: z.array(z.string()).describe('Those for a failed job; any other means pending').default([]),
})

const sampleSchema = z.strictObject({
  raw: z.json().describe('A whole response as JSON, or the text of a stream'),
  expected: z
    .record(z.string(), z.json())
    .describe('The expected parts of the canonical result; parts that are not named may have any value'),
})

/** The body of a new response format. */
export const formatInputSchema = z.strictObject({
  name: labelSchema.describe('A name for people, unique'),
  category: createPlainTextSchema(200).min(1).describe('The category of its models').default('text'),
  request: requestTemplateSchema
    .describe('How a request is written; the template of the body alone will do')
    .nullish(),
  paths: formatPathsSchema.describe(
    'JMESPath expressions over the response, for each part of the canonical result',
  ),
  stream: streamSchema.describe('How a stream is read; null: nothing is streamed').nullish(),
  poll: pollSchema.describe('How a job is polled; null: responses are complete').nullish(),
  schema: z.record(z.string(), z.json()).describe('JSON Schema of a whole raw response').nullish(),
  samples: z.array(sampleSchema).max(100).describe('Responses that it must read').default([]),
})

/** The bodies and the view of formats. */
export const formatSchemas = {
  input: formatInputSchema.meta({
    examples: [
      {
        name: 'acme-text',
        request: { path: '/generate', body: { model: '{{model}}', prompt: '{{prompt}}' } },
        paths: { text: 'output.text', usage: { prompt_tokens: 'usage.in', completion_tokens: 'usage.out' } },
        samples: [{ raw: { output: { text: 'Hi' }, usage: { in: 5, out: 1 } }, expected: { text: 'Hi' } }],
      },
    ],
  }),
  change: toChangeSchema(formatInputSchema).meta({ examples: [{ paths: { text: 'output.text' } }] }),
  view: toViewSchema({
    ...formatInputSchema.shape,
    category: z.string(),
    samples: z.array(sampleSchema),
    built_in: z.boolean(),
  }),
}

/** The paths of a format. */
export type FormatPaths = z.infer<typeof formatPathsSchema>
/** A request template: the full form, or the body alone. */
export type RequestTemplate = z.infer<typeof requestTemplateSchema>
/** How to read the events of a stream. */
export type StreamFormat = z.infer<typeof streamSchema>
/** How to poll a job. */
export type PollFormat = z.infer<typeof pollSchema>
/** A raw response and the expected parts of its result. */
export type FormatSample = z.infer<typeof sampleSchema>
/** The checked body of a new response format. */
export type FormatInput = z.infer<typeof formatInputSchema>
/** A response format as admins see it. */
export type FormatView = z.infer<typeof formatSchemas.view>
