import { isJsonObject } from '../../../infra/lib/json-text.ts'
import { readFinishMeaning, readFinishReason, toFinish } from '../../../models/chat/finish-reasons.ts'
import {
  createLengthLimit,
  createTextCollector,
  createToolCallCollector,
  type ToolCallChunk,
} from '../../../models/chat/reply-chunks.ts'
import { mergeTokenCounts, noTokenCounts, toMeteredUsage } from '../../../models/chat/token-counts.ts'
import type { CanonicalResult, Media, ResultDelta, StreamReader } from '../../../models/ports/model-ports.ts'
import {
  createFailedFinishError,
  readErrorValue,
  UnreadableResponseError,
} from '../../../models/ports/unreadable-response.ts'
import type { FormatInput } from '../../../models/schemas/response-format.ts'
import { toErrorMessage } from '../../../state/errors.ts'
import { readStep } from '../expressions/expression.ts'
import type { CompiledPaths } from './compiled-paths.ts'
import { checkResult, listRequiredPaths, throwReportedError } from './required-paths.ts'

/** Turn the value of a path into a part of the canonical result. All throw UnreadableResponseError with the path's name. */

/** The elements of a list, or the one value. Empty values have none: `a && b` gives the value of `a` when that is empty. */
const toList = (value: unknown): unknown[] => {
  if (value === null || value === false || value === '') return []
  return Array.isArray(value) ? value : [value]
}

const describeType = (value: unknown): string => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : typeof value
}

const createTypeError = (name: string, value: unknown, expected: string): UnreadableResponseError =>
  new UnreadableResponseError(name, `${name} gives ${describeType(value)}${expected}`)

/** A text, or a list of texts and `{text}` parts, joined. Null when there is none. */
const readTextPart = (name: string, value: unknown, depth = 0): string | null => {
  if (value === null || value === false) return null
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) throw createTypeError(name, value, ', not a text')
  const chunks = value.filter((chunk) => chunk !== null)
  if (chunks.length === 0 && value.length > 0) return null
  return chunks
    .map((chunk) => {
      if (typeof chunk === 'string') return chunk
      if (Array.isArray(chunk) && depth < 3) return readTextPart(name, chunk, depth + 1) ?? ''
      if (isJsonObject(chunk)) return typeof chunk.text === 'string' ? chunk.text : ''
      throw new UnreadableResponseError(
        name,
        `${name} gives a list with ${describeType(chunk)} in it, not texts`,
      )
    })
    .join('')
}

/** A short text such as an id; a number is written as text. Null for anything else. */
const readWord = (value: unknown): string | null => {
  if (typeof value === 'string') return value === '' ? null : value.toWellFormed()
  return Number.isFinite(value) ? String(value) : null
}

const isIndex = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0

/** A list of `{id?, index?, name?, arguments, whole?, skip?}`, or one of them. */
const readCallChunks = (value: unknown): (ToolCallChunk & { skip: boolean })[] =>
  toList(value)
    .filter((call) => call !== null)
    .map((call, at) => {
      const excerpt = typeof call === 'string' ? ` (${call.slice(0, 60).toWellFormed()})` : ''
      if (!isJsonObject(call)) throw createTypeError('tool_calls', call, ` at ${at}${excerpt}, not a call`)
      const { index, id, name } = call
      const text = call.arguments ?? ''
      return {
        index: isIndex(index) ? index : null,
        id: readWord(id) ?? '',
        name: typeof name === 'string' ? name : '',
        arguments: typeof text === 'string' ? text : JSON.stringify(text),
        whole: call.whole === true,
        skip: call.skip === true,
      }
    })

const dataAddress = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i
const base64 = /^[A-Za-z0-9+/_-](?:[A-Za-z0-9+/_\r\n-]*[A-Za-z0-9+/_-])?={0,2}\s*$/

