import { estimateTokens } from '../../state/text/tokens.ts'
import { sizeReservedAnswer } from '../metering/reservation-size.ts'
import type { Candidate } from '../ports/call-ports.ts'
import type { CanonicalRequest, CanonicalResult, Reservation } from '../ports/model-ports.ts'
import { listImages } from '../routing/vision.ts'

const readNumber = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null

const listTexts = ({ messages, tools, schema, input, query, prompt }: CanonicalRequest): string[] => [
  ...messages.flatMap((message) => [
    typeof message.content === 'string'
      ? message.content
      : message.content.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    message.role === 'assistant' && message.tool_calls ? JSON.stringify(message.tool_calls) : '',
    message.role === 'assistant' ? (message.reasoning?.text ?? '') : '',
  ]),
  tools.length === 0 ? '' : JSON.stringify(tools),
  schema === null ? '' : JSON.stringify(schema),
  ...input,
  query ?? '',
  prompt ?? '',
]

/** Vendors count by size and in tiles, from 85 to some thousands of tokens; this is typical for a photograph. */
const imageTokens = 1500
const lowDetailTokens = 100

const countImageTokens = (ask: CanonicalRequest): number =>
  listImages(ask).reduce((sum, { detail }) => sum + (detail === 'low' ? lowDetailTokens : imageTokens), 0)

/** The most tokens that a request may use, as an estimate; without a known maximum, no more than its key allows. */
export const estimateRequest = (
  ask: CanonicalRequest,
  { model, key }: Candidate,
): Reservation['estimate'] => {
  const prompt_tokens = listTexts(ask).reduce(
    (sum, text) => sum + estimateTokens(text),
    countImageTokens(ask),
  )
  const { max_completion_tokens, max_tokens } = ask.parameters
  const requested = readNumber(max_completion_tokens) ?? readNumber(max_tokens)
  const tpm = key?.limits.tpm ?? null
  return { prompt_tokens, completion_tokens: sizeReservedAnswer(model, tpm, prompt_tokens, requested) }
}

/** The estimated tokens of an answer that the vendor did not count. */
export const estimateResult = ({ text, reasoning, tool_calls }: CanonicalResult): number =>
  estimateTokens(text) +
  estimateTokens(reasoning) +
  tool_calls.reduce((sum, call) => sum + estimateTokens(call.name + call.arguments), 0)
