import { MasonError } from '../../state/errors.ts'
import { hashEmbedding, hashSpace, unit } from '../../state/memory/hash-embedding.ts'
import type { Sql } from '../../state/ports.ts'
import type { ModelService } from '../models/call-ports.ts'
import type { Caller, RegistryView } from '../models/ports.ts'
import { embeddingModelOf } from './embedding-model.ts'

/** Texts as vectors of length 1. A space is named after its model: vectors of one space can be compared. */
export type Embedder = {
  /** The space that new vectors belong to. */
  current(): string
  /** Whether texts can be put into this space now. */
  offers(space: string): boolean
  /** Throws a `model_*` code; `model_bad_reply` for vectors of another size than the space has, naming both. */
  embed(space: string, texts: readonly string[], caller: Caller, signal: AbortSignal): Promise<number[][]>
}

type Parts = {
  sql: Sql
  ask: ModelService['ask']
  view(): RegistryView
}

const textsAtOnce = 64
/** What one row of 8 KB holds inline, beside ids and names of 200 characters. */
const mostDimensions = 3600

const spaceOf = ({ name, upstream_name }: { name: string; upstream_name: string }): string =>
  `${name} ${upstream_name}`

export const createEmbedder = ({ sql, ask, view }: Parts): Embedder => {
  const sizes = new Map<string, number>()

  const modelOf = (space: string): string | null => {
    const entry = view().models.get(space.slice(0, space.indexOf(' ')))
    return entry?.active && spaceOf(entry) === space ? entry.name : null
  }

  const askModel = async (model: string, input: readonly string[], caller: Caller, signal: AbortSignal) => {
    const { result } = await ask(
      { role: 'embedding', model },
      {
        role: 'embedding',
        messages: [],
        tools: [],
        schema: null,
        input,
        query: null,
        prompt: null,
        parameters: {},
        stream: false,
      },
      caller,
      () => {},
      signal,
    )
    if (result.embeddings.length === input.length) return result.embeddings
    throw new MasonError(
      'model_bad_reply',
      `${result.embeddings.length} embeddings came for ${input.length} texts`,
    )
  }

  /** The size of the first vectors of a space holds for all that come. */
  const checkSizes = async (space: string, model: string, vectors: readonly (readonly number[])[]) => {
    for (const { length } of vectors) {
      const expected = sizes.get(space) ?? (await firstSize(sql, space, length))
      sizes.set(space, expected)
      if (length !== expected) throw wrongSize(model, length, expected)
    }
  }

  return {
    current() {
      const model = embeddingModelOf(view())
      return model ? spaceOf(model) : hashSpace
    },
    offers: (space) => space === hashSpace || modelOf(space) !== null,
    async embed(space, texts, caller, signal) {
      if (space === hashSpace) return texts.map(hashEmbedding)
      const model = modelOf(space)
      if (model === null)
        throw new MasonError('no_model_available', `no model gives vectors of "${space}" any more`)
      const vectors: number[][] = []
      for (let at = 0; at < texts.length; at += textsAtOnce) {
        const given = await askModel(model, texts.slice(at, at + textsAtOnce), caller, signal)
        await checkSizes(space, model, given)
        vectors.push(...given.map(unit))
      }
      return vectors
    },
  }
}

const firstSize = async (sql: Sql, space: string, length: number): Promise<number> => {
  if (length < 1 || length > mostDimensions)
    throw new MasonError(
      'model_bad_reply',
      `the vectors of "${space}" have ${length} numbers; memory keeps 1 to ${mostDimensions}`,
      { remedy: 'route the role "embedding" to a model with fewer numbers' },
    )
  await sql.query(
    'INSERT INTO memory_spaces (space, dimensions) VALUES ($1, $2) ON CONFLICT (space) DO NOTHING',
    [space, length],
  )
  const { rows } = await sql.query<{ dimensions: number }>(
    'SELECT dimensions FROM memory_spaces WHERE space = $1',
    [space],
  )
  return rows[0]?.dimensions ?? length
}

const wrongSize = (model: string, length: number, expected: number): MasonError =>
  new MasonError(
    'model_bad_reply',
    `the embedding model "${model}" gave a vector of ${length} numbers; its earlier ones have ${expected}`,
    {
      remedy:
        'register it under a new name and route the role "embedding" there: all memories are then embedded anew',
      detail: { given: length, expected },
    },
  )
