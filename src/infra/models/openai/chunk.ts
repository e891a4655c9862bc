import { z } from 'zod'
import type { MeteredUsage } from '../ports.ts'

/** Other people's shape: minimal, and lenient wherever a field is not needed for a reply. */
const text = z.string().nullish().catch(null)
const count = z.number().nonnegative().nullish().catch(null)

const usage = z.object({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count }).nullish().catch(null),
  completion_tokens_details: z.object({ reasoning_tokens: count }).nullish().catch(null),
  /** DeepSeek's name for the cached ones. */
  prompt_cache_hit_tokens: count,
})

/** Text, or a list of parts as Mistral sends it, of which only the text parts count. */
const content = z
  .union([z.string(), z.array(z.object({ text }).transform((part) => part.text ?? ''))])
  .nullish()
  .catch(null)
  .transform((value) => (Array.isArray(value) ? value.join('') : (value ?? '')))

const toolCall = z.object({
  index: z.number().int().nonnegative().nullish().catch(null),
  id: text,
  function: z
    .object({ name: text, arguments: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish() })
    .nullish(),
})

const message = z.object({
  content,
  reasoning_content: text,
  /** The name OpenRouter and newer vLLM use. */
  reasoning: text,
  refusal: text,
  tool_calls: z.array(toolCall).nullish(),
})

const choice = z.object({
  delta: message.nullish(),
  /** In place of `delta` when the server ignored `stream: true`. */
  message: message.nullish(),
  finish_reason: text,
  /** Where Moonshot reports. */
  usage: usage.nullish().catch(null),
})

/** One event of the stream, or a whole completion. */
export const chunkSchema = z.object({
  object: text,
  model: text,
  choices: z.array(choice).nullish(),
  usage: usage.nullish().catch(null),
})

export type ToolCallPiece = z.infer<typeof toolCall>
export type MessagePiece = z.infer<typeof message>

const whole = (value: number | null | undefined): number => Math.round(value ?? 0)

/** Tokens as counted by the server, or undefined when it said nothing. */
export const usageOf = (value: z.infer<typeof usage> | null | undefined): MeteredUsage | undefined => {
  if (value == null) return undefined
  const prompt = whole(value.prompt_tokens)
  const completion = whole(value.completion_tokens)
  const cached = value.prompt_tokens_details?.cached_tokens ?? value.prompt_cache_hit_tokens
  const reasoning = value.completion_tokens_details?.reasoning_tokens
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: whole(value.total_tokens) || prompt + completion,
    cached_tokens: Math.min(whole(cached), prompt),
    reasoning_tokens: Math.min(whole(reasoning), completion),
  }
}

/** The answer to a request for embeddings; in which order they come is for `index` to say. */
export const embeddingsSchema = z.object({
  data: z.array(
    z.object({ index: z.number().int().nonnegative().nullish(), embedding: z.array(z.number()).min(1) }),
  ),
  model: text,
  usage: usage.nullish().catch(null),
})
