import { emptyCanonicalRequest } from '../../../models/call/models-port.ts'
import { type ModelCaller, toPlainUsage } from '../../../models/ports/model-ports.ts'
import type { AskServices } from '../../../models/providers/response-formats.ts'
import { canCallCategory } from '../../../models/routing/choose-model-and-key.ts'
import { openDeadline } from '../../../state/deadline.ts'
import { isMasonError, MasonError } from '../../../state/errors.ts'
import type { Models } from '../../../state/ports/models.ts'
import { cutText } from '../../../state/text/cut-text.ts'

const category = 'rerank'
/** A search that is ordered without a model is better than one that is late. */
const maxMs = 10_000
const maxChars = 4000

/** Each index once and in range; what the model left out comes last, in its order. */
const completeOrder = (ranking: readonly { index: number }[], count: number): number[] => {
  const order = [...new Set(ranking.map(({ index }) => index))]
  if (order.some((index) => index >= count))
    throw new MasonError('model_bad_reply', `the model ranked ${count} documents and named others`)
  return [...order, ...Array.from({ length: count }, (_, index) => index).filter((at) => !order.includes(at))]
}

/** Orders documents by a model of the category `rerank`, on behalf of one caller. */
export const createReranker =
  ({ ask, registry, chooser, log }: AskServices, caller: ModelCaller): NonNullable<Models['rerank']> =>
  async (query, documents, signal) => {
    if (documents.length < 2 || !canCallCategory(chooser, registry.view, category, caller)) return null
    using late = openDeadline(maxMs, signal)
    try {
      const input = documents.map((document) => cutText(document, maxChars))
      const request = { ...emptyCanonicalRequest, role: category, query: cutText(query, maxChars), input }
      const selector = { role: category, category, oneShot: true }
      const { result, usage } = await ask(selector, request, caller, () => {}, late.signal)
      const order = completeOrder(
        result.ranking.toSorted((a, b) => b.score - a.score),
        documents.length,
      )
      return { order, usage: toPlainUsage(usage) }
    } catch (error) {
      signal.throwIfAborted()
      if (!isMasonError(error) && !late.signal.aborted) throw error
      log.warn({ documents: documents.length, error: String(error) }, 'a search is not ordered by a model')
      return null
    }
  }
