import { z } from 'zod'
import { createPlainTextSchema } from '../../state/resource-schema.ts'
import { emptyGatewayRequest, type GatewayMessage, type GatewayRequest } from './model-gateway.ts'

/**
 * The body of POST /v1/chat/completions, https://platform.openai.com/docs/api-reference/chat/create. Unknown fields are
 * dropped, as OpenAI-compatible servers do; the vendor checks ranges.
 */

/** Of parts, of tools, of the calls of one message. */
const maxItems = 2048

/** Whatever a body has is JSON: to check as many values as it may have would block the process. */
const parsedJson = z.unknown() as unknown as ReturnType<typeof z.json>

const textPart = z.object({ type: z.literal('text'), text: z.string() })
const refusalPart = z.object({ type: z.literal('refusal'), refusal: z.string() })
const imagePart = z.object({
  type: z.literal('image_url'),
  image_url: z.object({ url: z.string().min(1), detail: z.enum(['auto', 'low', 'high']).nullish() }),
})

const imageAddress = /^data:image\/[\w.+-]+;base64,/i
const notDataUrl =
  'must be a data: URL of an image (data:image/png;base64,…); other addresses are not fetched'

/** Text and images. Images are data only: fetching an address could reach hosts that the caller cannot. */
const userContent = z
  .union(
    [
      z.string(),
      z
        .array(z.discriminatedUnion('type', [textPart, imagePart]))
        .min(1)
        .max(maxItems),
    ],
    {
      error: `must be a text or a list of text and image_url parts, at most ${maxItems}`,
    },
  )
  .superRefine((content, context) => {
    if (typeof content === 'string') return
    for (const [at, part] of content.entries())
      if (part.type === 'image_url' && !imageAddress.test(part.image_url.url.slice(0, 100)))
        context.addIssue({
          code: 'custom',
          path: [at, 'image_url', 'url'],
          message: notDataUrl,
          input: part.image_url.url.slice(0, 100),
        })
  })

const textContent = z.union([z.string(), z.array(textPart).min(1).max(maxItems)], {
  error: `must be a text or a list of text parts, at most ${maxItems}`,
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
      .union([z.string(), z.array(z.discriminatedUnion('type', [textPart, refusalPart])).max(maxItems)], {
        error: `must be a text, a list of at most ${maxItems} text parts, or null`,
      })
      .nullish(),
    tool_calls: z.array(toolCall).max(maxItems).nullish(),
    /** As our responses have it; vendors that reason between calls need it back. */
    reasoning_content: z.string().nullish(),
  }),
  z.object({ role: z.literal('tool'), content: textContent, tool_call_id: z.string().min(1) }),
])

const tool = z.object({
  type: z.literal('function'),
  function: z.object({
    name: z.string().min(1).max(200),
    description: z.string().nullish(),
    parameters: z.record(z.string(), parsedJson).nullish(),
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
      schema: z.record(z.string(), parsedJson),
      strict: z.boolean().nullish(),
    }),
  }),
])

/** Sent to the vendor unchanged. */
const parameters = z.object({
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  stop: z
    .union([z.string(), z.array(z.string()).max(maxItems)], { error: 'must be a text or a list of texts' })
    .nullish(),
  seed: z.int().nullish(),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  logit_bias: z.record(z.string(), z.number()).nullish(),
  reasoning_effort: z.string().nullish(),
  verbosity: z.string().nullish(),
  user: createPlainTextSchema(200).min(1).nullish(),
  response_format: responseFormat.nullish(),
})

/** Sent to the vendor only with tools. */
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

/** The body of a chat completion request. */
export const chatRequestSchema = z.object({
  model: z.string().min(1).max(200),
  messages: z.array(message).min(1),
  ...parameters.shape,
  tools: z.array(tool).max(maxItems).nullish(),
  ...toolParameters.shape,
  n: z.literal(1, 'only one choice is supported').nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
})

/** A validated chat completion request. */
export type ChatRequest = z.infer<typeof chatRequestSchema>

type Part = z.infer<typeof textPart> | z.infer<typeof refusalPart>

const toText = (content: string | readonly Part[] | null | undefined): string =>
  typeof content === 'string'
    ? content
    : (content ?? []).map((part) => (part.type === 'text' ? part.text : part.refusal)).join('\n')

const toUserMessage = (
  content: Extract<z.infer<typeof message>, { role: 'user' }>['content'],
): GatewayMessage => {
  if (typeof content === 'string') return { role: 'user', content }
  const parts = content.map((part) => {
    if (part.type === 'text') return part
    const { url, detail } = part.image_url
    return { type: part.type, image_url: { url, ...(detail != null && { detail }) } }
  })
  const texts = parts.filter((part) => part.type === 'text')
  // text alone is sent as a string: not every server accepts parts
  return texts.length === parts.length
    ? { role: 'user', content: toText(texts) }
    : { role: 'user', content: parts }
}

const toGatewayMessage = (sent: z.infer<typeof message>, model: string): GatewayMessage => {
  switch (sent.role) {
    case 'system':
    case 'developer':
      return { role: 'system', content: toText(sent.content) }
    case 'user':
      return toUserMessage(sent.content)
    case 'assistant': {
      const calls = (sent.tool_calls ?? []).map((call) => ({ id: call.id, ...call.function }))
      return {
        role: 'assistant',
        content: toText(sent.content),
        ...(calls.length > 0 && { tool_calls: calls }),
        // the model that reasoned is not part of the request; the alias is the best guess
        ...(sent.reasoning_content && { reasoning: { text: sent.reasoning_content, by: model } }),
      }
    }
    case 'tool':
      return { role: 'tool', content: toText(sent.content), tool_call_id: sent.tool_call_id }
    default:
      throw sent satisfies never
  }
}

/** The fields of these names that are set. */
const pick = (names: readonly string[], body: Record<string, unknown>): GatewayRequest['parameters'] =>
  Object.fromEntries(
    names.filter((name) => body[name] != null).map((name) => [name, body[name]]),
  ) as GatewayRequest['parameters']

const names = Object.keys(parameters.shape)
const toolNames = Object.keys(toolParameters.shape)

/** The gateway's request for a chat completion request. */
export const toGatewayRequest = (body: ChatRequest): GatewayRequest => {
  const tools = (body.tools ?? []).map(({ function: { name, description, parameters } }) => ({
    name,
    description: description ?? '',
    parameters: parameters ?? { type: 'object', properties: {} },
  }))
  const format = body.response_format
  return {
    ...emptyGatewayRequest,
    messages: body.messages.map((sent) => toGatewayMessage(sent, body.model)),
    tools,
    schema: format?.type === 'json_schema' ? format.json_schema.schema : null,
    parameters: pick(tools.length > 0 ? [...names, ...toolNames] : names, body),
    stream: body.stream === true,
  }
}
