import { z } from 'zod'
import { plainText } from '../../state/registry/common.ts'
import { type AskMessage, doorRole, type ModelAsk } from './service.ts'

/**
 * The body of POST /v1/chat/completions, https://platform.openai.com/docs/api-reference/chat/create. Fields that are
 * not named here are dropped, as OpenAI-compatible servers do; ranges are for the vendor to judge.
 */

const textPart = z.object({ type: z.literal('text'), text: z.string() })
const refusalPart = z.object({ type: z.literal('refusal'), refusal: z.string() })
const imagePart = z.object({
  type: z.literal('image_url'),
  image_url: z.object({ url: z.string().min(1), detail: z.enum(['auto', 'low', 'high']).nullish() }),
})

const imageAddress = /^data:image\/[\w.+-]+;base64,/i
const notData = 'must be a data: URL of an image (data:image/png;base64,…); other addresses are not fetched'

/** Text and images; these as data, for the server that would fetch an address may stand where the caller may not look. */
const userContent = z
  .union([z.string(), z.array(z.discriminatedUnion('type', [textPart, imagePart])).min(1)], {
    error: 'must be a text or a list of text and image_url parts',
  })
  .superRefine((content, context) => {
    if (typeof content === 'string') return
    for (const [at, part] of content.entries())
      if (part.type === 'image_url' && !imageAddress.test(part.image_url.url.slice(0, 100)))
        context.addIssue({
          code: 'custom',
          path: [at, 'image_url', 'url'],
          message: notData,
          input: part.image_url.url.slice(0, 100),
        })
  })

const textContent = z.union([z.string(), z.array(textPart).min(1)], {
  error: 'must be a text or a list of text parts',
})

const toolCall = z.object({
  id: z.string().min(1),
  type: z.literal('function').default('function'),
  function: z.object({ name: z.string().min(1), arguments: z.string() }),
})

const message = z.discriminatedUnion('role', [
  z.object({ role: z.enum(['system', 'developer']), content: textContent }),
  z.object({ role: z.literal('user'), content: userContent }),
  z.object({
    role: z.literal('assistant'),
    content: z
      .union([z.string(), z.array(z.discriminatedUnion('type', [textPart, refusalPart]))], {
        error: 'must be a text, a list of text parts, or null',
      })
      .nullish(),
    tool_calls: z.array(toolCall).nullish(),
    /** As our answers have it; vendors that think between calls want it back. */
    reasoning_content: z.string().nullish(),
  }),
  z.object({ role: z.literal('tool'), content: textContent, tool_call_id: z.string().min(1) }),
])

const tool = z.object({
  type: z.literal('function'),
  function: z.object({
    name: z.string().min(1).max(200),
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.json()).nullish(),
  }),
})

const responseFormat = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    json_schema: z.object({
      name: z.string().min(1),
      description: z.string().optional(),
      schema: z.record(z.string(), z.json()),
      strict: z.boolean().nullish(),
    }),
  }),
])

/** What goes to the vendor as it came. */
const parameters = z.object({
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  stop: z.union([z.string(), z.array(z.string())], { error: 'must be a text or a list of texts' }).nullish(),
  seed: z.int().nullish(),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  logit_bias: z.record(z.string(), z.number()).nullish(),
  reasoning_effort: z.string().nullish(),
  verbosity: z.string().nullish(),
  user: plainText(200).min(1).nullish(),
  response_format: responseFormat.nullish(),
})

/** What only a request with tools may say. */
const toolParameters = z.object({
  tool_choice: z
    .union(
      [
        z.enum(['none', 'auto', 'required']),
        z.object({ type: z.literal('function'), function: z.object({ name: z.string().min(1) }) }),
      ],
      { error: 'must be none, auto, required, or {type: "function", function: {name}}' },
    )
    .nullish(),
  parallel_tool_calls: z.boolean().nullish(),
})

export const chatRequestSchema = z.object({
  model: z.string().min(1).max(200),
  messages: z.array(message).min(1),
  ...parameters.shape,
  tools: z.array(tool).nullish(),
  ...toolParameters.shape,
  n: z.literal(1, 'only one choice can be made').nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
})

export type ChatRequest = z.infer<typeof chatRequestSchema>

type Part = z.infer<typeof textPart> | z.infer<typeof refusalPart>

const plainOf = (content: string | readonly Part[] | null | undefined): string =>
  typeof content === 'string'
    ? content
    : (content ?? []).map((part) => (part.type === 'text' ? part.text : part.refusal)).join('\n')

const userMessage = (content: Extract<z.infer<typeof message>, { role: 'user' }>['content']): AskMessage => {
  if (typeof content === 'string') return { role: 'user', content }
  const parts = content.map((part) => {
    if (part.type === 'text') return part
    const { url, detail } = part.image_url
    return { type: part.type, image_url: { url, ...(detail != null && { detail }) } }
  })
  const texts = parts.filter((part) => part.type === 'text')
  // text alone goes on as text: not every server takes parts
  return texts.length === parts.length
    ? { role: 'user', content: plainOf(texts) }
    : { role: 'user', content: parts }
}

const messageOf = (said: z.infer<typeof message>, model: string): AskMessage => {
  switch (said.role) {
    case 'system':
    case 'developer':
      return { role: 'system', content: plainOf(said.content) }
    case 'user':
      return userMessage(said.content)
    case 'assistant': {
      const calls = (said.tool_calls ?? []).map((call) => ({ id: call.id, ...call.function }))
      return {
        role: 'assistant',
        content: plainOf(said.content),
        ...(calls.length > 0 && { tool_calls: calls }),
        // whoever said it answers to this alias, as far as we can know
        ...(said.reasoning_content && { reasoning: { text: said.reasoning_content, by: model } }),
      }
    }
    case 'tool':
      return { role: 'tool', content: plainOf(said.content), tool_call_id: said.tool_call_id }
    default:
      throw said satisfies never
  }
}

/** The fields among these that were given. */
const pick = (names: readonly string[], body: Record<string, unknown>): ModelAsk['parameters'] =>
  Object.fromEntries(
    names.filter((name) => body[name] != null).map((name) => [name, body[name]]),
  ) as ModelAsk['parameters']

const names = Object.keys(parameters.shape)
const toolNames = Object.keys(toolParameters.shape)

export const chatAskOf = (body: ChatRequest): ModelAsk => {
  const tools = (body.tools ?? []).map(({ function: { name, description, parameters } }) => ({
    name,
    description: description ?? '',
    parameters: parameters ?? { type: 'object', properties: {} },
  }))
  const format = body.response_format
  return {
    role: doorRole,
    messages: body.messages.map((said) => messageOf(said, body.model)),
    tools,
    schema: format?.type === 'json_schema' ? format.json_schema.schema : null,
    input: [],
    query: null,
    prompt: null,
    parameters: pick(tools.length > 0 ? [...names, ...toolNames] : names, body),
    stream: body.stream === true,
  }
}
