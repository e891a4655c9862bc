import { z } from 'zod'
import {
  createPlainTextSchema,
  fieldErrorSchema,
  labelSchema,
  toChangeSchema,
  toViewSchema,
} from '../../state/resource-schema.ts'

/** How to call a vendor with a protocol of its own, and how to read the response of any vendor: data, not code. */

/** A JMESPath expression over the raw response (or one event of it). */
const path = z.string().min(1).max(4000)

/** Paths to the parts of the canonical result. Null: the response has no such part. */
const pathsSchema = z.strictObject({
  text: path.optional(),
  reasoning: path.optional(),
  /**
   * A list of `{id?, index?, name?, arguments, whole?, skip?}`; arguments are an object or JSON text. Of a stream: `whole`
   * arguments replace those before; `skip` marks one of the vendor's own tools, which is passed over with its later chunks.
   */
  tool_calls: path.optional(),
  /** A list of `{url}` or `{base64, mime_type?}`, or of texts: URLs, data: URLs or base64. */
  images: path.optional(),
  /** The same, one. */
  video: path.optional(),
  audio: path.optional(),
  /** A list of vectors, in the order of the inputs. */
  embedding: path.optional(),
  /** A list of `{index, score}`. */
  ranking: path.optional(),
  /** For responses that are polled: the job and its status. */
  job_id: path.optional(),
  status: path.optional(),
  finish: path.optional(),
  model: path.optional(),
  /** An error inside a response with status 200: a text or `{message, code?}`. */
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

/** Any JSON in which texts may contain `{{expression}}` over the canonical request. */
const templateSchema = z.json()

/** `{body}` alone may also be given as the template itself, without the other fields. */
export const requestTemplateSchema = z.union([
  z.strictObject({
    method: z.enum(['POST', 'PUT', 'GET']).default('POST'),
    /** Added to the endpoint's base_url; a template too. */
    path: z.string().max(2000).default(''),
    /** Replaces `path` for a streamed response. */
    stream_path: z.string().max(2000).optional(),
    headers: z.record(z.string(), z.string()).default({}),
    /** `multipart`: the members of `body` are form fields; `{base64, mime_type, name}` is a file, a list repeats its field. */
    encoding: z.enum(['json', 'multipart']).optional(),
    /** `bytes`: paths read `{base64, mime_type}` of a body that is not JSON. */
    receives: z.enum(['json', 'bytes']).optional(),
    body: templateSchema,
  }),
  templateSchema,
])

const streamSchema = z.strictObject({
  format: z.enum(['sse', 'ndjson']),
  /** The text of the event that ends the stream, for example [DONE]. */
  done: z.string().max(200).optional(),
  /** Over each event. Texts are joined, tool calls are joined by index, the last usage of each kind counts. */
  paths: pathsSchema,
})

const pollSchema = z.strictObject({
  /** A template over `{job_id, model}`, added to base_url. */
  path: z.string().min(1).max(2000),
  /** The same, where the bytes of a finished job are; absent: the result has them, or their address. */
  content: z.string().min(1).max(2000).optional(),
  method: z.enum(['GET', 'POST']).default('GET'),
  interval_ms: z.int().min(1).max(600_000).default(2000),
  /** The values of `paths.status` for a job that is done or failed; any other value means pending. */
  done: z.array(z.string()).min(1),
  failed: z.array(z.string()).default([]),
})

const sampleSchema = z.strictObject({
  /** A whole response as JSON, or the text of a stream. */
  raw: z.json(),
  /** The expected parts of the canonical result; parts that are not named may have any value. */
  expected: z.record(z.string(), z.json()),
})

/** The body of a new response format. */
export const formatInputSchema = z.strictObject({
  name: labelSchema,
  category: createPlainTextSchema(200).min(1).default('text'),
  request: requestTemplateSchema.nullish(),
  paths: pathsSchema,
  stream: streamSchema.nullish(),
  poll: pollSchema.nullish(),
  /** JSON Schema of a whole raw response. */
  schema: z.record(z.string(), z.json()).nullish(),
  samples: z.array(sampleSchema).max(100).default([]),
})

/** The body of PATCH. */
const formatChangeSchema = toChangeSchema(formatInputSchema)
/** A response format as admins see it. */
export const formatViewSchema = toViewSchema({
  ...formatInputSchema.shape,
  category: z.string(),
  samples: z.array(sampleSchema),
  built_in: z.boolean(),
  /** `inactive` while one of its samples fails; models that use it are skipped then. */
  status: z.enum(['active', 'inactive']),
  /** Why it is inactive. */
  faults: z.array(fieldErrorSchema),
})
/** The bodies and the view of formats. */
export const formatSchemas = { input: formatInputSchema, change: formatChangeSchema, view: formatViewSchema }

/** The paths of a format. */
export type FormatPaths = z.infer<typeof pathsSchema>
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
/** The checked changes of a response format. */
export type FormatChange = z.infer<typeof formatChangeSchema>
/** A response format as admins see it. */
export type FormatView = z.infer<typeof formatViewSchema>
