import { z } from 'zod'

/** A server's description of its error. `names`: its codes and types, joined. */
export type UpstreamError = { message?: string; names: string; status?: number }

const word = z.union([z.string(), z.number()]).nullish().catch(null)
const detailSchema = z.object({
  message: z.string().nullish().catch(null),
  code: word,
  type: word,
  status: word,
  innererror: z.object({ code: word }).nullish().catch(null),
})
const bodySchema = z.object({
  error: z.union([z.string(), detailSchema]).nullish().catch(null),
  detail: z.unknown().optional(),
})

const httpStatus = (value: unknown): number | undefined => {
  const status = Number(value)
  return Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined
}

const maxMessageLength = 4000
const maxNamesLength = 1000

/** The start of a value's JSON; empty where it is nested too deeply. */
export const toJsonHead = (value: unknown, maxLength: number): string => {
  try {
    const cut = (_: string, item: unknown) => (typeof item === 'string' ? item.slice(0, maxLength) : item)
    return (JSON.stringify(value, cut) ?? '').slice(0, maxLength)
  } catch {
    return ''
  }
}

/** The start of a server's description of its error. */
const describe = (names: string, message: string | undefined, status: number | undefined): UpstreamError => ({
  names: names.slice(0, maxNamesLength),
  ...(message !== undefined && { message: message.slice(0, maxMessageLength) }),
  ...(status !== undefined && { status }),
})

/** Reads an error body: `{error: {message, code, type}}`, `{error: "…"}`, `{message}`, `{detail}`; nothing in another one. */
export const readUpstreamError = (json: unknown): UpstreamError => {
  // Gemini's OpenAI-compatible endpoint wraps the object into a list
  const root = bodySchema.safeParse(Array.isArray(json) ? json[0] : json)
  if (!root.success) return { names: '' }
  const { error, detail } = root.data
  if (typeof error === 'string') return describe(error, error, undefined)
  const description = error ?? detailSchema.safeParse(Array.isArray(json) ? json[0] : json).data
  const names = [description?.code, description?.type, description?.innererror?.code]
    .filter((name) => name != null)
    .join(' ')
  const status = httpStatus(description?.code) ?? httpStatus(description?.status)
  const message =
    description?.message ?? (detail === undefined ? undefined : toJsonHead(detail, maxMessageLength))
  return describe(names, message, status)
}

const filteredPattern = /content_?filter|content_policy|content_management|ResponsibleAI|moderation/i
const tooLongPattern =
  /context_length|context_window|exceed_context|context_too_long|string_above_max_length/i
const tooLongMessagePattern =
  /maximum context length|context (?:window|size|length)\b.{0,200}exceed|exceed.{0,200}context (?:window|size|length)|prompt is too long|input tokens exceed/i

/**
 * The kinds of refusal that a status alone does not show. Names come first; the context limit is also detected by the
 * message, because llama.cpp, vLLM and Anthropic's OpenAI-compatible endpoint have no name for it.
 */
export const classifyUpstreamError = ({
  names,
  message = '',
}: UpstreamError):
  | 'model_content_filtered'
  | 'model_context_too_long'
  | 'out_of_quota'
  | 'rate_limited'
  | undefined => {
  if (filteredPattern.test(names)) return 'model_content_filtered'
  if (tooLongPattern.test(names) || tooLongMessagePattern.test(message)) return 'model_context_too_long'
  if (/insufficient_quota|billing/i.test(names)) return 'out_of_quota'
  if (/rate_?limit/i.test(names)) return 'rate_limited'
  return undefined
}

/** At most 300 characters of a server's words, on one line, without markup. */
export const excerpt = (text: string): string => {
  const plain = text
    .slice(0, 4000)
    .replace(/<[^<>]*>/g, ' ')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is to be removed
    .replace(/[\s\u0000-\u001f\u007f]+/g, ' ')
    .trim()
    .toWellFormed()
  return plain.length > 300 ? `${plain.slice(0, 299).toWellFormed()}…` : plain
}
