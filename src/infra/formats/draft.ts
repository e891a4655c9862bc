import { collectToolCalls, type ToolCalls } from '../models/openai/tool-calls.ts'
import type { CanonicalResult, Media, MeteredUsage, ResultDelta } from '../models/ports.ts'
import { AnsweredError, Unreadable } from '../models/unreadable.ts'
import { finishOf, finishWord, isFailure } from './finish.ts'
import { createJoiner } from './joiner.ts'
import { errorText, type Found } from './need.ts'
import { callPieces, errorOf, mediaOf, rankingOf, textOf, vectorsOf, wordOf } from './parts.ts'
import type { Finder } from './paths.ts'
import { mergeCounts, noCounts, usageOf } from './usage.ts'

/** A result while it is put together: out of one whole answer, or of the events of a stream. */
export type Draft = {
  take(data: unknown): ResultDelta
  finished(): boolean
  usage(): MeteredUsage | null
  end(): CanonicalResult
}

type Options = {
  finder: Finder
  usedIds: Iterable<string>
  /** A whole answer has each call complete; a stream has pieces. */
  whole: boolean
  /** Looks at what came before anything is read of it but counts and errors. */
  inspect: ((data: unknown) => void) | null
  check(result: CanonicalResult, found: Found): void
}

const createTexts = (name: 'text' | 'reasoning', finder: Finder) => {
  const joiner = createJoiner()
  const pieces: string[] = []
  let found = false
  const keep = (piece: string): string => {
    if (piece !== '') pieces.push(piece)
    return piece
  }
  return {
    take: (data: unknown): string => {
      const piece = textOf(name, finder.find(name, data))
      found ||= piece !== null
      return piece === null || piece === '' ? '' : keep(joiner.push(piece))
    },
    found: () => found,
    all: (): string => {
      keep(joiner.rest())
      return pieces.length === 1 ? (pieces[0] ?? '') : pieces.join('')
    },
  }
}

const plainError = (data: unknown): unknown =>
  typeof data === 'object' && data !== null && Object.hasOwn(data, 'error')
    ? errorOf((data as { error: unknown }).error)
    : null

export const createDraft = ({ finder, usedIds, whole, inspect, check }: Options): Draft => {
  const texts = createTexts('text', finder)
  const reasoning = createTexts('reasoning', finder)
  let calls: ToolCalls | null = null
  const images: Media[] = []
  let video: Media | null = null
  let embeddings: CanonicalResult['embeddings'] = []
  let ranking: CanonicalResult['ranking'] = []
  let jobId: string | null = null
  let status: string | null = null
  let model: string | null = null
  let finish: string | null = null
  let counts = noCounts
  let error: unknown = null
  let raw: unknown

  const takeError = (data: unknown): void => {
    const said = errorOf(finder.find('error', data))
    if (said !== null) throw new AnsweredError('error', `the answer is an error: ${errorText(said)}`, said)
    error ??= plainError(data)
  }
  const takeCalls = (data: unknown): void => {
    let position = 0
    for (const piece of callPieces(finder.find('tool_calls', data))) {
      calls ??= collectToolCalls(usedIds)
      calls.take(whole ? { ...piece, index: position } : piece)
      position += 1
    }
  }
  /** Parts that come once, if at all: a later one takes the place of an earlier one. */
  const takeRest = (data: unknown): void => {
    for (const image of mediaOf('images', finder.find('images', data))) images.push(image)
    video = mediaOf('video', finder.find('video', data))[0] ?? video
    const vectors = vectorsOf(finder.find('embedding', data))
    if (vectors.length > 0) embeddings = vectors
    const entries = rankingOf(finder.find('ranking', data))
    if (entries.length > 0) ranking = entries
    jobId = wordOf(finder.find('job_id', data)) ?? jobId
    status = wordOf(finder.find('status', data)) ?? status
  }
  const takeWords = (data: unknown): void => {
    model = wordOf(finder.find('model', data)) ?? model
    finish = finishWord(finder.find('finish', data)) ?? finish
  }

  return {
    take: (data) => {
      counts = mergeCounts(counts, finder.counts(data))
      raw = whole ? data : undefined
      takeError(data)
      if (error === null) inspect?.(data)
      if (finder.hasMore) takeRest(data)
      takeWords(data)
      takeCalls(data)
      return { text: texts.take(data), reasoning: reasoning.take(data) }
    },
    finished: () => finish !== null,
    usage: () => usageOf(counts),
    end: () => {
      if (finish !== null && isFailure(finish)) {
        const message = `the vendor ended its answer with ${finish}`
        throw new AnsweredError('finish', message, { message, code: finish })
      }
      const tool_calls = calls?.all() ?? []
      const nameless = tool_calls.findIndex(({ name }) => name === '')
      if (nameless !== -1) throw new Unreadable('tool_calls', `tool call ${nameless} has no name`)
      const result: CanonicalResult = {
        text: texts.all(),
        reasoning: reasoning.all(),
        tool_calls,
        images,
        video,
        embeddings,
        ranking,
        job: jobId === null && status === null ? null : { id: jobId ?? '', status },
        finish: finishOf(finish, tool_calls.length > 0),
        usage: usageOf(counts),
        model,
      }
      check(result, { text: texts.found(), error, raw })
      return result
    },
  }
}
