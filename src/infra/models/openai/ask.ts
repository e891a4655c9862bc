import type { ModelMessage, ModelRequest, ModelTool, ToolCallRequest } from '../../../state/ports.ts'
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

/** The same value with all lone surrogates replaced, keys included. */
const wellFormed = (value: unknown): unknown => {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key.toWellFormed(), wellFormed(one)]))
}

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

const sentMessage = (message: ModelMessage) => {
  if (message.role !== 'assistant') return message
  const { role, content, tool_calls = [] } = message
  if (tool_calls.length === 0) return { role, content }
  return { role, content: content === '' ? null : content, tool_calls: tool_calls.map(sentCall) }
}

const sentTool = ({ name, description, parameters }: ModelTool) => ({
  type: 'function' as const,
  function: { name, description, parameters },
})

const schemaInWords = (schema: Record<string, unknown>): string =>
  `Answer with one JSON object and nothing else. It must match this JSON Schema:\n${JSON.stringify(schema)}`

/** Adds to the first system message, for many chat templates take only one, and only in front. */
const withInstruction = (messages: readonly ModelMessage[], text: string): readonly ModelMessage[] => {
  const [first, ...rest] = messages
  return first?.role === 'system'
    ? [{ role: 'system', content: `${first.content}\n\n${text}` }, ...rest]
    : [{ role: 'system', content: text }, ...messages]
}

const formatOf = ({ role, schema }: ModelRequest, mode: SchemaMode) => {
  if (schema === undefined || mode === 'prompt') return undefined
  if (mode === 'json_object') return { type: 'json_object' as const }
  return { type: 'json_schema' as const, json_schema: { name: role, schema, strict: isStrictSchema(schema) } }
}

/** What goes over the wire, apart from the model's name and the streaming options. */
export const askOf = (request: ModelRequest, mode: SchemaMode) => {
  const { schema, tools = [] } = request
  const inWords = schema !== undefined && mode !== 'json_schema'
  const messages = inWords ? withInstruction(request.messages, schemaInWords(schema)) : request.messages
  const response_format = formatOf(request, mode)
  const ask = {
    messages: messages.map(sentMessage),
    options: {
      ...(tools.length === 0 ? {} : { tools: tools.map(sentTool) }),
      ...(response_format === undefined ? {} : { response_format }),
    },
  }
  return wellFormed(ask) as typeof ask
}

export type Ask = ReturnType<typeof askOf>

/** The ids of all calls in the conversation so far. */
export const usedCallIds = (messages: readonly ModelMessage[]): string[] =>
  messages.flatMap((message) =>
    message.role === 'assistant' ? (message.tool_calls ?? []).map((call) => call.id) : [],
  )
