import { computeHashEmbedding, hashSpace } from '../../src/memory/policy/hash-embedding.ts'
import type { MemoryEmbedder } from '../../src/memory/store/embedder.ts'

/** The built-in embedding alone, as where the registry has no model for it. */
export const hashOnly: MemoryEmbedder = {
  current: () => hashSpace,
  offers: (space) => space === hashSpace,
  embed: async (_space, texts) => texts.map(computeHashEmbedding),
}

/** A memory as a model tells it that has found it in what the user said. */
export const lessonOf = (kind: string, evidence: string, content: string) => ({
  ...{ evidence, content, kind },
  ...{ stance: 'asserts' as const, is_about_user: true, is_lasting: true, is_stated: true, is_new: true },
})

/** Everything that a generator gives. */
export const collectAll = async <Item>(items: AsyncIterable<Item>): Promise<Item[]> => {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}
