import type { AnswerReader, CanonicalResult, ProviderOutcome, ProviderRequest } from '../ports.ts'
import { faultOfReply } from '../wire/faults.ts'
import { type Talked, talk, type Wire } from '../wire/talk.ts'
import { readEmbeddings } from './chunk.ts'
import { requestTo } from './line.ts'
import { faultOfThrown, outcomeOfFault, outcomeOfResult, parsed } from './outcome.ts'
import { emptyResult } from './reply.ts'

export type Embedding = {
  wire: Wire
  /** Null: the answer is OpenAI's list of embeddings. */
  reader: AnswerReader | null
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
  { wire, reader }: Embedding,
  request: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
  const { Embedder } = await import('./chat.ts')
  const { input, parameters } = request.ask
  const { allow_private: allowPrivate, timeouts: clocks } = request.model.endpoint
  let answer: unknown
  let talked: Talked | undefined
  const embedder = new Embedder(async (worded) => {
    const exchanging = {
      request: requestTo('embeddings', request, worded),
      allowPrivate,
      clocks,
      endsAtMs: request.endsAtMs,
      expects: 'whole' as const,
      done: null,
      take: ({ text }: { text: string }): void => {
        answer = parsed(text)
      },
    }
    talked = await talk(wire, exchanging, signal)
  })
  await embedder.request({
    model: request.model.upstream_name,
    input: [...input],
    // or servers without base64 give empty lists in silence
    encoding_format: 'float',
    ...(typeof parameters.dimensions === 'number' && { dimensions: parameters.dimensions }),
  })
  const { fault: found, thrown } = talked as unknown as Talked
  const fault = found ?? (thrown === undefined ? undefined : faultOfThrown(thrown))
  if (fault !== undefined) return outcomeOfFault(fault, null, thrown, [])
  request.onRaw?.(answer)
  try {
    const result = reader === null ? { ...emptyResult, ...readEmbeddings(answer) } : reader.read(answer)
    if (result.usage !== null) request.onUsage?.(result.usage)
    const wrong = faultOfVectors(result, input.length)
    if (wrong !== null) return { ok: false, fault: faultOfReply(wrong, false), usage: result.usage }
    return outcomeOfResult(result)
  } catch (error) {
    return outcomeOfFault(faultOfThrown(error), null, error, [answer])
  }
}
