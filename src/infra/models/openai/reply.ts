import type { ModelReply } from '../../../state/ports.ts'
import type { Usage } from '../../../state/runtime-state.ts'
import { noUsage } from '../../../state/usage.ts'
import { chunkSchema, type MessagePiece, usageOf } from './chunk.ts'
import { collectToolCalls } from './tool-calls.ts'

/** A reply while it arrives. */
export type ReplyDraft = {
  /** Takes one chunk as the SDK parsed it. Throws a ZodError when it is no chunk at all. */
  take(chunk: unknown): void
  /** Whether the server said how its reply ended. From here on a cut connection does no harm. */
  finished(): boolean
  /** Whether any choice came. */
  started(): boolean
  /** The last usage of this provider request, never a sum: servers repeat and accumulate it. */
  usage(): Usage
  /** The reply as far as it came. Call it once. */
  end(model: string): ModelReply
}

/** Joins pieces of text. A surrogate pair may be split between two of them, so half of one waits for the next. */
const createJoiner = (): { push(piece: string): string; rest(): string } => {
  let half = ''
  return {
    push: (piece) => {
      const text = half + piece
      const code = text.charCodeAt(text.length - 1)
      half = code >= 0xd800 && code <= 0xdbff ? text.slice(-1) : ''
      return text.slice(0, text.length - half.length).toWellFormed()
    },
    rest: () => half.toWellFormed(),
  }
}

const finishOf = (reason: string, hasCalls: boolean): ModelReply['finish'] => {
  if (reason === 'content_filter') return 'content_filter'
  if (reason === 'length' || reason === 'max_tokens' || reason === 'model_length') return 'length'
  return hasCalls ? 'tool_calls' : 'stop'
}

type Options = { usedIds: Iterable<string>; onText: (text: string) => void }

export const draftReply = ({ usedIds, onText }: Options): ReplyDraft => {
  const calls = collectToolCalls(usedIds)
  const joiner = createJoiner()
  const texts: string[] = []
  const reasoning: string[] = []
  let usage: Usage | undefined
  let finish: string | undefined
  let model: string | undefined
  let started = false

  const say = (text: string): void => {
    if (text === '') return
    texts.push(text)
    onText(text)
  }
  const takeMessage = (message: MessagePiece): void => {
    reasoning.push(message.reasoning_content ?? message.reasoning ?? '')
    say(joiner.push(message.content + (message.refusal ?? '')))
    for (const piece of message.tool_calls ?? []) calls.take(piece)
  }
  return {
    take: (value) => {
      const chunk = chunkSchema.parse(value)
      const choice = chunk.choices?.[0]
      usage = usageOf(chunk.usage) ?? usageOf(choice?.usage) ?? usage
      model = chunk.model ?? model
      if (choice === undefined) return
      started = true
      if (choice.delta != null) takeMessage(choice.delta)
      else if (choice.message != null) takeMessage(choice.message)
      finish = choice.finish_reason || finish || (choice.message == null ? undefined : 'stop')
    },
    finished: () => finish !== undefined,
    started: () => started,
    usage: () => usage ?? noUsage,
    end: (asked) => {
      say(joiner.rest())
      const tool_calls = calls.all()
      return {
        text: texts.join(''),
        reasoning: reasoning.join('').toWellFormed(),
        tool_calls,
        finish: finishOf(finish ?? '', tool_calls.length > 0),
        usage: usage ?? noUsage,
        model: model ?? asked,
      }
    },
  }
}
