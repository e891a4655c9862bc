import type { FormatInput } from '../../state/registry/response-format.ts'
import type { AnswerReader, StreamReader } from '../models/ports.ts'
import { Unreadable } from '../models/unreadable.ts'
import { createDraft, type Draft } from './draft.ts'
import { createCheck } from './need.ts'
import { openPaths } from './paths.ts'
import { openSchema } from './schema.ts'

export type ReadableFormat = Pick<FormatInput, 'category' | 'paths' | 'stream' | 'poll' | 'schema'>

/** Whatever an answer does to us, it is the answer that cannot be read. What it cost is told all the same. */
const guarded = <Result>(draft: Draft, work: () => Result): Result => {
  try {
    return work()
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error)
    const unreadable =
      error instanceof Unreadable ? error : new Unreadable('', `the answer cannot be read: ${said}`)
    unreadable.usage = draft.usage()
    throw unreadable
  }
}

/** Throws ExpressionFault, or the error of the schema, where `checkFormat` has faults to tell. */
export const compile = (format: ReadableFormat): AnswerReader => {
  const { stream } = format
  const whole = openPaths(format.paths)
  const pieces = stream == null ? null : openPaths(stream.paths)
  const checkSchema = format.schema == null ? null : openSchema(format.schema)
  const checkWhole = createCheck(format, whole)
  const checkPieces = pieces === null ? null : createCheck(format, pieces)

  const read: AnswerReader['read'] = (raw, usedIds = []) => {
    const draft = createDraft({
      finder: whole,
      usedIds,
      whole: true,
      inspect: checkSchema,
      check: checkWhole,
    })
    return guarded(draft, () => {
      draft.take(raw)
      return draft.end()
    })
  }
  const openStream = (usedIds: readonly string[]): StreamReader | null => {
    if (pieces === null || checkPieces === null) return null
    const draft = createDraft({ finder: pieces, usedIds, whole: false, inspect: null, check: checkPieces })
    return {
      take: (event) => guarded(draft, () => draft.take(event)),
      finished: draft.finished,
      usage: draft.usage,
      end: () => guarded(draft, () => draft.end()),
    }
  }
  return { read, stream: openStream }
}
