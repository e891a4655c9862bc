import type { FormatView } from '../../../state/registry/response-format.ts'
import type {
  AnswerReader,
  CanonicalResult,
  ProviderOutcome,
  ProviderRequest,
  ResultDelta,
} from '../ports.ts'
import { AnsweredError, Unreadable } from '../unreadable.ts'
import { cutShort, type Fault, faultOfErrorObject, faultOfReply } from '../wire/faults.ts'
import type { Piece } from '../wire/split.ts'
import type { Talked } from '../wire/talk.ts'
import { excerpt } from '../wire/upstream.ts'

/** The answer to one exchange while it arrives, read by a response format. */
export type Answer = {
  take(piece: Piece): void
  outcome(talked: Talked): ProviderOutcome
}

type Options = Pick<ProviderRequest, 'usedIds' | 'onDelta' | 'onUsage' | 'onRaw'> & {
  reader: AnswerReader
  format: FormatView
}

const rawBytes = 64 * 1024

/** Thrown by `take` for an event or a body that is no JSON. */
class NotJson extends Error {}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new NotJson(`sent what is not JSON: ${excerpt(text)}`)
  }
}

/** Where neither a path nor a closing event could tell, the end of the body is the end of the answer. */
const tellsItsEnd = ({ stream }: FormatView): boolean =>
  stream?.paths.finish !== undefined || stream?.done !== undefined

const isFiltered = ({ finish, text, tool_calls, images }: CanonicalResult): boolean =>
  finish === 'content_filter' && text === '' && tool_calls.length === 0 && images.length === 0

export const openAnswer = ({ reader, format, usedIds, onDelta, onUsage, onRaw }: Options): Answer => {
  const stream = format.stream == null ? null : reader.stream(usedIds)
  let result: CanonicalResult | null = null
  let raw = ''
  let events = 0
  let only: unknown

  const say = (delta: ResultDelta): void => {
    if (delta.text !== '' || delta.reasoning !== '') onDelta(delta)
  }
  const tellUsage = (usage: CanonicalResult['usage']): void => {
    if (usage !== null) onUsage?.(usage)
  }
  const takeWhole = (value: unknown): void => {
    result = reader.read(value, usedIds)
    tellUsage(result.usage)
    say({ text: result.text, reasoning: result.reasoning })
  }
  const takeEvent = (value: unknown): void => {
    if (stream === null) {
      takeWhole(value)
      return
    }
    events += 1
    only = value
    const delta = stream.take(value)
    tellUsage(stream.usage())
    say(delta)
  }
  /** One line where a stream of lines was asked for may be the whole answer of a vendor that streams nothing. */
  const settleOnly = (): void => {
    if (events !== 1 || stream?.finished() !== false || format.stream?.format !== 'ndjson') return
    try {
      takeWhole(only)
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error
    }
  }
  const usage = () => result?.usage ?? stream?.usage() ?? null
  const finished = (): boolean => result !== null || stream?.finished() === true

  const unreadable = (error: Unreadable): ProviderOutcome => {
    const { place, message } = error
    const counted = error.usage ?? usage()
    if (error instanceof AnsweredError) {
      return { ok: false, fault: faultOfErrorObject(error.error), usage: counted }
    }
    const what = `sent an answer that the response format ${format.name} cannot read: ${message}`
    const fault: Fault = { code: 'model_unreadable_answer', what, retry: false }
    return { ok: false, fault, usage: counted, raw, place }
  }
  const faultOf = ({ fault, ended }: Talked): Fault | undefined => {
    if (fault !== undefined) return fault.interrupted === true && finished() ? undefined : fault
    if (finished() || ended || (events > 0 && !tellsItsEnd(format))) return undefined
    return events > 0 ? cutShort : faultOfReply('sent an empty reply')
  }
  const concluded = (talked: Talked): ProviderOutcome => {
    if (talked.thrown !== undefined) throw talked.thrown
    if (talked.fault === undefined) settleOnly()
    const fault = faultOf(talked)
    if (fault !== undefined) return { ok: false, fault, usage: usage() }
    const final = result ?? stream?.end()
    if (final === undefined) return { ok: false, fault: faultOfReply('sent an empty reply'), usage: null }
    if (!isFiltered(final)) return { ok: true, result: final }
    const what = 'withheld its whole reply'
    return { ok: false, fault: { code: 'model_content_filtered', what, retry: false }, usage: final.usage }
  }

  return {
    take: ({ kind, text }) => {
      if (raw.length < rawBytes) raw += `${raw === '' ? '' : '\n'}${text}`.slice(0, rawBytes - raw.length)
      const value = parse(text)
      onRaw?.(value)
      if (kind === 'event') return takeEvent(value)
      // Gemini streams a list where it was not asked for events
      if (stream === null || !Array.isArray(value)) return takeWhole(value)
      for (const event of value) takeEvent(event)
    },
    outcome: (talked) => {
      try {
        return concluded(talked)
      } catch (error) {
        if (error instanceof Unreadable) return unreadable(error)
        if (error instanceof NotJson) return { ok: false, fault: faultOfReply(error.message), usage: usage() }
        throw error
      }
    },
  }
}
