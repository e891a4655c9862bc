import { createTextJoiner, createToolCallCollector } from '../../chat/reply-chunks.ts'
import type {
  CanonicalResult,
  MeteredUsage,
  ResponseReader,
  ResultDelta,
  StreamReader,
} from '../../ports/model-ports.ts'
import { type MessageChunk, readChatChunk } from './chat-chunk.ts'

/** A reply that is being received. */
export type ReplyDraft = {
  /** Takes one parsed chunk; `whole`: it is the one body of the answer. Throws ProtocolError or UnreadableResponseError. */
  take(chunk: unknown, whole: boolean): void
  /** Whether the server has reported how its reply ended. After that a lost connection does not matter. */
  finished(): boolean
  /** Whether any choice was received. */
  started(): boolean
  /** The last usage of this provider request, never a sum: servers repeat and accumulate it. */
  usage(): MeteredUsage | null
  /** The reply so far. Call it once. */
  end(): CanonicalResult
}

const toReplyFinish = (reason: string, hasCalls: boolean): CanonicalResult['finish'] => {
  if (reason === 'content_filter') return 'content_filter'
  if (reason === 'length' || reason === 'max_tokens' || reason === 'model_length') return 'length'
  return hasCalls ? 'tool_calls' : 'stop'
}

/** A result without content. */
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

/** A draft of a chat completion in OpenAI's shape, as the different servers send it. */
export const createReplyDraft = ({ usedIds, onDelta }: Options): ReplyDraft => {
  const calls = createToolCallCollector(usedIds)
  const joiner = createTextJoiner()
  const reasoningJoiner = createTextJoiner()
  const texts: string[] = []
  const reasonings: string[] = []
  let usage: MeteredUsage | null = null
  let finish: string | undefined
  let model: string | null = null
  let started = false

  const emit = (text: string, reasoning: string): void => {
    if (text === '' && reasoning === '') return
    texts.push(text)
    reasonings.push(reasoning)
    onDelta({ text, reasoning })
  }
  const takeMessage = ({ text, reasoning, toolCalls }: MessageChunk): void => {
    emit(joiner.push(text), reasoningJoiner.push(reasoning))
    for (const call of toolCalls) calls.take(call)
  }
  return {
    take: (value) => {
      const chunk = readChatChunk(value)
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
      emit(joiner.rest(), reasoningJoiner.rest())
      const tool_calls = calls.all()
      return {
        ...emptyResult,
        text: texts.join(''),
        reasoning: reasonings.join(''),
        tool_calls,
        finish: toReplyFinish(finish ?? '', tool_calls.length > 0),
        usage,
        model,
      }
    },
  }
}

/** A draft of an answer of another shape under OpenAI's protocol, read by the model's response format. */
export const createFormatReplyDraft = (reader: ResponseReader, { usedIds, onDelta }: Options): ReplyDraft => {
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
