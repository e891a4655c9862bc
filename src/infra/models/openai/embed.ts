import type { Clock } from '../../../state/ports.ts'
import type { AnswerReader, CanonicalResult, ProviderOutcome, ProviderRequest } from '../ports.ts'
import { faultOfThrown, outcomeOfFault, outcomeOfResult, underClocks } from './attempt.ts'
import { embeddingsSchema, usageOf } from './chunk.ts'
import { faultOfReply } from './faults.ts'
import { lineOf } from './line.ts'
import type { LineFetch } from './model-fetch.ts'
import { emptyResult } from './reply.ts'

export type Embedding = {
  fetch: LineFetch
  clock: Clock
  id: string
  /** Null: the answer is OpenAI's list of embeddings. */
  reader: AnswerReader | null
}

const resultOf = (answer: unknown): CanonicalResult => {
  const { data, model, usage } = embeddingsSchema.parse(answer)
  const inOrder = data.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0))
  return {
    ...emptyResult,
    embeddings: inOrder.map(({ embedding }) => embedding),
    usage: usageOf(usage) ?? null,
    model: model ?? null,
  }
}

/** One vector for each text, and all of one length; servers that know no base64 may give none at all. */
const faultOfVectors = ({ embeddings }: CanonicalResult, texts: number): string | null => {
  if (embeddings.length !== texts) return `sent ${embeddings.length} embeddings for ${texts} texts`
  const lengths = new Set(embeddings.map(({ length }) => length))
  return lengths.size > 1 || lengths.has(0)
    ? `sent embeddings of ${[...lengths].join(' and ')} numbers`
    : null
}

/** One provider request of an embedding model, its outcome as a value. Rejects only when the caller aborts. */
export const embed = async (
  { fetch, clock, id, reader }: Embedding,
  request: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
  const { createEmbedder } = await import('./chat.ts')
  const { input, parameters } = request.ask
  let answer: unknown
  const { exchange, thrown } = await underClocks(
    request,
    { id, clock },
    async (opened) => {
      const line = lineOf(request, opened, 'embeddings', null)
      const embedder = createEmbedder((_input, init) => fetch(line, String(init?.body ?? '')))
      answer = await embedder.request({
        model: request.model.upstream_name,
        input: input.map((text) => text.toWellFormed()),
        // or servers without base64 give empty lists in silence
        encoding_format: 'float',
        ...(typeof parameters.dimensions === 'number' && { dimensions: parameters.dimensions }),
      })
    },
    signal,
  )
  const fault = exchange.fault() ?? (thrown === undefined ? undefined : faultOfThrown(thrown))
  if (fault !== undefined) return outcomeOfFault(fault, null, thrown, [])
  request.onRaw?.(answer)
  try {
    const result = reader === null ? resultOf(answer) : reader.read(answer)
    if (result.usage !== null) request.onUsage?.(result.usage)
    const wrong = faultOfVectors(result, input.length)
    if (wrong !== null) return { ok: false, fault: faultOfReply(wrong, false), usage: result.usage }
    return outcomeOfResult(result)
  } catch (error) {
    return outcomeOfFault(faultOfThrown(error), null, error, [answer])
  }
}
