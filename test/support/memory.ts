import type { Embedder } from '../../src/infra/memory/embeddings.ts'
import { hashEmbedding, hashSpace } from '../../src/state/memory/hash-embedding.ts'

/** The built-in embedding alone, as where the registry has no model for it. */
export const hashOnly: Embedder = {
  current: () => hashSpace,
  offers: (space) => space === hashSpace,
  embed: async (_space, texts) => texts.map(hashEmbedding),
}
