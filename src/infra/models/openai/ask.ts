import type { ModelTool, ToolCallRequest } from '../../../state/ports.ts'
import type { AskMessage, ModelAsk } from '../ports.ts'
import { isStrictSchema } from './json-schema.ts'

/** How a JSON answer is asked for, from the best way down to the one every server knows. */
const schemaModes = ['json_schema', 'json_object', 'prompt'] as const
export type SchemaMode = (typeof schemaModes)[number]

/** The next way down after a refusal of this one, or undefined. */
export const lowerMode = (mode: SchemaMode): SchemaMode | undefined =>
  schemaModes[schemaModes.indexOf(mode) + 1]

/** Whether a 400 or 422 is about `response_format`, as OpenAI, vLLM, DeepSeek and llama.cpp word it. */
export const refusesFormat = (fault: { status?: number; body?: string }): boolean =>
  (fault.status === 400 || fault.status === 422) && /response_format|json_schema/i.test(fault.body ?? '')

const isObjectText = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** Chat templates parse the arguments of earlier calls, so what is no object goes back wrapped in one. */
const sentArguments = (text: string): string =>
  isObjectText(text) ? text : JSON.stringify({ unreadable_arguments: text })

const sentCall = (call: ToolCallRequest) => ({
  id: call.id,
  type: 'function' as const,
  function: { name: call.name, arguments: sentArguments(call.arguments) },
})

const sentMessage = (message: AskMessage) => {
  if (message.role !== 'assistant') return message
  const { role, content, tool_calls = [], reasoning } = message
  if (tool_calls.length === 0) return { role, content }
  return {
    role,
    content: content === '' ? null : content,
    // models that think between calls want it back with them: DeepSeek refuses the conversation without
    ...(reasoning !== undefined && { reasoning_content: reasoning.text }),
    tool_calls: tool_calls.map(sentCall),
  }
}

const sentTool = ({ name, description, parameters }: ModelTool) => ({
  type: 'function' as const,
  function: { name, description, parameters },
})

const schemaInWords = (schema: Record<string, unknown>): string =>
  `Answer with one JSON object and nothing else. It must match this JSON Schema:\n${JSON.stringify(schema)}`

/** Adds to the first system message, for many chat templates take only one, and only in front. */
const withInstruction = (messages: readonly AskMessage[], text: string): readonly AskMessage[] => {
  const [first, ...rest] = messages
  return first?.role === 'system'
    ? [{ role: 'system', content: `${first.content}\n\n${text}` }, ...rest]
    : [{ role: 'system', content: text }, ...messages]
}

type JsonSchemaFormat = {
  type: 'json_schema'
  json_schema: { name: string; schema: Record<string, unknown>; strict: boolean }
}

const formatOf = ({ role, schema, parameters }: ModelAsk, mode: SchemaMode) => {
  if (schema === null || mode === 'prompt') return undefined
  if (mode === 'json_object') return { type: 'json_object' as const }
  // as the caller of the door worded it
  if (parameters.response_format !== undefined)
    return parameters.response_format as unknown as JsonSchemaFormat
  // OpenAI takes no other characters, and no more
  const name = role.replaceAll(/[^\w-]/g, '_').slice(0, 64)
  return { type: 'json_schema' as const, json_schema: { name, schema, strict: isStrictSchema(schema) } }
}

/** What the conversation itself says, and parameters may not say again. */
const own = new Set(['model', 'messages', 'tools', 'stream', 'stream_options', 'n'])

/** What goes over the wire, apart from the model's name and the streaming options. */
export const askOf = (asked: ModelAsk, mode: SchemaMode) => {
  const { schema, tools } = asked
  const inWords = schema !== null && mode !== 'json_schema'
  const messages = inWords ? withInstruction(asked.messages, schemaInWords(schema)) : asked.messages
  const response_format = formatOf(asked, mode)
  return {
    messages: messages.map(sentMessage),
    options: {
      ...(tools.length === 0 ? {} : { tools: tools.map(sentTool) }),
      ...(response_format === undefined ? {} : { response_format }),
    },
    parameters: Object.fromEntries(
      Object.entries(asked.parameters).filter(
        ([name]) => !own.has(name) && !(schema !== null && name === 'response_format'),
      ),
    ),
  }
}

export type Ask = ReturnType<typeof askOf>

/** The ids of all calls in the conversation so far. */
export const usedCallIds = (messages: readonly AskMessage[]): string[] =>
  messages.flatMap((message) =>
    message.role === 'assistant' ? (message.tool_calls ?? []).map((call) => call.id) : [],
  )
