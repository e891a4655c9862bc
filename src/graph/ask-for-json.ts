import { z } from 'zod'
import { isMasonError } from '../state/errors.ts'
import type { Log, ModelRole, Models } from '../state/ports.ts'
import type { Usage } from '../state/runtime-state.ts'
import { noUsage } from '../state/usage.ts'

type JsonQuestion<Schema extends z.ZodType> = {
  role: Exclude<ModelRole, 'planner'>
  instructions: string
  content: string
  schema: Schema
  model?: string | undefined
  /** The reply as it is being written; see `streamField`. */
  onText?: (text: string, attempt: number) => void
}

/** A reply that could not be read gives null, with the tokens it took: the caller's rules decide then. */
export type JsonAnswer<Value> = { value: Value | null; usage: Usage }

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
  const { role, instructions, content, schema, model, onText } = question
  const { $schema: _, ...jsonSchema } = z.toJSONSchema(schema) as Record<string, unknown>
  try {
    const reply = await models.call(
      {
        role,
        messages: [
          { role: 'system', content: instructions },
          { role: 'user', content },
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
    return { value: parsed.success ? parsed.data : null, usage: reply.usage }
  } catch (error) {
    if (!isMasonError(error, 'model_bad_reply')) throw error
    log.warn({ role, fault: error.message }, 'a model reply could not be read')
    const { usage } = (error.detail ?? {}) as { usage?: Usage }
    return { value: null, usage: usage ?? noUsage }
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
