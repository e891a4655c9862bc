import { settlesWithin } from '../../infra/lib/timeouts.ts'
import { MasonError } from '../../state/errors.ts'
import { hashSpace } from '../policy/hash-embedding.ts'
import type { MemoryEmbedder } from './embedder.ts'

/**
 * An embedder for the queries of one search: it embeds a text once a space, and throws `model_timeout` for a model that takes
 * longer than `waitMs`; its call is aborted.
 */
export const createQuickEmbedder = (embedder: MemoryEmbedder, waitMs: number): MemoryEmbedder => {
  const embedded = new Map<string, Promise<number[][]>>()
  return {
    ...embedder,
    embed(space, texts, caller, signal) {
      if (space === hashSpace) return embedder.embed(space, texts, caller, signal)
      const key = JSON.stringify([space, ...texts])
      const known = embedded.get(key)
      if (known) return known
      const late = new AbortController()
      const vectors = embedder.embed(space, texts, caller, AbortSignal.any([signal, late.signal]))
      const made = settlesWithin(vectors, waitMs).then((isSettled) => {
        if (isSettled) return vectors
        const error = new MasonError('model_timeout', `the embedding model took longer than ${waitMs} ms`)
        late.abort(error)
        throw error
      })
      vectors.catch(() => {})
      embedded.set(key, made)
      return made
    },
  }
}
