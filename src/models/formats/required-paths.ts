import type { CanonicalResult, PathName } from '../ports/model-ports.ts'
import { UnreadableResponseError, VendorReportedError } from '../ports/unreadable-response.ts'
import type { FormatInput } from '../schemas/response-format.ts'
import type { CompiledPaths } from './compiled-paths.ts'

/** The parts that a response of a category must have. */

const requiredByCategory: Readonly<Record<string, readonly PathName[]>> = {
  text: ['text', 'tool_calls'],
  reasoning: ['text', 'tool_calls'],
  multimodal: ['text', 'tool_calls', 'images'],
  'speech-to-text': ['text'],
  embedding: ['embedding'],
  'text-to-image': ['images'],
  'image-edit': ['images'],
  'text-to-video': ['video'],
  rerank: ['ranking'],
}
const anyPart: readonly PathName[] = ['text', 'tool_calls', 'images', 'video', 'embedding', 'ranking']

/** A format needs one of these paths, and one of them must find a value in each response. */
export const listRequiredPaths = (category: string): readonly PathName[] =>
  Object.hasOwn(requiredByCategory, category) ? (requiredByCategory[category] ?? anyPart) : anyPart

/** What the check needs beside the result: whether a text was found, an unreported error, and the raw response. */
export type ResultContext = { text: boolean; error: unknown; raw: unknown }

const isPresent = (name: PathName, result: CanonicalResult, context: ResultContext): boolean => {
  if (name === 'text') return context.text || result.reasoning !== ''
  if (name === 'tool_calls') return result.tool_calls.length > 0
  if (name === 'images') return result.images.length > 0
  if (name === 'video') return result.video !== null
  if (name === 'embedding') return result.embeddings.length > 0
  return name === 'ranking' && result.ranking.length > 0
}

/** A job that is not done has no result yet. */
const isPending = (poll: FormatInput['poll'], { job }: CanonicalResult): boolean =>
  poll != null && job !== null && !(job.status !== null && poll.done.includes(job.status))

/** A text may be missing when the response ended because of its length or its content. */
const isTruncated = (needed: readonly PathName[], { finish }: CanonicalResult): boolean =>
  needed.includes('text') && (finish === 'length' || finish === 'content_filter')

/** The message of an error of any shape. */
export const readErrorMessage = (error: unknown): string => {
  if (typeof error === 'string') return error
  const message = typeof error === 'object' && error !== null && 'message' in error ? error.message : null
  return typeof message === 'string' ? message : (JSON.stringify(error) ?? String(error)).slice(0, 300)
}

/** Throws UnreadableResponseError with the first path that found nothing, or VendorReportedError for a reported error. */
export const createResultCheck =
  (format: Pick<FormatInput, 'category' | 'poll'>, finder: CompiledPaths) =>
  (result: CanonicalResult, context: ResultContext): void => {
    const needed = listRequiredPaths(format.category)
    if (needed.some((name) => isPresent(name, result, context))) return
    if (isPending(format.poll, result) || isTruncated(needed, result)) return
    if (context.error !== null)
      throw new VendorReportedError(
        'error',
        `the response is an error: ${readErrorMessage(context.error)}`,
        context.error,
      )
    const name = needed.find((one) => finder.has(one)) ?? needed[0] ?? 'text'
    throw new UnreadableResponseError(name, `nothing was found by ${finder.describe(name, context.raw)}`)
  }
