import { z } from 'zod'
import type { Usage } from '../../../state/runtime-state.ts'

/** Other people's shape: minimal, and lenient wherever a field is not needed for a reply. */
const text = z.string().nullish().catch(null)
const count = z.number().nonnegative().nullish().catch(null)

const usage = z.object({ prompt_tokens: count, completion_tokens: count, total_tokens: count })

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

/** Tokens as counted by the server, or undefined when it said nothing. */
export const usageOf = (value: z.infer<typeof usage> | null | undefined): Usage | undefined => {
  if (value == null) return undefined
  const prompt = Math.round(value.prompt_tokens ?? 0)
  const completion = Math.round(value.completion_tokens ?? 0)
  const total = Math.round(value.total_tokens ?? 0)
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total === 0 ? prompt + completion : total,
  }
}
