import { LRUCache } from 'lru-cache'
import { sha256 } from '../../infra/lib/ids.ts'
import {
  type CanonicalMessage,
  type CanonicalRequest,
  type ModelEntry,
  toServerModelKey,
} from '../ports/model-ports.ts'
import type { ProviderError } from '../transport/provider-errors.ts'

/** The form that every vendor takes; Mistral takes no other. */
const plainId = /^[A-Za-z0-9]{9}$/
const maxModels = 10_000

/** Whether a 400 or 422 is about the form of an id of a call, in the words of vendors; not about calls without results. */
const isIdRefusal = ({ status, body = '' }: ProviderError): boolean =>
  (status === 400 || status === 422) &&
  /tool[\s_]?call[\s_]?id|tool_?calls?\W{0,3}\d*\W{0,3}id\b|tool_?use\W?_?id|function[\s_]?call[\s_]?id|\bcall_id\b/i.test(
    body,
  ) &&
  !/did not have|must be followed|no tool (call|output) found|without.{0,40}result/i.test(body)

const listIds = (message: CanonicalMessage): string[] => {
  if (message.role === 'tool') return [message.tool_call_id]
  return message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : []
}

/** An id becomes the same one each time, so that a call and its result stay together; of 46 bits, so that no two are one. */
const toPlain = (id: string): string =>
  plainId.test(id)
    ? id
    : BigInt(`0x${sha256(id)}`)
        .toString(36)
        .slice(-9)

/** The same request with plain ids. */
const withPlainIds = (ask: CanonicalRequest): CanonicalRequest => {
  const messages = ask.messages.map((message): CanonicalMessage => {
    if (message.role === 'tool') return { ...message, tool_call_id: toPlain(message.tool_call_id) }
    if (message.role !== 'assistant' || message.tool_calls === undefined) return message
    return { ...message, tool_calls: message.tool_calls.map((call) => ({ ...call, id: toPlain(call.id) })) }
  })
  return { ...ask, messages }
}

/** The models whose servers take plain ids of calls only: calls of one vendor may be sent to another. */
export const createCallIdForms = () => {
  const plainOnly = new LRUCache<string, true>({ max: maxModels })
  return {
    apply: (model: ModelEntry, ask: CanonicalRequest): CanonicalRequest =>
      plainOnly.has(toServerModelKey(model)) ? withPlainIds(ask) : ask,
    /** Notes a refusal of ids; true: the request can be sent again with others. */
    noteRefusal(model: ModelEntry, ask: CanonicalRequest, error: ProviderError): boolean {
      const name = toServerModelKey(model)
      const isPlain = ask.messages.flatMap(listIds).every((id) => plainId.test(id))
      if (isPlain || plainOnly.has(name) || !isIdRefusal(error)) return false
      plainOnly.set(name, true)
      return true
    },
  }
}
