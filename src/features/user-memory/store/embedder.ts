import { queryOne } from '../../../infra/database/database.ts'
import { emptyCanonicalRequest } from '../../../models/call/models-port.ts'
import type { ModelGateway } from '../../../models/ports/call-ports.ts'
import type { ModelCaller, RegistryView } from '../../../models/ports/model-ports.ts'
import { findEmbeddingModel, toSpace } from '../../../models/routing/embedding-space.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { computeHashEmbedding, hashSpace, normalizeVector } from '../policy/hash-embedding.ts'

/** Embeds texts as vectors of length 1. A space is named after its model; only vectors of one space can be compared. */
export type MemoryEmbedder = ReturnType<typeof createMemoryEmbedder>

type EmbedderServices = {
  sql: Sql
  ask: ModelGateway['ask']
  view(): RegistryView
}

const maxTextsPerCall = 64
/** As many as fit inline in a row of 8 KB, together with ids and names of 200 characters. */
const maxDimensions = 3600

/** The embedder of the role `embedding`, or the built-in hash embedding where no model has the role. */
export const createMemoryEmbedder = ({ sql, ask, view }: EmbedderServices) => {
  const sizes = new Map<string, number>()

  const findModel = (space: string): string | null => {
    const entry = view().models.get(space.slice(0, space.indexOf(' ')))
    return entry?.active && toSpace(entry) === space ? entry.name : null
  }

  const askModel = async (
    model: string,
    input: readonly string[],
    caller: ModelCaller,
    signal: AbortSignal,
  ) => {
    const { result } = await ask(
      { role: 'embedding', model },
      { ...emptyCanonicalRequest, role: 'embedding', input },
      caller,
      () => {},
      signal,
    )
    if (result.embeddings.length === input.length) return result.embeddings
    throw new MasonError(
      'model_bad_reply',
      `the model returned ${result.embeddings.length} embeddings for ${input.length} texts`,
    )
  }

  /** All vectors of a space have the length of its first one. */
  const checkSizes = async (space: string, model: string, vectors: readonly (readonly number[])[]) => {
    for (const { length } of vectors) {
      const expected = sizes.get(space) ?? (await readOrSetSize(sql, space, length))
      sizes.set(space, expected)
      if (length === expected) continue
      throw new MasonError(
        'model_bad_reply',
        `the embedding model "${model}" returned a vector of ${length} numbers; its earlier ones have ${expected}`,
        {
          remedy:
            'register it under a new name and route the role "embedding" there: all memories are then embedded again',
          detail: { given: length, expected },
        },
      )
    }
  }

  return {
    /** The space of new vectors. */
    current(): string {
      const model = findEmbeddingModel(view())
      return model ? toSpace(model) : hashSpace
    },
    /** Whether texts can be embedded in this space now. */
    offers: (space: string): boolean => space === hashSpace || findModel(space) !== null,
    /** Throws a `model_*` code; `model_bad_reply` for vectors of another length than the space has, with both lengths. */
    async embed(
      space: string,
      texts: readonly string[],
      caller: ModelCaller,
      signal: AbortSignal,
    ): Promise<number[][]> {
      if (space === hashSpace) return texts.map(computeHashEmbedding)
      const model = findModel(space)
      if (model === null)
        throw new MasonError('no_model_available', `no model serves the space "${space}" any more`)
      const vectors: number[][] = []
      for (let at = 0; at < texts.length; at += maxTextsPerCall) {
        const batch = await askModel(model, texts.slice(at, at + maxTextsPerCall), caller, signal)
        await checkSizes(space, model, batch)
        vectors.push(...batch.map(normalizeVector))
      }
      return vectors
    },
  }
}

const readOrSetSize = async (sql: Sql, space: string, length: number): Promise<number> => {
  if (length < 1 || length > maxDimensions)
    throw new MasonError(
      'model_bad_reply',
      `the vectors of "${space}" have ${length} numbers; memory stores 1 to ${maxDimensions}`,
      { remedy: 'route the role "embedding" to a model with fewer numbers' },
    )
  const insert =
    'INSERT INTO memory_spaces (space, dimensions) VALUES ($1, $2) ON CONFLICT (space) DO NOTHING'
  await sql.query(insert, [space, length])
  const select = 'SELECT dimensions FROM memory_spaces WHERE space = $1'
  return (await queryOne<{ dimensions: number }>(sql, select, [space]))?.dimensions ?? length
}
