import type { Embedder } from '../../src/infra/memory/embeddings.ts'
import { hashEmbedding, hashSpace } from '../../src/state/memory/hash-embedding.ts'

/** The built-in embedding alone, as where the registry has no model for it. */
export const hashOnly: Embedder = {
  current: () => hashSpace,
  offers: (space) => space === hashSpace,
  embed: async (_space, texts) => texts.map(hashEmbedding),
}

/** A memory as a model tells it that has found it in what the user said. */
export const lessonOf = (kind: string, evidence: string, content: string) => ({
  ...{ evidence, content, kind },
  ...{ is_about_user: true, is_lasting: true, is_new: true },
})
