import { createLengthLimit, createTextJoiner, createToolCallCollector } from '../../chat/reply-chunks.ts'
import {
  type CanonicalResult,
  emptyResult,
  type MeteredUsage,
  type ProviderRequest,
} from '../../ports/model-ports.ts'
import { createBadReplyError, truncatedError } from '../../transport/provider-errors.ts'
import type { AnswerDraft } from '../answer-exchange.ts'
import { type MessageChunk, readChatChunk } from './chat-chunk.ts'

const toReplyFinish = (reason: string, hasCalls: boolean): CanonicalResult['finish'] => {
  if (reason === 'content_filter') return 'content_filter'
  if (reason === 'length' || reason === 'max_tokens' || reason === 'model_length') return 'length'
  return hasCalls ? 'tool_calls' : 'stop'
}

/** A draft of a chat completion in OpenAI's shape, as the different servers send it. */
export const createReplyDraft = ({
  usedIds,
  onDelta,
}: Pick<ProviderRequest, 'usedIds' | 'onDelta'>): AnswerDraft => {
  const count = createLengthLimit()
  const calls = createToolCallCollector(usedIds, count)
  const joiner = createTextJoiner(count)
  const reasoningJoiner = createTextJoiner(count)
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
    findEndError: (ended) => {
      if (!started) return createBadReplyError('sent a reply without choices')
      return ended || finish !== undefined ? undefined : truncatedError
    },
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
