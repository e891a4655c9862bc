import { z } from 'zod'

/** What a server says of its own fault. Every field is optional: servers agree on little. */
export type Upstream = { message?: string; names: string; status?: number }

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

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const httpStatus = (value: unknown): number | undefined => {
  const status = Number(value)
  return Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined
}

/** Reads an error body: `{error: {message, code, type}}`, `{error: "…"}`, `{message}`, `{detail}`, or plain text. */
export const readUpstream = (text: string): Upstream => {
  const json = parse(text)
  // Gemini's OpenAI door wraps the object into a list
  const root = bodySchema.safeParse(Array.isArray(json) ? json[0] : json)
  if (!root.success) return { names: '' }
  const { error, detail } = root.data
  if (typeof error === 'string') return { message: error, names: error }
  const found = error ?? detailSchema.safeParse(Array.isArray(json) ? json[0] : json).data
  const names = [found?.code, found?.type, found?.innererror?.code].filter((name) => name != null).join(' ')
  const status = httpStatus(found?.code) ?? httpStatus(found?.status)
  const message = found?.message ?? (detail === undefined ? undefined : JSON.stringify(detail))
  return { names, ...(message === undefined ? {} : { message }), ...(status === undefined ? {} : { status }) }
}

const filtered = /content_?filter|content_policy|content_management|ResponsibleAI|moderation/i
const tooLong = /context_length|context_window|exceed_context|context_too_long|string_above_max_length/i
const tooLongSaid =
  /maximum context length|context (?:window|size|length)\b.*exceed|exceed.*context (?:window|size|length)|prompt is too long|input tokens exceed/i

/**
 * The kinds of refusal that a status alone does not tell. Names come first; the context limit is also looked
 * for in the message, because llama.cpp, vLLM and Anthropic's door give it no name of its own.
 */
export const classify = ({
  names,
  message = '',
}: Upstream):
  | 'model_content_filtered'
  | 'model_context_too_long'
  | 'out_of_quota'
  | 'rate_limited'
  | undefined => {
  if (filtered.test(names)) return 'model_content_filtered'
  if (tooLong.test(names) || tooLongSaid.test(message)) return 'model_context_too_long'
  if (/insufficient_quota|billing/i.test(names)) return 'out_of_quota'
  if (/rate_?limit/i.test(names)) return 'rate_limited'
  return undefined
}

/** At most 300 characters of what a server said, on one line, without markup. */
export const excerpt = (text: string): string => {
  const plain = text
    .slice(0, 4000)
    .replace(/<[^>]*>/g, ' ')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is to be removed
    .replace(/[\s\u0000-\u001f\u007f]+/g, ' ')
    .trim()
    .toWellFormed()
  return plain.length > 300 ? `${plain.slice(0, 299).toWellFormed()}…` : plain
}
