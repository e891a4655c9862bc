import { titles } from '../../context/sections.ts'
import type { ModelMessage, ToolCallRequest } from '../../state/ports/model-messages.ts'
import type { ModelRequest } from '../../state/ports/models.ts'
import { unfenced } from '../../state/provenance.ts'
import type { Json } from '../../state/runtime-state.ts'

/** What the offline model is asked: a request of a role, whose prompt it reads by its parts. */
export type OfflineRequest = Pick<ModelRequest, 'role' | 'parts' | 'tools' | 'schema'> & {
  messages: readonly ModelMessage<string>[]
}

/** A call of one of the product's tools; `arguments` are JSON. */
export type ToolUse = Pick<ToolCallRequest, 'name' | 'arguments'>

export const useTool = (name: string, args: Record<string, Json>): ToolUse => ({
  name,
  arguments: JSON.stringify(args),
})

/** What the offline model answers: text, calls, or both. */
export type OfflineReply = { text: string; tool_calls: readonly ToolUse[] }

/** The text of a part without its fence; empty where the prompt has no such part. */
export const partText = ({ parts = [] }: Pick<OfflineRequest, 'parts'>, title: string): string =>
  unfenced(parts.find((part) => part.title === title && part.text !== '')?.text ?? '')

/** What the user asks. Without parts, as from the OpenAI-compatible endpoint, it is the last message of the user. */
export const promptOf = (request: OfflineRequest): string =>
  partText(request, titles.request) ||
  (request.parts?.length ? '' : (request.messages.findLast(({ role }) => role === 'user')?.content ?? ''))

/** The items of a list in a part, without their dashes. */
export const linesOf = (text: string): string[] =>
  text.split('\n').flatMap((line) => line.replace(/^- /, '').trim() || [])

/** What a call brought, or undefined while it has not been made. */
export type ResultOf = (call: ToolUse) => string | undefined

export const resultsOf = ({ messages }: OfflineRequest): ResultOf => {
  const texts = new Map(
    messages.map((message) => [message.role === 'tool' ? message.tool_call_id : '', message.content]),
  )
  const keyOf = (call: ToolUse): string => `${call.name} ${call.arguments}`
  const calls = messages.flatMap((message) => (message.role === 'assistant' && message.tool_calls) || [])
  const results = new Map(calls.map((call) => [keyOf(call), unfenced(texts.get(call.id) ?? '')]))
  return (call) => results.get(keyOf(call))
}

/** Whether a result says that its call failed. */
export const isFailure = (result: string): boolean =>
  /^(?:Error|Refused|Not run)\b|^\[no result\]/.test(result)
