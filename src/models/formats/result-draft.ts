import { toErrorMessage } from '../../state/errors.ts'
import type { ModelReply } from '../../state/ports/models.ts'
import { createLengthLimit, createTextJoiner, createToolCallCollector } from '../chat/reply-chunks.ts'
import { readStep } from '../expressions/expression.ts'
import type { CanonicalResult, Media, StreamReader } from '../ports/model-ports.ts'
import { UnreadableResponseError, VendorReportedError } from '../ports/unreadable-response.ts'
import type { FormatInput } from '../schemas/response-format.ts'
import type { CompiledPaths } from './compiled-paths.ts'
import { checkResult, listRequiredPaths, throwReportedError } from './required-paths.ts'
import {
  readCallChunks,
  readErrorValue,
  readMedia,
  readRanking,
  readTextPart,
  readVectors,
  readWord,
} from './result-parts.ts'
import { mergeTokenCounts, noTokenCounts, toMeteredUsage } from './token-counts.ts'

/** The parts of a format that reading a response needs. */
export type ReadableFormat = Pick<FormatInput, 'category' | 'paths' | 'stream' | 'poll' | 'schema'>

/** The finish reasons of vendors, by meaning. Case does not matter. */
const reasonsByMeaning = {
  length:
    'length max_tokens max_output_tokens model_length model_context_window_exceeded max_completion_tokens token_limit',
  content_filter:
    'content_filter content_filtered safety recitation blocklist prohibited_content spii image_safety language ' +
    'image_prohibited_content image_recitation refusal sensitive error_toxic guardrail_intervened other',
  failed:
    'error failed error_limit insufficient_system_resource network_error malformed_function_call ' +
    'unexpected_tool_call too_many_tool_calls missing_thought_signature malformed_response cancelled',
  /** Some vendors send these in each event before the last. */
  none: 'null none finish_reason_unspecified queued in_progress incomplete',
}
const meaningByReason = new Map(
  Object.entries(reasonsByMeaning).flatMap(([meaning, words]) =>
    words.split(' ').map((word) => [word, meaning] as const),
  ),
)
const readMeaning = (reason: string): string | undefined => meaningByReason.get(reason.toLowerCase())

/** The finish reason in the value of `finish`; null while the response goes on. `true` (as in `done: true`) is `stop`. */
const readFinishReason = (value: unknown): string | null => {
  if (value === true) return 'stop'
  return typeof value !== 'string' || value === '' || readMeaning(value) === 'none' ? null : value
}

/** An unknown reason counts as `stop`. */
const toFinish = (reason: string | null, hasCalls: boolean): ModelReply['finish'] => {
  const meaning = readMeaning(reason ?? '')
  if (meaning === 'length' || meaning === 'content_filter') return meaning
  return hasCalls ? 'tool_calls' : 'stop'
}

const createTextDraft = (
  name: 'text' | 'reasoning',
  finder: CompiledPaths,
  count: ReturnType<typeof createLengthLimit>,
) => {
  const joiner = createTextJoiner(count)
  let text = ''
  let isPresent = false
  return {
    take: (data: unknown): string => {
      const chunk = readTextPart(name, finder.find(name, data))
      isPresent ||= chunk !== null
      const ready = joiner.push(chunk ?? '')
      text += ready
      return ready
    },
    isPresent: () => isPresent,
    all: (): string => text + joiner.rest(),
  }
}

type ResultDraftOptions = {
  format: ReadableFormat
  finder: CompiledPaths
  usedIds: readonly string[]
  /**
   * Checks a whole response after its counts and errors are read, before anything else. Null: events of a stream are
   * taken, whose calls come in chunks.
   */
  checkWhole: ((raw: unknown) => void) | null
}

/** A result while it is built from one whole response, or from the events of a stream. */
export const createResultDraft = ({
  format,
  finder,
  usedIds,
  checkWhole,
}: ResultDraftOptions): StreamReader => {
  const count = createLengthLimit()
  const text = createTextDraft('text', finder, count)
  const reasoning = createTextDraft('reasoning', finder, count)
  const calls = createToolCallCollector(usedIds, count)
  /** The vendor's own tools: calls by index that are none of ours. */
  const skipped = new Set<number>()
  const needed = listRequiredPaths(format.category)
  const images: Media[] = []
  let video: Media | null = null
  let audio: Media | null = null
  let embeddings: CanonicalResult['embeddings'] = []
  let ranking: CanonicalResult['ranking'] = []
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

  const takeCall = ({ skip, ...chunk }: ReturnType<typeof readCallChunks>[number]): void => {
    const { index } = chunk
    if (index !== null && skip) skipped.add(index)
    else if (index !== null && chunk.name !== '') skipped.delete(index)
    if (!skip && (index === null || !skipped.has(index))) calls.take(chunk)
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
        error ??= readErrorValue(readStep(data, 'error'))
        if (error === null) checkWhole?.(data)
        if (finder.hasMediaPaths) takeMedia(data)
        model = readWord(finder.find('model', data)) ?? model
        finish = readFinishReason(finder.find('finish', data)) ?? finish
        for (const [index, chunk] of readCallChunks(finder.find('tool_calls', data)).entries())
          takeCall(checkWhole === null ? chunk : { ...chunk, index })
        return { text: text.take(data), reasoning: reasoning.take(data) }
      }),
    finished: () => finish !== null,
    usage: () => toMeteredUsage(counts),
    end: () =>
      orUnreadable(() => {
        if (finish !== null && readMeaning(finish) === 'failed') {
          const message = `the vendor ended its response with ${finish}`
          throw new VendorReportedError('finish', message, { message, code: finish })
        }
        const tool_calls = calls.all()
        const nameless = tool_calls.findIndex(({ name }) => name === '')
        if (nameless !== -1)
          throw new UnreadableResponseError('tool_calls', `tool call ${nameless} has no name`)
        const result: CanonicalResult = {
          text: text.all(),
          reasoning: reasoning.all(),
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
        checkResult(result, { text: text.isPresent(), error, raw }, format, finder)
        return result
      }),
  }
}
