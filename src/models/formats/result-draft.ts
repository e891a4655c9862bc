import type { ModelReply } from '../../state/ports/models.ts'
import { createTextJoiner, createToolCallCollector, type ToolCallCollector } from '../chat/reply-chunks.ts'
import type { CanonicalResult, Media, MeteredUsage, ResultDelta } from '../ports/model-ports.ts'
import { UnreadableResponseError, VendorReportedError } from '../ports/unreadable-response.ts'
import type { CompiledPaths } from './compiled-paths.ts'
import { type ResultContext, readErrorMessage } from './required-paths.ts'
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

/** The finish reasons of vendors, by meaning. Case does not matter. */
const reasonsByMeaning = {
  length:
    'length max_tokens max_output_tokens model_length model_context_window_exceeded max_completion_tokens token_limit',
  content_filter:
    'content_filter content_filtered safety recitation blocklist prohibited_content spii image_safety language ' +
    'image_prohibited_content image_recitation refusal sensitive error_toxic guardrail_intervened other',
  failed:
    'error failed error_limit insufficient_system_resource network_error malformed_function_call ' +
    'unexpected_tool_call malformed_response cancelled',
  /** Some vendors send these in each event before the last. */
  none: 'null none finish_reason_unspecified in_progress incomplete',
} as const
type Meaning = keyof typeof reasonsByMeaning

const meaningByReason: ReadonlyMap<string, Meaning> = new Map(
  (Object.keys(reasonsByMeaning) as Meaning[]).flatMap((meaning) =>
    reasonsByMeaning[meaning].split(' ').map((word) => [word, meaning] as const),
  ),
)

/** The finish reason in the value of `finish`; null while the response goes on. `true` (as in `done: true`) is `stop`. */
const readFinishReason = (value: unknown): string | null => {
  if (value === true) return 'stop'
  if (typeof value !== 'string' || value === '') return null
  return meaningByReason.get(value.toLowerCase()) === 'none' ? null : value
}

/** Whether this reason means that the vendor failed. */
const isFailedFinish = (word: string): boolean => meaningByReason.get(word.toLowerCase()) === 'failed'

/** An unknown reason counts as `stop`. */
const toFinish = (word: string | null, hasCalls: boolean): ModelReply['finish'] => {
  const meaning = word === null ? undefined : meaningByReason.get(word.toLowerCase())
  if (meaning === 'length' || meaning === 'content_filter') return meaning
  return hasCalls ? 'tool_calls' : 'stop'
}

/** A result while it is built from one whole response, or from the events of a stream. */
export type ResultDraft = {
  /** Adds a whole response or an event; returns the text in it. Throws UnreadableResponseError. */
  take(data: unknown): ResultDelta
  finished(): boolean
  usage(): MeteredUsage | null
  /** Throws UnreadableResponseError when the result is not complete. */
  end(): CanonicalResult
}

type Options = {
  finder: CompiledPaths
  usedIds: Iterable<string>
  /** A whole response has complete calls; a stream has chunks of them. */
  whole: boolean
  /** Checks the raw response after counts and errors are read, before anything else. */
  inspect: ((data: unknown) => void) | null
  check(result: CanonicalResult, context: ResultContext): void
}

const createTextDraft = (name: 'text' | 'reasoning', finder: CompiledPaths) => {
  const joiner = createTextJoiner()
  const chunks: string[] = []
  let isPresent = false
  const keep = (chunk: string): string => {
    if (chunk !== '') chunks.push(chunk)
    return chunk
  }
  return {
    take: (data: unknown): string => {
      const chunk = readTextPart(name, finder.find(name, data))
      isPresent ||= chunk !== null
      return chunk === null || chunk === '' ? '' : keep(joiner.push(chunk))
    },
    isPresent: () => isPresent,
    all: (): string => {
      keep(joiner.rest())
      return chunks.length === 1 ? (chunks[0] ?? '') : chunks.join('')
    },
  }
}

const findPlainError = (data: unknown): unknown =>
  typeof data === 'object' && data !== null && Object.hasOwn(data, 'error')
    ? readErrorValue((data as { error: unknown }).error)
    : null

/** An empty draft of one response. */
export const createResultDraft = ({ finder, usedIds, whole, inspect, check }: Options): ResultDraft => {
  const texts = createTextDraft('text', finder)
  const reasoning = createTextDraft('reasoning', finder)
  let calls: ToolCallCollector | null = null
  const images: Media[] = []
  let video: Media | null = null
  let embeddings: CanonicalResult['embeddings'] = []
  let ranking: CanonicalResult['ranking'] = []
  let jobId: string | null = null
  let status: string | null = null
  let model: string | null = null
  let finish: string | null = null
  let counts = noTokenCounts
  let error: unknown = null
  let raw: unknown

  const takeError = (data: unknown): void => {
    const reported = readErrorValue(finder.find('error', data))
    if (reported !== null)
      throw new VendorReportedError(
        'error',
        `the response is an error: ${readErrorMessage(reported)}`,
        reported,
      )
    error ??= findPlainError(data)
  }
  const takeCalls = (data: unknown): void => {
    let position = 0
    for (const chunk of readCallChunks(finder.find('tool_calls', data))) {
      calls ??= createToolCallCollector(usedIds)
      calls.take(whole ? { ...chunk, index: position } : chunk)
      position += 1
    }
  }
  /** Parts that a response has once at most: a later one replaces an earlier one. */
  const takeRest = (data: unknown): void => {
    for (const image of readMedia('images', finder.find('images', data))) images.push(image)
    video = readMedia('video', finder.find('video', data))[0] ?? video
    const vectors = readVectors(finder.find('embedding', data))
    if (vectors.length > 0) embeddings = vectors
    const entries = readRanking(finder.find('ranking', data))
    if (entries.length > 0) ranking = entries
    jobId = readWord(finder.find('job_id', data)) ?? jobId
    status = readWord(finder.find('status', data)) ?? status
  }
  const takeWords = (data: unknown): void => {
    model = readWord(finder.find('model', data)) ?? model
    finish = readFinishReason(finder.find('finish', data)) ?? finish
  }

  return {
    take: (data) => {
      counts = mergeTokenCounts(counts, finder.counts(data))
      raw = whole ? data : undefined
      takeError(data)
      if (error === null) inspect?.(data)
      if (finder.hasMediaPaths) takeRest(data)
      takeWords(data)
      takeCalls(data)
      return { text: texts.take(data), reasoning: reasoning.take(data) }
    },
    finished: () => finish !== null,
    usage: () => toMeteredUsage(counts),
    end: () => {
      if (finish !== null && isFailedFinish(finish)) {
        const message = `the vendor ended its response with ${finish}`
        throw new VendorReportedError('finish', message, { message, code: finish })
      }
      const tool_calls = calls?.all() ?? []
      const nameless = tool_calls.findIndex(({ name }) => name === '')
      if (nameless !== -1)
        throw new UnreadableResponseError('tool_calls', `tool call ${nameless} has no name`)
      const result: CanonicalResult = {
        text: texts.all(),
        reasoning: reasoning.all(),
        tool_calls,
        images,
        video,
        embeddings,
        ranking,
        job: jobId === null && status === null ? null : { id: jobId ?? '', status },
        finish: toFinish(finish, tool_calls.length > 0),
        usage: toMeteredUsage(counts),
        model,
      }
      check(result, { text: texts.isPresent(), error, raw })
      return result
    },
  }
}
