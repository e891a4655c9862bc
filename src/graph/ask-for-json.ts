import { z } from 'zod'
import { isMasonError } from '../state/errors.ts'
import type { ImagePart, Log, ModelRole, Models } from '../state/ports.ts'
import type { Usage } from '../state/runtime-state.ts'
import { noUsage } from '../state/usage.ts'

type JsonQuestion<Schema extends z.ZodType> = {
  role: Exclude<ModelRole, 'planner'>
  instructions: string
  content: string
  images?: readonly ImagePart[]
  schema: Schema
  model?: string | undefined
  /** The reply as it is being written; see `streamField`. */
  onText?: (text: string, attempt: number) => void
}

/**
 * A reply that could not be read gives null, with its `text` and the tokens it took: the caller's rules decide then.
 * `by` is the alias that answered; null where nobody did.
 */
export type JsonAnswer<Value> = { value: Value | null; usage: Usage; text: string; by: string | null }

/**
 * One structured call of a role. A reply that cannot be read is null; a model that cannot be reached throws its
 * `model_*` error.
 */
export const askForJson = async <Schema extends z.ZodType>(
  models: Models,
  question: JsonQuestion<Schema>,
  signal: AbortSignal,
  log: Log,
): Promise<JsonAnswer<z.infer<Schema>>> => {
  const { role, instructions, content, images, schema, model, onText } = question
  const { $schema: _, ...jsonSchema } = z.toJSONSchema(schema) as Record<string, unknown>
  try {
    const reply = await models.call(
      {
        role,
        messages: [
          { role: 'system', content: instructions },
          { role: 'user', content, ...(images && { images }) },
        ],
        schema: jsonSchema,
        ...(model && { model }),
        ...(onText && { onText }),
      },
      signal,
    )
    const parsed = schema.safeParse(readJson(reply.text))
    if (!parsed.success)
      log.warn({ role, fault: z.prettifyError(parsed.error) }, 'a model reply could not be read')
    const { text, usage, by = reply.model } = reply
    return { value: parsed.success ? parsed.data : null, usage, text, by }
  } catch (error) {
    if (!isMasonError(error, 'model_bad_reply')) throw error
    log.warn({ role, fault: error.message }, 'a model reply could not be read')
    const { usage } = (error.detail ?? {}) as { usage?: Usage }
    return { value: null, usage: usage ?? noUsage, text: '', by: null }
  }
}

/** The JSON in a reply, also where the model put it into a code fence or beside words. */
const readJson = (text: string): unknown => {
  const fenced = /```(?:json)?\s*([\s\S]*?)```/.exec(text)?.[1]
  for (const candidate of [text, fenced, text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)]) {
    if (!candidate) continue
    try {
      return JSON.parse(candidate)
    } catch {}
  }
  return undefined
}
