import { z } from 'zod'
import {
  emptyGatewayRequest,
  type GatewayMessage,
  type GatewayRequest,
  modelAliasSchema,
  userSchema,
} from './model-gateway.ts'

/**
 * The body of POST /v1/chat/completions, https://platform.openai.com/docs/api-reference/chat/create. Unknown fields are
 * dropped, as OpenAI-compatible servers do, but for those without which the reply is not what was asked for; the vendor checks ranges.
 */

/** Of parts, of tools, of the calls of one message. */
const maxItems = 2048

/** Whatever a body has is JSON: to check as many values as it may have would block the process. */
const parsedJson = z.unknown() as unknown as ReturnType<typeof z.json>

const partType = <Name extends string>(name: Name) => z.literal(name).describe('The kind of this part')
const textPart = z.object({ type: partType('text'), text: z.string().describe('The text') })
const refusalPart = z.object({
  type: partType('refusal'),
  refusal: z.string().describe('Why it was refused'),
})
const imagePart = z.object({
  type: partType('image_url'),
  image_url: z
    .object({
      url: z.string().min(1).describe('A data: URL'),
      detail: z.enum(['auto', 'low', 'high']).describe('How closely the model looks').nullish(),
    })
    .describe('The image'),
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
  id: z.string().min(1).describe('Its id, which the result names'),
  type: z.literal('function').describe('Always `function`').default('function'),
  function: z
    .object({
      name: z.string().min(1).describe('The name of the tool'),
      arguments: z.string().describe('Its arguments as JSON'),
    })
    .describe('What is called'),
})

const role = <Names extends z.ZodType>(names: Names) => names.describe('Who says it')

const message = z.discriminatedUnion('role', [
  z.object({
    role: role(z.enum(['system', 'developer'])),
    content: textContent.describe('The instructions'),
  }),
  z.object({ role: role(z.literal('user')), content: userContent.describe('The text, or texts and images') }),
  z.object({
    role: role(z.literal('assistant')),
    content: z
      .union([z.string(), z.array(z.discriminatedUnion('type', [textPart, refusalPart])).max(maxItems)], {
        error: `must be a text, a list of at most ${maxItems} text parts, or null`,
      })
      .describe('The reply')
      .nullish(),
    tool_calls: z.array(toolCall).max(maxItems).describe('The tools that it called').nullish(),
    reasoning_content: z
      .string()
      .describe('Its reasoning, as responses have it; vendors that reason between calls need it back')
      .nullish(),
  }),
  z.object({
    role: role(z.literal('tool')),
    content: textContent.describe('The result of the call'),
    tool_call_id: z.string().min(1).describe('The id of the call'),
  }),
])

const tool = z.object({
  type: z.literal('function').describe('Always `function`'),
  function: z
    .object({
      name: z.string().min(1).max(200).describe('Its name'),
      description: z.string().describe('What it does').nullish(),
      parameters: z.record(z.string(), parsedJson).describe('JSON Schema of its arguments').nullish(),
      strict: z.boolean().describe('Whether the vendor holds the arguments to the schema').nullish(),
    })
    .describe('The function'),
})

const answerType = <Name extends string>(name: Name) => z.literal(name).describe('The kind of the answer')

const responseFormat = z.discriminatedUnion('type', [
  z.object({ type: answerType('text') }),
  z.object({ type: answerType('json_object') }),
  z.object({
    type: answerType('json_schema'),
    json_schema: z
      .object({
        name: z.string().min(1).describe('Its name'),
        description: z.string().describe('What it is for').optional(),
        schema: z.record(z.string(), parsedJson).describe('The JSON Schema'),
        strict: z.boolean().describe('Whether the vendor enforces it').nullish(),
      })
      .describe('The schema of the answer'),
  }),
])

/** Sent to the vendor unchanged. */
const parameters = z.object({
  temperature: z.number().describe('How much chance there is in the choice of tokens').nullish(),
  top_p: z.number().describe('The share of likely tokens that is chosen from').nullish(),
  max_tokens: z.int().min(1).describe('Tokens of the reply, at most; the older name').nullish(),
  max_completion_tokens: z.int().min(1).describe('Tokens of the reply, at most').nullish(),
  stop: z
    .union([z.string(), z.array(z.string()).max(maxItems)], { error: 'must be a text or a list of texts' })
    .describe('Texts that end the reply')
    .nullish(),
  seed: z.int().describe('For replies that repeat, where the vendor can').nullish(),
  presence_penalty: z.number().describe('Against tokens that occurred').nullish(),
  frequency_penalty: z.number().describe('Against tokens that occurred often').nullish(),
  logit_bias: z.record(z.string(), z.number()).describe('For or against tokens, by their id').nullish(),
  reasoning_effort: z.string().describe('How much the model reasons, such as `low`').nullish(),
  verbosity: z.string().describe('How long replies are, such as `low`').nullish(),
  user: userSchema.nullish(),
  response_format: responseFormat.describe('What the answer looks like').nullish(),
})

/** Sent to the vendor only with tools. */
const toolParameters = z.object({
  tool_choice: z
    .union(
      [
        z.enum(['none', 'auto', 'required']),
        z.object({
          type: z.literal('function').describe('Always `function`'),
          function: z
            .object({ name: z.string().min(1).describe('The name of the tool') })
            .describe('The tool that must be called'),
        }),
      ],
      { error: 'must be none, auto, required, or {type: "function", function: {name}}' },
    )
    .describe('Whether tools are called, or which')
    .nullish(),
  parallel_tool_calls: z.boolean().describe('Whether several tools may be called at once').nullish(),
})

/** The body of a chat completion request. */
export const chatRequestSchema = z
  .object({
    model: modelAliasSchema,
    messages: z.array(message).min(1).describe('The conversation, the oldest first'),
    ...parameters.shape,
    tools: z.array(tool).max(maxItems).describe('What the model may call').nullish(),
    ...toolParameters.shape,
    n: z.literal(1, 'only one choice is supported').describe('How many replies').nullish(),
    logprobs: z.literal(false, 'log probabilities are not supported').describe('Must not be true').nullish(),
    functions: z
      .array(parsedJson)
      .max(0, 'use `tools` in place of `functions`')
      .describe('Must be empty')
      .nullish(),
    modalities: z
      .array(z.literal('text', 'only text is supported'))
      .max(8)
      .describe('What replies hold')
      .nullish(),
    stream: z.boolean().describe('Whether the reply comes as server-sent events').nullish(),
    stream_options: z
      .object({ include_usage: z.boolean().describe('Whether the last chunk has the usage').nullish() })
      .describe('Options of the stream')
      .nullish(),
  })
  .meta({
    examples: [
      { model: 'gpt-mini', messages: [{ role: 'user', content: 'Say hello.' }], max_completion_tokens: 100 },
    ],
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
  const tools = (body.tools ?? []).map(({ function: { name, description, parameters, strict } }) => ({
    name,
    description: description ?? '',
    parameters: parameters ?? { type: 'object', properties: {} },
    ...(strict != null && { strict }),
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
