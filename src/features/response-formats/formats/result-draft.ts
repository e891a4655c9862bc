import { readFinishMeaning, readLaterReason, toFinish } from '../../../models/chat/finish-reasons.ts'
import {
  createLengthLimit,
  createTextCollector,
  createToolCallCollector,
} from '../../../models/chat/reply-chunks.ts'
import { mergeTokenCounts, noTokenCounts, toMeteredUsage } from '../../../models/chat/token-counts.ts'
import type { CanonicalResult, Media, ResultDelta, StreamReader } from '../../../models/ports/model-ports.ts'
import {
  createFailedFinishError,
  UnreadableResponseError,
} from '../../../models/ports/unreadable-response.ts'
import type { FormatInput } from '../../../models/schemas/response-format.ts'
import { findReportedError, readErrorValue } from '../../../models/transport/upstream-error.ts'
import { toErrorMessage } from '../../../state/errors.ts'
import { readStep } from '../expressions/expression.ts'
import type { CompiledPaths } from './compiled-paths.ts'
import { checkResult, listRequiredPaths, throwReportedError } from './required-paths.ts'
import {
  readCallChunks,
  readMedia,
  readRanking,
  readTextPart,
  readVectors,
  readWord,
} from './result-parts.ts'

/** The parts of a format that reading a response needs. */
export type ReadableFormat = Pick<FormatInput, 'category' | 'paths' | 'stream' | 'poll' | 'schema'>

type ResultDraftOptions = {
  format: ReadableFormat
  finder: CompiledPaths
  usedIds: readonly string[]
  /**
   * Checks a whole response after its counts and errors are read, before anything else. Null: events of a stream are
   * taken, whose calls come in chunks.
   */
  checkWhole: ((raw: unknown) => void) | null
  /** For events: the paths of a whole message, which some vendors send after the chunks; it replaces them. */
  wholeFinder?: CompiledPaths | null
}

/** What a response or an event says. */
type Message = { text: string | null; reasoning: string | null; calls: ReturnType<typeof readCallChunks> }

const readMessage = (finder: CompiledPaths, data: unknown): Message => ({
  text: readTextPart('text', finder.find('text', data)),
  reasoning: readTextPart('reasoning', finder.find('reasoning', data)),
  calls: readCallChunks(finder.find('tool_calls', data)),
})

/** Null where there is none: the paths of a whole message may not fit an event. */
const findWholeMessage = (finder: CompiledPaths, data: unknown): Message | null => {
  try {
    const message = readMessage(finder, data)
    return message.text || message.reasoning || message.calls.length > 0 ? message : null
  } catch {
    return null
  }
}

/** A result while it is built from one whole response, or from the events of a stream. */
export const createResultDraft = ({
  format,
  finder,
  usedIds,
  checkWhole,
  wholeFinder = null,
}: ResultDraftOptions): StreamReader => {
  const count = createLengthLimit()
  const texts = createTextCollector(count)
  const calls = createToolCallCollector(usedIds, count)
  /** The vendor's own tools: calls by index that are none of ours. */
  const skipped = new Set<number>()
  const needed = listRequiredPaths(format.category)
  const images: Media[] = []
  let video: Media | null = null
  let audio: Media | null = null
  let embeddings: CanonicalResult['embeddings'] = []
  let ranking: CanonicalResult['ranking'] = []
  let hasText = false
  let jobId: string | null = null
  let status: string | null = null
  let model: string | null = null
  let finish: string | null = null
  let counts = noTokenCounts
  let error: unknown = null
  let raw: unknown

  /** Parts that a response has once at most: a later one replaces an earlier one. */
  const takeMedia = (data: unknown): void => {
    const read = (name: 'images' | 'video' | 'audio') =>
      readMedia(name, finder.find(name, data), needed.includes(name))
    images.push(...read('images'))
    video = read('video')[0] ?? video
    audio = read('audio')[0] ?? audio
    const vectors = readVectors(finder.find('embedding', data))
    if (vectors.length > 0) embeddings = vectors
    const entries = readRanking(finder.find('ranking', data))
    if (entries.length > 0) ranking = entries
    jobId = readWord(finder.find('job_id', data)) ?? jobId
    status = readWord(finder.find('status', data)) ?? status
  }

  /** Whether a chunk is of a call of ours. */
  const isOwn = ({ index, name, skip }: ReturnType<typeof readCallChunks>[number]): boolean => {
    if (index !== null && skip) skipped.add(index)
    else if (index !== null && name !== '') skipped.delete(index)
    return !skip && (index === null || !skipped.has(index))
  }

  const takeMessage = (data: unknown): ResultDelta => {
    const chunk = readMessage(finder, data)
    const isEmpty = !chunk.text && !chunk.reasoning && chunk.calls.length === 0
    const whole = isEmpty && wholeFinder !== null ? findWholeMessage(wholeFinder, data) : null
    if (isEmpty && whole === null && error !== null && checkWhole === null) throwReportedError(error)
    const { text, reasoning, calls: found } = whole ?? chunk
    hasText ||= text !== null
    // a call would be made twice
    if (whole !== null && found.length > 0) calls.restart()
    if (checkWhole !== null || whole !== null) for (const [at, call] of found.entries()) call.index = at
    calls.take(found.filter(isOwn))
    const read = { text: text ?? '', reasoning: reasoning ?? '' }
    return whole === null ? texts.push(read) : texts.replace(read)
  }

  /** Any error while a response is read makes it unreadable; the error carries the usage so far. */
  const orUnreadable = <Result>(work: () => Result): Result => {
    try {
      return work()
    } catch (cause) {
      const message = toErrorMessage(cause)
      const unreadable =
        cause instanceof UnreadableResponseError
          ? cause
          : new UnreadableResponseError('', `the response cannot be read: ${message}`)
      unreadable.usage = toMeteredUsage(counts)
      throw unreadable
    }
  }

  return {
    take: (data) =>
      orUnreadable(() => {
        counts = mergeTokenCounts(counts, finder.counts(data))
        if (checkWhole !== null) raw = data
        const reported = readErrorValue(finder.find('error', data))
        if (reported !== null) throwReportedError(reported)
        error ??= readErrorValue(readStep(data, 'error')) ?? findReportedError(data)
        if (error === null) checkWhole?.(data)
        if (finder.hasMediaPaths) takeMedia(data)
        model = readWord(finder.find('model', data)) ?? model
        finish = readLaterReason(finder.find('finish', data), finish)
        return takeMessage(data)
      }),
    size: () => count.total() + images.length,
    finished: () => finish !== null,
    usage: () => toMeteredUsage(counts),
    end: () =>
      orUnreadable(() => {
        if (finish !== null && readFinishMeaning(finish) === 'failed') throw createFailedFinishError(finish)
        texts.rest()
        const tool_calls = calls.all()
        const nameless = tool_calls.findIndex(({ name }) => name === '')
        if (nameless !== -1)
          throw new UnreadableResponseError('tool_calls', `tool call ${nameless} has no name`)
        const { text, reasoning } = texts.all()
        // no spread: each member behind it would be added one by one
        const result: CanonicalResult = {
          text,
          reasoning,
          tool_calls,
          images,
          video,
          audio,
          embeddings,
          ranking,
          job: jobId === null && status === null ? null : { id: jobId ?? '', status },
          finish: toFinish(finish, tool_calls.length > 0),
          usage: toMeteredUsage(counts),
          model,
        }
        checkResult(result, { text: hasText, error, raw }, format, finder)
        return result
      }),
  }
}
