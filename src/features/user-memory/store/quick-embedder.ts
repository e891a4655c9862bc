import { unlessAborted } from '../../../state/deadline.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Clock } from '../../../state/ports/clock.ts'
import { hashSpace } from '../policy/hash-embedding.ts'
import type { MemoryEmbedder } from './embedder.ts'

/** How long a run waits for the vector of what it looks for. */
export const recallWaitMs = 150

/**
 * An embedder for the queries of one search: it embeds a text once a space, and throws `model_timeout` for a model that takes
 * longer than `recallWaitMs`; its call is aborted.
 */
export const createQuickEmbedder = (
  embedder: MemoryEmbedder,
  clock: Pick<Clock, 'sleep'>,
): MemoryEmbedder => {
  const embedded = new Map<string, Promise<number[][]>>()
  return {
    ...embedder,
    embed(space, texts, caller, signal) {
      if (space === hashSpace) return embedder.embed(space, texts, caller, signal)
      const key = JSON.stringify([space, ...texts])
      const known = embedded.get(key)
      if (known) return known
      const late = new AbortController()
      const settled = new AbortController()
      const giveUp = () =>
        late.abort(new MasonError('model_timeout', `the embedding model took longer than ${recallWaitMs} ms`))
      clock.sleep(recallWaitMs, settled.signal).then(giveUp, () => {})
      const vectors = embedder.embed(space, texts, caller, AbortSignal.any([signal, late.signal]))
      const made = unlessAborted(vectors, late.signal).finally(() => settled.abort())
      embedded.set(key, made)
      return made
    },
  }
}
