import { z } from 'zod'

/** Tests by admins: of a key, a model and a response format. */

const errorSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  /** The first path of the format that cannot be read in the response. */
  place: z.string().nullish(),
})

/** The body of a test of a model. */
export const modelTestInputSchema = z
  .strictObject({
    prompt: z
      .string()
      .min(1)
      .max(100_000)
      .describe('What is sent; absent: a short question, or text to embed')
      .optional(),
  })
  .meta({ examples: [{ prompt: 'Say hello.' }] })

/** One real call. `raw` is the vendor's response and `parsed` the canonical result, both without secrets. */
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
export const probeViewSchema = modelTestViewSchema.pick({ ok: true, ms: true, error: true })

const rawSchema = z.json().describe('A whole response of the vendor as JSON, or the text of a stream')
const rawExample = { output: { text: 'Hello!' }, usage: { in: 12, out: 3 } }

/** A response that a format is tested with. */
export const formatTestInputSchema = z
  .strictObject({ raw: rawSchema })
  .meta({ examples: [{ raw: rawExample }] })
/** The response beside what a format reads in it. `place` and `detail` describe what cannot be read. */
export const formatTestViewSchema = z.strictObject({
  ok: z.boolean(),
  raw: z.json(),
  parsed: z.json(),
  place: z.string().nullable(),
  detail: z.string().nullable(),
})

/** A response that a format could not read, redacted. */
export const unreadAnswerSchema = z.strictObject({
  id: z.string(),
  at: z.string(),
  format_id: z.string().nullable(),
  place: z.string(),
  raw: z.string(),
})
/** The body of a test of a model. */
export type ModelTestInput = z.infer<typeof modelTestInputSchema>
/** The result of one test call. */
export type ModelTestView = z.infer<typeof modelTestViewSchema>
/** The result of a probe of a key. */
export type ProbeView = z.infer<typeof probeViewSchema>
/** The result of a test of a format. */
export type FormatTestView = z.infer<typeof formatTestViewSchema>
/** A response that a format could not read. */
export type UnreadAnswer = z.infer<typeof unreadAnswerSchema>

/** Real calls for an admin, without routes. Null: there is no such key or model. */
export type ModelProbes = {
  probe(keyId: string, signal: AbortSignal): Promise<ProbeView | null>
  test(modelId: string, input: ModelTestInput, signal: AbortSignal): Promise<ModelTestView | null>
}
