import type { ProviderOutcome, ProviderRequest } from '../../ports/model-ports.ts'
import { VendorReportedError } from '../../ports/unreadable-response.ts'
import type { Transport } from '../../transport/http-exchange.ts'
import { findReportedError } from '../../transport/upstream-error.ts'
import { type AnswerDraft, exchangeAnswer } from '../answer-exchange.ts'
import { createHttpRequest } from '../provider-request.ts'
import type { PostRequest } from './langchain-clients.ts'

/** The same value with all lone surrogates replaced, keys included. */
const toWellFormedJson = (value: unknown): unknown => {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(toWellFormedJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key.toWellFormed(), toWellFormedJson(one)]),
  )
}

/** JSON writes a lone surrogate as an escape, which many servers refuse, so it is replaced. */
const toBody = (body: object): string => {
  const text = JSON.stringify(body)
  return text.includes('\\ud') ? JSON.stringify(toWellFormedJson(body)) : text
}

/** One request of the protocol. */
type OpenAIExchange = {
  path: '/chat/completions' | '/embeddings'
  isStreamed: boolean
  transport: Transport
  draft: AnswerDraft
}

/** Throws VendorReportedError for an error in place of an answer, in any vendor's shape. */
const assertNoError = (value: unknown): void => {
  const error = findReportedError(value)
  if (error !== null) throw new VendorReportedError('/error', 'an error in place of an answer', error)
}

/**
 * Sends what LangChain has built and gives to `post`: it does not get the address, the key or the answer, and does not
 * read the environment.
 */
export const exchangeOpenAI = async (
  { path, isStreamed, transport, draft }: OpenAIExchange,
  request: ProviderRequest,
  ask: (post: PostRequest) => Promise<void>,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
  let outcome: ProviderOutcome | undefined
  const take: AnswerDraft['take'] = (chunk, whole) => {
    assertNoError(chunk)
    draft.take(chunk, whole)
  }
  await ask(async (body) => {
    const headers = { accept: 'text/event-stream, application/json' }
    const built = { method: 'POST' as const, path, headers, holdsKey: false, body: toBody(body) }
    const exchange = {
      request: createHttpRequest(request, built),
      expects: isStreamed ? ('sse' as const) : ('whole' as const),
      done: isStreamed ? '[DONE]' : null,
    }
    outcome = await exchangeAnswer(transport, exchange, { ...draft, take }, request, signal)
  })
  if (outcome === undefined) throw new Error('LangChain did not send the request')
  return outcome
}