const readAddress = (text: string, mimeType: unknown): Media | null => {
  if (/^(https?|gs|s3|oss):\/\//i.test(text)) return { url: text }
  const head = dataAddress.exec(text.slice(0, 200))
  if (head !== null) return { base64: text.slice(head[0].length), mime_type: head[1] || null }
  if (!base64.test(text)) return null
  return { base64: text, mime_type: typeof mimeType === 'string' ? mimeType : null }
}

const readMedium = (value: unknown): Media | null => {
  const fields = isJsonObject(value) ? value : { url: value }
  const text = [fields.url, fields.base64, fields.b64_json].find(
    (one) => typeof one === 'string' && one !== '',
  )
  return typeof text === 'string' ? readAddress(text, fields.mime_type) : null
}

/** Addresses or base64, one or a list of them. Only media that are needed make a response unreadable. */
const readMedia = (name: string, value: unknown, isNeeded: boolean): Media[] =>
  toList(value)
    .filter((one) => one !== null)
    .flatMap((one) => {
      const medium = readMedium(one)
      if (medium !== null || !isNeeded) return medium ?? []
      throw new UnreadableResponseError(name, `${name} gives a value that is neither an address nor base64`)
    })

const readVector = (value: unknown, at: number): readonly number[] => {
  if (!Array.isArray(value) || value.length === 0)
    throw createTypeError('embedding', value, ` at ${at}, not numbers`)
  const wrong = value.findIndex((number) => !Number.isFinite(number))
  if (wrong === -1) return value
  throw createTypeError('embedding', value[wrong], ` at ${at}, ${wrong}, not a number`)
}

/** A list of vectors of one length, or one vector. */
const readVectors = (value: unknown): (readonly number[])[] => {
  const list = toList(value)
  const vectors = (typeof list[0] === 'number' ? [list] : list).map(readVector)
  const length = vectors[0]?.length ?? 0
  const odd = vectors.findIndex((vector) => vector.length !== length)
  if (odd === -1) return vectors
  throw new UnreadableResponseError(
    'embedding',
    `vector ${odd} has ${vectors[odd]?.length} numbers, the first has ${length}`,
  )
}

/** A list of `{index, score}` (or `relevance_score`), in the vendor's order. */
const readRanking = (value: unknown): CanonicalResult['ranking'] =>
  toList(value).map((entry, at) => {
    const { index, score, relevance_score } = isJsonObject(entry) ? entry : {}
    const number = score ?? relevance_score
    if (isIndex(index) && typeof number === 'number' && Number.isFinite(number))
      return { index, score: number }
    throw new UnreadableResponseError('ranking', `ranking gives an entry without index and score at ${at}`)
  })

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

  /** The chunk, where it is of a call of ours. */
  const keepOwn = ({ skip, ...chunk }: ReturnType<typeof readCallChunks>[number]): ToolCallChunk[] => {
    const { index } = chunk
    if (index !== null && skip) skipped.add(index)
    else if (index !== null && chunk.name !== '') skipped.delete(index)
    return !skip && (index === null || !skipped.has(index)) ? [chunk] : []
  }

  const takeMessage = (data: unknown): ResultDelta => {
    const chunk = readMessage(finder, data)
    const isEmpty = chunk.text === null && chunk.reasoning === null && chunk.calls.length === 0
    const whole = isEmpty && wholeFinder !== null ? findWholeMessage(wholeFinder, data) : null
    const { text, reasoning, calls: found } = whole ?? chunk
    hasText ||= text !== null
    // a call would be made twice
    if (whole !== null && found.length > 0) calls.restart()
    const isChunk = checkWhole === null && whole === null
    calls.take(found.flatMap((call, index) => keepOwn(isChunk ? call : { ...call, index })))
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
        error ??= readErrorValue(readStep(data, 'error'))
        if (error === null) checkWhole?.(data)
        if (finder.hasMediaPaths) takeMedia(data)
        model = readWord(finder.find('model', data)) ?? model
        finish = readFinishReason(finder.find('finish', data)) ?? finish
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
        const result: CanonicalResult = {
          ...texts.all(),
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
