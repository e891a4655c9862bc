import { z } from 'zod'
import { changeOf, faultSchema, labelSchema, plainText, viewOf } from './common.ts'

/** How to ask a vendor that does not speak OpenAI's protocol, and how to read any vendor's answer: data, not code. */

/** A JMESPath expression over the raw answer (or one event of it). */
const path = z.string().min(1).max(4000)

/** Where to find the parts of the canonical result. An expression that gives null: there is no such part. */
const pathsSchema = z.strictObject({
  text: path.optional(),
  reasoning: path.optional(),
  /** A list of `{id?, index?, name?, arguments}`; arguments are an object or JSON text. */
  tool_calls: path.optional(),
  /** A list of `{url}` or `{base64, mime_type?}`, or of texts: addresses, data: addresses or base64. */
  images: path.optional(),
  /** The same, one. */
  video: path.optional(),
  /** A list of vectors, in the order of the inputs. */
  embedding: path.optional(),
  /** A list of `{index, score}`. */
  ranking: path.optional(),
  /** For answers that come later: what to ask for, and how far it is. */
  job_id: path.optional(),
  status: path.optional(),
  finish: path.optional(),
  model: path.optional(),
  /** An error inside a good answer: a text or `{message, code?}`. */
  error: path.optional(),
  /** One expression for an object of the names below, or one each. */
  usage: z
    .union([
      path,
      z.strictObject({
        prompt_tokens: path.optional(),
        completion_tokens: path.optional(),
        total_tokens: path.optional(),
        cached_tokens: path.optional(),
        reasoning_tokens: path.optional(),
      }),
    ])
    .optional(),
})

/** Any JSON in which texts may hold `{{expression}}` over the canonical request. */
const templateSchema = z.json()

/** `{body}` alone may also be given as the template itself, without the other fields. */
export const requestTemplateSchema = z.union([
  z.strictObject({
    method: z.enum(['POST', 'PUT', 'GET']).default('POST'),
    /** Added to the endpoint's base_url; a template too. */
    path: z.string().max(2000).default(''),
    /** In place of `path` when the answer is to be streamed. */
    stream_path: z.string().max(2000).optional(),
    headers: z.record(z.string(), z.string()).default({}),
    body: templateSchema,
  }),
  templateSchema,
])

const streamSchema = z.strictObject({
  format: z.enum(['sse', 'ndjson']),
  /** The text of the event that ends the stream, for example [DONE]. */
  done: z.string().max(200).optional(),
  /** Over each event. Texts are joined, tool calls put together by index, the last usage of each kind counts. */
  paths: pathsSchema,
})

const pollSchema = z.strictObject({
  /** A template over `{job_id, model}`, added to base_url. */
  path: z.string().min(1).max(2000),
  method: z.enum(['GET', 'POST']).default('GET'),
  interval_ms: z.int().min(1).max(600_000).default(2000),
  /** What `paths.status` gives when it is done, and when it failed; anything else is: not yet. */
  done: z.array(z.string()).min(1),
  failed: z.array(z.string()).default([]),
})

const sampleSchema = z.strictObject({
  /** A whole answer as JSON, or the text of a stream. */
  raw: z.json(),
  /** The parts of the canonical result that must come out; parts that are not named may be anything. */
  expected: z.record(z.string(), z.json()),
})

export const formatInputSchema = z.strictObject({
  name: labelSchema,
  category: plainText(200).min(1).default('text'),
  request: requestTemplateSchema.nullish(),
  paths: pathsSchema,
  stream: streamSchema.nullish(),
  poll: pollSchema.nullish(),
  /** JSON Schema of a whole raw answer. */
  schema: z.record(z.string(), z.json()).nullish(),
  samples: z.array(sampleSchema).max(100).default([]),
})

export const formatChangeSchema = changeOf(formatInputSchema)
export const formatViewSchema = viewOf({
  ...formatInputSchema.shape,
  category: z.string(),
  samples: z.array(sampleSchema),
  built_in: z.boolean(),
  /** `inactive` while one of its samples fails; models that use it are passed over then. */
  status: z.enum(['active', 'inactive']),
  /** Why it is inactive. */
  faults: z.array(faultSchema),
})

export type Paths = z.infer<typeof pathsSchema>
export type RequestTemplate = z.infer<typeof requestTemplateSchema>
export type StreamFormat = z.infer<typeof streamSchema>
export type PollFormat = z.infer<typeof pollSchema>
export type Sample = z.infer<typeof sampleSchema>
export type FormatInput = z.infer<typeof formatInputSchema>
export type FormatChange = z.infer<typeof formatChangeSchema>
export type FormatView = z.infer<typeof formatViewSchema>
