import { LRUCache } from 'lru-cache'
import type { ModelCaller } from '../../../models/ports/model-ports.ts'
import type { Embeddings } from '../../../state/ports/embeddings.ts'
import { computeCosine, hashSpace } from '../policy/hash-embedding.ts'
import type { MemoryEmbedder } from './embedder.ts'

/** At 1,536 numbers each about 25 MB. */
const maxVectors = 2000

/**
 * Compares texts by the embedding model. The vectors of standing texts are the same for every caller and stay in this process;
 * the built-in hash embedding compares words only, so it counts as no model.
 */
export const createTextSimilarity = (embedder: Pick<MemoryEmbedder, 'current' | 'embed'>) => {
  const vectors = new LRUCache<string, number[]>({ max: maxVectors })
  return (caller: ModelCaller): Embeddings => ({
    async compare(text, standing, signal) {
      const space = embedder.current()
      if (space === hashSpace) return null
      const keyOf = (one: string): string => `${space} ${one}`
      const missing = [...new Set(standing)].filter((one) => !vectors.has(keyOf(one)))
      const [own = [], ...made] = await embedder.embed(space, [text, ...missing], caller, signal)
      const known = new Map(missing.map((one, at) => [one, made[at] ?? []]))
      for (const [one, vector] of known) vectors.set(keyOf(one), vector)
      return standing.map((one) => computeCosine(own, known.get(one) ?? vectors.get(keyOf(one)) ?? []))
    },
  })
}
