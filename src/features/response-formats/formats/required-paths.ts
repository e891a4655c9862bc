import { isJsonObject } from '../../../infra/lib/json-text.ts'
import type { CanonicalResult } from '../../../models/ports/model-ports.ts'
import { UnreadableResponseError, VendorReportedError } from '../../../models/ports/unreadable-response.ts'
import type { FormatInput } from '../../../models/schemas/response-format.ts'
import type { CompiledPaths } from './compiled-paths.ts'

/** The parts that a response of a category must have. */

const anyPart = ['text', 'tool_calls', 'images', 'video', 'audio', 'embedding', 'ranking'] as const
type RequiredPart = (typeof anyPart)[number]

const requiredByCategory = new Map<string, readonly RequiredPart[]>([
  ['text', ['text', 'tool_calls']],
  ['reasoning', ['text', 'tool_calls']],
  ['multimodal', ['text', 'tool_calls', 'images']],
  ['speech-to-text', ['text']],
  ['embedding', ['embedding']],
  ['text-to-image', ['images']],
  ['image-edit', ['images']],
  ['text-to-video', ['video']],
  ['text-to-speech', ['audio']],
  ['rerank', ['ranking']],
])

/** A format needs one of these paths, and one of them must find a value in each response. */
export const listRequiredPaths = (category: string): readonly RequiredPart[] =>
  requiredByCategory.get(category) ?? anyPart

/** What the check needs beside the result: whether a text was found, an unreported error, and the raw response. */
type ResultContext = { text: boolean; error: unknown; raw: unknown }

const isPresent = (name: RequiredPart, result: CanonicalResult, context: ResultContext): boolean => {
  if (name === 'text') return context.text || result.reasoning !== ''
  if (name === 'video' || name === 'audio') return result[name] !== null
  return result[name === 'embedding' ? 'embeddings' : name].length > 0
}

/** A job that is not done has no result yet; that of one with `content` is elsewhere. */
const isPending = (poll: FormatInput['poll'], { job }: CanonicalResult): boolean =>
  poll != null &&
  job !== null &&
  (poll.content !== undefined || !(job.status !== null && poll.done.includes(job.status)))

/** A text may be missing when the response ended because of its length or its content. */
const isTruncated = (needed: readonly RequiredPart[], { finish }: CanonicalResult): boolean =>
  needed.includes('text') && (finish === 'length' || finish === 'content_filter')

const readErrorMessage = (error: unknown): string => {
  if (typeof error === 'string') return error
  const message = isJsonObject(error) ? error.message : null
  return typeof message === 'string' ? message : (JSON.stringify(error) ?? String(error)).slice(0, 300)
}

/** Throws an error of any shape that a response reports. */
export const throwReportedError = (error: unknown): never => {
  throw new VendorReportedError('error', `the response is an error: ${readErrorMessage(error)}`, error)
}

/** Throws UnreadableResponseError with the first path that found nothing, or VendorReportedError for a reported error. */
export const checkResult = (
  result: CanonicalResult,
  context: ResultContext,
  { category, poll }: Pick<FormatInput, 'category' | 'poll'>,
  finder: CompiledPaths,
): void => {
  const needed = listRequiredPaths(category)
  if (needed.some((name) => isPresent(name, result, context))) return
  if (isPending(poll, result) || isTruncated(needed, result)) return
  if (context.error !== null) throwReportedError(context.error)
  const name = needed.find(finder.has) ?? needed[0] ?? 'text'
  throw new UnreadableResponseError(name, `nothing was found by ${finder.describe(name, context.raw)}`)
}
