import { estimateTokens } from '../../../state/tokens.ts'
import type { Candidate } from '../call-ports.ts'
import { imagesOf } from '../choose/sight.ts'
import type { CanonicalResult, ModelAsk, Reservation } from '../ports.ts'

/** The longest answer of a model of which nothing is known. */
const longestAnswer = 4096
const silent = new Set(['embedding', 'rerank'])

const numberOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null

const textsOf = ({ messages, tools, schema, input, query, prompt }: ModelAsk): string[] => [
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

/** Vendors count by size and in tiles, from 85 to some thousands; a figure for a photograph in most of them. */
const imageTokens = 1500
const lowDetailTokens = 100

const tokensOfImages = (ask: ModelAsk): number =>
  imagesOf(ask).reduce((sum, { detail }) => sum + (detail === 'low' ? lowDetailTokens : imageTokens), 0)

/** What a request may take at most, as far as we can tell; where nobody said, no more than its key may take at all. */
export const estimateOf = (ask: ModelAsk, { model, key }: Candidate): Reservation['estimate'] => {
  const prompt_tokens = textsOf(ask).reduce((sum, text) => sum + estimateTokens(text), tokensOfImages(ask))
  if (silent.has(model.category)) return { prompt_tokens, completion_tokens: 0 }
  const { max_completion_tokens, max_tokens } = ask.parameters
  const asked = numberOf(max_completion_tokens) ?? numberOf(max_tokens)
  if (asked !== null) return { prompt_tokens, completion_tokens: asked }
  const longest = model.max_output ?? longestAnswer
  const left = (key?.limits.tpm ?? Number.POSITIVE_INFINITY) - prompt_tokens
  return { prompt_tokens, completion_tokens: Math.max(0, Math.min(longest, left)) }
}

/** What an answer took that nobody counted. */
export const estimateOfResult = ({ text, reasoning, tool_calls }: CanonicalResult): number =>
  estimateTokens(text) +
  estimateTokens(reasoning) +
  tool_calls.reduce((sum, call) => sum + estimateTokens(call.name + call.arguments), 0)
