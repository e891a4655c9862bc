import { z } from 'zod'
import { toPointer } from '../../state/resource-schema.ts'
import type { ResponseReader, StreamReader } from '../ports/model-ports.ts'
import { UnreadableResponseError } from '../ports/unreadable-response.ts'
import type { FormatInput } from '../schemas/response-format.ts'
import { type CompiledPaths, compilePaths } from './compiled-paths.ts'
import { createResultCheck } from './required-paths.ts'
import { createResultDraft, type ResultDraft } from './result-draft.ts'

/** A check of raw responses by a JSON Schema, compiled once. Throws when the schema is invalid. */
export const compileSchema = (schema: Record<string, unknown>): ((raw: unknown) => void) => {
  const compiled = z.fromJSONSchema(schema as never)
  return (raw) => {
    const issue = compiled.safeParse(raw).error?.issues[0]
    if (issue === undefined) return
    const pointer = toPointer(issue.path)
    throw new UnreadableResponseError(
      pointer,
      `the response does not match its schema at ${pointer || 'its root'}: ${issue.message}`,
    )
  }
}

/** The parts of a format that reading a response needs. */
export type ReadableFormat = Pick<FormatInput, 'category' | 'paths' | 'stream' | 'poll' | 'schema'>

/** Any error while a response is read makes it unreadable; the error carries the usage so far. */
const throwUnreadable = <Result>(draft: ResultDraft, work: () => Result): Result => {
  try {
    return work()
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const unreadable =
      error instanceof UnreadableResponseError
        ? error
        : new UnreadableResponseError('', `the response cannot be read: ${message}`)
    unreadable.usage = draft.usage()
    throw unreadable
  }
}

/** Throws JmesPathError, or the error of the schema, for a format that `checkFormat` rejects. */
export const compileFormat = (format: ReadableFormat): ResponseReader => {
  const { stream } = format
  const whole = compilePaths(format.paths)
  const events = stream == null ? null : compilePaths(stream.paths)
  const checkSchema = format.schema == null ? null : compileSchema(format.schema)
  const open = (finder: CompiledPaths, usedIds: readonly string[]): ResultDraft => {
    const check = createResultCheck(format, finder)
    const isWhole = finder === whole
    return createResultDraft({
      finder,
      usedIds,
      whole: isWhole,
      inspect: isWhole ? checkSchema : null,
      check,
    })
  }

  const read: ResponseReader['read'] = (raw, usedIds = []) => {
    const draft = open(whole, usedIds)
    return throwUnreadable(draft, () => {
      draft.take(raw)
      return draft.end()
    })
  }
  const openStream = (usedIds: readonly string[]): StreamReader | null => {
    if (events === null) return null
    const draft = open(events, usedIds)
    return {
      take: (event) => throwUnreadable(draft, () => draft.take(event)),
      finished: draft.finished,
      usage: draft.usage,
      end: () => throwUnreadable(draft, () => draft.end()),
    }
  }
  return { read, stream: openStream }
}
