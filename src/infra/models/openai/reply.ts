import { createJoiner } from '../../formats/joiner.ts'
import type { AnswerReader, CanonicalResult, MeteredUsage, ResultDelta, StreamReader } from '../ports.ts'
import { type MessagePiece, readChunk } from './chunk.ts'
import { collectToolCalls } from './tool-calls.ts'

/** A reply while it arrives. */
export type ReplyDraft = {
  /** Takes one chunk, its JSON parsed; `whole`: it is the one body of the answer. Throws NotOfProtocol when it is no chunk at all, or `Unreadable`. */
  take(chunk: unknown, whole: boolean): void
  /** Whether the server said how its reply ended. From here on a cut connection does no harm. */
  finished(): boolean
  /** Whether any choice came. */
  started(): boolean
  /** The last usage of this provider request, never a sum: servers repeat and accumulate it. */
  usage(): MeteredUsage | null
  /** The reply as far as it came. Call it once. */
  end(): CanonicalResult
}

const finishOf = (reason: string, hasCalls: boolean): CanonicalResult['finish'] => {
  if (reason === 'content_filter') return 'content_filter'
  if (reason === 'length' || reason === 'max_tokens' || reason === 'model_length') return 'length'
  return hasCalls ? 'tool_calls' : 'stop'
}

/** A result in which nothing came. */
export const emptyResult: CanonicalResult = {
  text: '',
  reasoning: '',
  tool_calls: [],
  images: [],
  video: null,
  embeddings: [],
  ranking: [],
  job: null,
  finish: 'stop',
  usage: null,
  model: null,
}

type Options = { usedIds: readonly string[]; onDelta(delta: ResultDelta): void }

/** Chat completions, as any server may put them. */
export const draftReply = ({ usedIds, onDelta }: Options): ReplyDraft => {
  const calls = collectToolCalls(usedIds)
  const joiner = createJoiner()
  const thinker = createJoiner()
  const texts: string[] = []
  const thoughts: string[] = []
  let usage: MeteredUsage | null = null
  let finish: string | undefined
  let model: string | null = null
  let started = false

  const say = (text: string, reasoning: string): void => {
    if (text === '' && reasoning === '') return
    texts.push(text)
    thoughts.push(reasoning)
    onDelta({ text, reasoning })
  }
  const takeMessage = ({ text, reasoning, toolCalls }: MessagePiece): void => {
    say(joiner.push(text), thinker.push(reasoning))
    for (const piece of toolCalls) calls.take(piece)
  }
  return {
    take: (value) => {
      const chunk = readChunk(value)
      usage = chunk.usage ?? usage
      model = chunk.model ?? model
      const { choice } = chunk
      if (choice === null) return
      started = true
      if (choice.message !== null) takeMessage(choice.message)
      finish = choice.finish || finish || (choice.isWhole ? 'stop' : undefined)
    },
    finished: () => finish !== undefined,
    started: () => started,
    usage: () => usage,
    end: () => {
      say(joiner.rest(), thinker.rest())
      const tool_calls = calls.all()
      return {
        ...emptyResult,
        text: texts.join(''),
        reasoning: thoughts.join(''),
        tool_calls,
        finish: finishOf(finish ?? '', tool_calls.length > 0),
        usage,
        model,
      }
    },
  }
}

/** Answers of another shape under OpenAI's protocol, read as the model's response format says. */
export const draftByFormat = (reader: AnswerReader, { usedIds, onDelta }: Options): ReplyDraft => {
  let stream: StreamReader | null = null
  let result: CanonicalResult | null = null
  return {
    take: (chunk, whole) => {
      if (!whole) stream ??= reader.stream(usedIds)
      if (stream === null) {
        result = reader.read(chunk, usedIds)
        onDelta({ text: result.text, reasoning: result.reasoning })
        return
      }
      const delta = stream.take(chunk)
      if (delta.text !== '' || delta.reasoning !== '') onDelta(delta)
    },
    finished: () => result !== null || (stream?.finished() ?? false),
    started: () => result !== null || stream !== null,
    usage: () => result?.usage ?? stream?.usage() ?? null,
    end: () => result ?? stream?.end() ?? emptyResult,
  }
}
