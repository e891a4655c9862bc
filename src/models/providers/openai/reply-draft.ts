import { readFinishMeaning, readLaterReason, toFinish } from '../../chat/finish-reasons.ts'
import { createLengthLimit, createTextCollector, createToolCallCollector } from '../../chat/reply-chunks.ts'
import { mergeTokenCounts, noTokenCounts, toMeteredUsage } from '../../chat/token-counts.ts'
import { emptyResult, type ProviderRequest, type ResultDelta } from '../../ports/model-ports.ts'
import { createFailedFinishError } from '../../ports/unreadable-response.ts'
import { createBadReplyError, readErrorObject, truncatedError } from '../../transport/provider-errors.ts'
import { hasErrorWords } from '../../transport/upstream-error.ts'
import type { AnswerDraft } from '../answer-exchange.ts'
import { type MessageChunk, readChatChunk } from './chat-chunk.ts'

/** A draft of a chat completion in OpenAI's shape, as the different servers send it. */
export const createReplyDraft = ({
  usedIds,
  onDelta,
}: Pick<ProviderRequest, 'usedIds' | 'onDelta'>): AnswerDraft => {
  const count = createLengthLimit()
  const calls = createToolCallCollector(usedIds, count)
  const texts = createTextCollector(count)
  let counts = noTokenCounts
  let finish: string | null = null
  let model: string | null = null
  let started = false
  let last: unknown

  const emit = (delta: ResultDelta): void => {
    if (delta.text !== '' || delta.reasoning !== '') onDelta(delta)
  }
  const takeMessage = (message: MessageChunk, isWhole: boolean): void => {
    emit(isWhole ? texts.replace(message) : texts.push(message))
    // a call would be made twice
    if (isWhole && message.toolCalls.length > 0) calls.restart()
    calls.take(message.toolCalls)
  }
  return {
    take: (value) => {
      const chunk = readChatChunk(value)
      counts = mergeTokenCounts(counts, chunk.counts)
      model = chunk.model || model
      last = value
      const { choice } = chunk
      if (choice === null) return
      started = true
      if (choice.message !== null) takeMessage(choice.message, choice.isWhole)
      finish = readLaterReason(choice.finish, finish)
      if (choice.error !== null || (finish !== null && readFinishMeaning(finish) === 'failed'))
        throw createFailedFinishError(finish, choice.error)
    },
    size: count.total,
    finished: () => finish !== null,
    findEndError: (ended) => {
      if (!started && hasErrorWords(last)) return readErrorObject(last)
      if (!started) return createBadReplyError('sent a reply without choices')
      return ended || finish !== null ? undefined : truncatedError
    },
    usage: () => toMeteredUsage(counts),
    end: () => {
      emit(texts.rest())
      const tool_calls = calls.all()
      return {
        ...emptyResult,
        ...texts.all(),
        tool_calls,
        finish: toFinish(finish, tool_calls.length > 0),
        usage: toMeteredUsage(counts),
        model,
      }
    },
  }
}
