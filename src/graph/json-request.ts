import { z } from 'zod'
import { promptText } from '../context/sections.ts'
import { isMasonError } from '../state/errors.ts'
import { toModelSchema } from '../state/model-schema.ts'
import { readOutage } from '../state/outage.ts'
import type { Log } from '../state/ports/log.ts'
import type { ImagePart } from '../state/ports/model-messages.ts'
import type { ModelReply, ModelRole, Models } from '../state/ports/models.ts'
import type { PromptPart } from '../state/prompt-part.ts'
import type { PromptText } from '../state/provenance.ts'
import type { Usage } from '../state/runtime-state.ts'
import { findJson } from '../state/text/json-in-text.ts'
import { readSpentUsage } from '../state/token-usage.ts'

type JsonRequest<Schema extends z.ZodType> = {
  role: Exclude<ModelRole, 'planner'>
  instructions: PromptText
  parts: readonly PromptPart[]
  images?: readonly ImagePart[]
  schema: Schema
  /** Of several objects in a reply that fit, the last for which this is true counts; else the last one. */
  prefers?: (value: z.infer<Schema>) => boolean
  model?: string | undefined
  /** Called with the reply while it is written; see `streamField`. */
  onText?: (text: string, attempt: number) => void
}

/**
 * A reply that could not be read gives null, with its `text` and the tokens it took: the caller's rules decide then.
 * `by` is the alias that answered; null where none did.
 */
export type JsonReply<Value> = { value: Value | null; usage: Usage; text: string; model: string | null }

/** Roles that rules can take, so that their run need not wait for a model. */
const ruledRoles: ReadonlySet<ModelRole> = new Set(['understand', 'reflection', 'compaction'])

/**
 * One structured call of a role. A reply that cannot be read is null, and so is that of a role with rules where no model
 * is available; any other error of a model is thrown.
 *
 * @example
 * ```ts
 * import { ownText, requestJson, type ToolContext } from 'mason-runtime'
 * import { z } from 'zod'
 *
 * const guess = async ({ models, log }: ToolContext<never, unknown>, signal: AbortSignal) => {
 *   const instructions = ownText`Name the language of the text.`
 *   const schema = z.strictObject({ language: z.string() })
 *   return (await requestJson(models, { role: 'output', instructions, parts: [], schema }, signal, log)).value
 * }
 * ```
 */
export const requestJson = async <Schema extends z.ZodType>(
  models: Models,
  question: JsonRequest<Schema>,
  signal: AbortSignal,
  log: Log,
): Promise<JsonReply<z.infer<Schema>>> => {
  const { role, instructions, parts, images, schema, prefers, model, onText } = question
  try {
    const reply = await models.call(
      {
        role,
        messages: [
          { role: 'system', content: instructions },
          { role: 'user', content: promptText(parts), ...(images && { images }) },
        ],
        parts,
        schema: toModelSchema(schema, 'output'),
        ...(model && { model }),
        ...(onText && { onText }),
      },
      signal,
    )
    const { text, usage, by = reply.model } = reply
    const value = readReply(reply, schema, prefers)
    if (value === null) log.warn({ role, error: describeMismatch(text, schema) }, unread)
    return { value, usage, text, model: by }
  } catch (error) {
    const isUnserved = ruledRoles.has(role) && readOutage(role, error) !== null
    if (!isUnserved && !isMasonError(error, 'model_bad_reply')) throw error
    log.warn({ role, error: String(error) }, isUnserved ? 'no model is available: rules decide' : unread)
    return { value: null, usage: readSpentUsage(error), text: '', model: null }
  }
}

const unread = 'a model reply could not be read'

/** Some servers put JSON that they were asked for into the reasoning, and leave the text empty. */
const readReply = <Schema extends z.ZodType>(
  { text, reasoning }: ModelReply,
  schema: Schema,
  prefers: (value: z.infer<Schema>) => boolean = () => true,
): z.infer<Schema> | null => {
  const said = text.trim() === '' ? reasoning : text
  const find = (accepts: (value: z.infer<Schema>) => boolean) =>
    findJson(said, (value): z.infer<Schema> | null => {
      const parsed = schema.safeParse(value)
      return parsed.success && accepts(parsed.data) ? parsed.data : null
    })
  return find(prefers) ?? find(() => true)
}

const describeMismatch = (text: string, schema: z.ZodType): string => {
  const { error } = schema.safeParse(findJson(text, (value) => value ?? null) ?? undefined)
  return error ? z.prettifyError(error) : 'it holds no JSON'
}
