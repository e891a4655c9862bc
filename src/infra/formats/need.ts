import type { FormatInput } from '../../state/registry/response-format.ts'
import type { CanonicalResult, PathName } from '../models/ports.ts'
import { AnsweredError, Unreadable } from '../models/unreadable.ts'
import type { Finder } from './paths.ts'

/** What an answer of a category must have. */

const needs: Readonly<Record<string, readonly PathName[]>> = {
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
const anything: readonly PathName[] = ['text', 'tool_calls', 'images', 'video', 'embedding', 'ranking']

/** One of these paths must be there, and find something. */
export const neededBy = (category: string): readonly PathName[] =>
  Object.hasOwn(needs, category) ? (needs[category] ?? anything) : anything

/** What was found beside the result itself. */
export type Found = { text: boolean; error: unknown; raw: unknown }

const isThere = (name: PathName, result: CanonicalResult, found: Found): boolean => {
  if (name === 'text') return found.text || result.reasoning !== ''
  if (name === 'tool_calls') return result.tool_calls.length > 0
  if (name === 'images') return result.images.length > 0
  if (name === 'video') return result.video !== null
  if (name === 'embedding') return result.embeddings.length > 0
  return name === 'ranking' && result.ranking.length > 0
}

/** A job that is not done owes nothing yet. */
const isUnderWay = (poll: FormatInput['poll'], { job }: CanonicalResult): boolean =>
  poll != null && job !== null && !(job.status !== null && poll.done.includes(job.status))

/** A text may be missing where its length or its content was the reason that it ended. */
const wasCut = (needed: readonly PathName[], { finish }: CanonicalResult): boolean =>
  needed.includes('text') && (finish === 'length' || finish === 'content_filter')

/** The words of an error, whatever its shape. */
export const errorText = (error: unknown): string => {
  if (typeof error === 'string') return error
  const message = typeof error === 'object' && error !== null && 'message' in error ? error.message : null
  return typeof message === 'string' ? message : (JSON.stringify(error) ?? String(error)).slice(0, 300)
}

/** Throws `Unreadable` with the first path that found nothing, or what the vendor said in place of an answer. */
export const createCheck =
  (format: Pick<FormatInput, 'category' | 'poll'>, finder: Finder) =>
  (result: CanonicalResult, found: Found): void => {
    const needed = neededBy(format.category)
    if (needed.some((name) => isThere(name, result, found))) return
    if (isUnderWay(format.poll, result) || wasCut(needed, result)) return
    if (found.error !== null)
      throw new AnsweredError('error', `the answer is an error: ${errorText(found.error)}`, found.error)
    const name = needed.find((one) => finder.has(one)) ?? needed[0] ?? 'text'
    throw new Unreadable(name, `nothing was found by ${finder.describe(name, found.raw)}`)
  }
