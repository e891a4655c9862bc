import type { ProviderOutcome, ProviderRequest } from '../../ports/model-ports.ts'
import { VendorReportedError } from '../../ports/unreadable-response.ts'
import type { Transport } from '../../transport/http-exchange.ts'
import { findReportedError } from '../../transport/upstream-error.ts'
import { type AnswerDraft, exchangeAnswer } from '../answer-exchange.ts'
import { createHttpRequest } from '../provider-request.ts'
import type { PostRequest } from './langchain-clients.ts'

/** JSON writes a lone surrogate as an escape, which many servers refuse, so it is replaced; not what follows a backslash. */
const toBody = (body: object): string =>
  JSON.stringify(body).replaceAll(/\\ud[0-9a-f]{3}(?<=(?<!\\)(?:\\\\)*.{6})/g, '\ufffd')

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
