import { z } from 'zod'
import { formatInputSchema } from './response-format.ts'

/** What admins try out before they rely on it: a key, a model, a response format, and a format proposed from an answer. */

const errorSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  /** The first place of the answer that is not as the format says. */
  place: z.string().nullish(),
})

export const modelTestInputSchema = z.strictObject({
  /** What is asked; a short question (or text to embed) when absent. */
  prompt: z.string().min(1).max(100_000).optional(),
})

/** One real call. `raw` is the vendor's answer as it came and `parsed` the canonical result, both without any secret. */
export const modelTestViewSchema = z.strictObject({
  ok: z.boolean(),
  raw: z.json(),
  parsed: z.json(),
  usage: z
    .strictObject({
      prompt_tokens: z.int(),
      completion_tokens: z.int(),
      total_tokens: z.int(),
      cached_tokens: z.int(),
      reasoning_tokens: z.int(),
    })
    .nullable(),
  ms: z.number(),
  error: errorSchema.nullable(),
})

/** One real, small call with this key. */
export const probeViewSchema = z.strictObject({
  ok: z.boolean(),
  ms: z.number(),
  error: errorSchema.nullable(),
})

/** `raw`: a whole answer as JSON, or the text of a stream. */
export const formatTestInputSchema = z.strictObject({ raw: z.json() })
export const formatTestViewSchema = z.strictObject({
  ok: z.boolean(),
  parsed: z.json(),
  place: z.string().nullable(),
  detail: z.string().nullable(),
})

export const inferInputSchema = z.strictObject({
  raw: z.json(),
  category: z.string().min(1).max(100).optional(),
})
export const inferViewSchema = z.strictObject({
  /** Can be sent to POST /admin/v1/response-formats as it stands; null where nothing could be read. */
  proposal: formatInputSchema.nullable(),
  /** What it reads in the answer. */
  parsed: z.json(),
  /** The name of the built-in format that reads it as it is. */
  built_in: z.string().nullable(),
  /** What was guessed, and what is missing. */
  unsure: z.array(z.string()),
})

/** An answer that a format could not read, redacted. */
const unreadAnswerSchema = z.strictObject({
  id: z.string(),
  at: z.string(),
  format_id: z.string().nullable(),
  place: z.string(),
  raw: z.string(),
})
export const unreadAnswersSchema = z.strictObject({ data: z.array(unreadAnswerSchema) })

export type ModelTestInput = z.infer<typeof modelTestInputSchema>
export type ModelTestView = z.infer<typeof modelTestViewSchema>
export type ProbeView = z.infer<typeof probeViewSchema>
export type FormatTestView = z.infer<typeof formatTestViewSchema>
export type InferInput = z.infer<typeof inferInputSchema>
export type InferView = z.infer<typeof inferViewSchema>
export type UnreadAnswer = z.infer<typeof unreadAnswerSchema>

/** Real calls on behalf of an admin, outside of routes. Null: there is no such key or model. */
export type ModelAdmin = {
  probe(keyId: string, signal: AbortSignal): Promise<ProbeView | null>
  test(modelId: string, input: ModelTestInput, signal: AbortSignal): Promise<ModelTestView | null>
}
