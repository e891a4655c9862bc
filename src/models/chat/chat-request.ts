import { isJsonObject, parseJsonOrText } from '../../infra/lib/json-text.ts'
import type { ModelTool, ToolCallRequest } from '../../state/ports/model-messages.ts'
import type { CanonicalMessage, CanonicalRequest } from '../ports/model-ports.ts'
import { isStrictSchema } from './strict-schema.ts'

/** How to request a JSON answer, from the best way down to the one that every server supports. */
const schemaModes = ['json_schema', 'json_object', 'prompt'] as const
/** One of the ways to request a JSON answer. */
export type SchemaMode = (typeof schemaModes)[number]

/** The next mode to try after a refusal of this one, or undefined. */
export const lowerSchemaMode = (mode: SchemaMode): SchemaMode | undefined =>
  schemaModes[schemaModes.indexOf(mode) + 1]

/** Chat templates parse the arguments of earlier calls, so other JSON than an object is wrapped in one. */
const toSentArguments = (text: string): string =>
  isJsonObject(parseJsonOrText(text)) ? text : JSON.stringify({ unreadable_arguments: text })

const toSentCall = (call: ToolCallRequest) => ({
  id: call.id,
  type: 'function' as const,
  function: { name: call.name, arguments: toSentArguments(call.arguments) },
})

const toSentMessage = (message: CanonicalMessage) => {
  if (message.role !== 'assistant' || 'prefix' in message) return message
  const { role, content, tool_calls = [], reasoning } = message
  if (tool_calls.length === 0) return { role, content }
  return {
    role,
    content: content === '' ? null : content,
    // models that reason between calls need it back: DeepSeek refuses the conversation without it
    ...(reasoning !== undefined && { reasoning_content: reasoning.text }),
    tool_calls: tool_calls.map(toSentCall),
  }
}

const toSentTool = ({ name, description, parameters, strict }: ModelTool) => ({
  type: 'function' as const,
  function: { name, description, parameters, ...(strict !== undefined && { strict }) },
})

const describeSchema = (schema: Record<string, unknown>): string =>
  `Answer with one JSON object and nothing else. It must match this JSON Schema:\n${JSON.stringify(schema)}`

/** Adds to the first system message: many chat templates accept only one, and only as the first message. */
const withInstruction = (
  messages: readonly CanonicalMessage[],
  text: string,
): readonly CanonicalMessage[] => {
  const [first, ...rest] = messages
  return first?.role === 'system'
    ? [{ role: 'system', content: `${first.content}\n\n${text}` }, ...rest]
    : [{ role: 'system', content: text }, ...messages]
}

type JsonSchemaFormat = {
  type: 'json_schema'
  json_schema: { name: string; schema: Record<string, unknown>; strict: boolean }
}

const toResponseFormat = ({ role, schema, parameters }: CanonicalRequest, mode: SchemaMode) => {
  if (schema === null || mode === 'prompt') return undefined
  if (mode === 'json_object') return { type: 'json_object' as const }
  // as the client of the OpenAI-compatible endpoint sent it
  if (parameters.response_format !== undefined)
    return parameters.response_format as unknown as JsonSchemaFormat
  // OpenAI accepts no other characters and no longer name
  const name = role.replaceAll(/[^\w-]/g, '_').slice(0, 64)
  return { type: 'json_schema' as const, json_schema: { name, schema, strict: isStrictSchema(schema) } }
}

/** Fields that the request itself sets; parameters must not override them. */
const reservedParameters = new Set(['model', 'messages', 'tools', 'stream', 'stream_options', 'n'])

/** The body of a chat request, without the model's name and the streaming options. */
export const toChatRequestBody = (request: CanonicalRequest, mode: SchemaMode) => {
  const { schema, tools } = request
  const inWords = schema !== null && mode !== 'json_schema'
  const messages = inWords ? withInstruction(request.messages, describeSchema(schema)) : request.messages
  const response_format = toResponseFormat(request, mode)
  return {
    messages: messages.map(toSentMessage),
    options: {
      ...(tools.length === 0 ? {} : { tools: tools.map(toSentTool) }),
      ...(response_format === undefined ? {} : { response_format }),
    },
    parameters: Object.fromEntries(
      Object.entries(request.parameters).filter(
        ([name]) => !reservedParameters.has(name) && !(schema !== null && name === 'response_format'),
      ),
    ),
  }
}

/** Messages, LangChain's call options, and further parameters of a chat request. */
export type ChatRequestBody = ReturnType<typeof toChatRequestBody>

/** The ids of all calls in the conversation so far. */
export const collectCallIds = (messages: readonly CanonicalMessage[]): string[] =>
  messages.flatMap((message) =>
    message.role === 'assistant' ? (message.tool_calls ?? []).map((call) => call.id) : [],
  )
