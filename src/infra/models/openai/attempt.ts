import type { ChatOpenAICompletions } from '@langchain/openai'
import { z } from 'zod'
import type { Clock, ModelReply, ModelRole } from '../../../state/ports.ts'
import type { Usage } from '../../../state/runtime-state.ts'
import type { Ask } from './ask.ts'
import { type Clocks, type Exchange, longestTimerMs, openExchange } from './exchange.ts'
import { cutShort, type Fault, faultOfErrorObject, faultOfReply } from './faults.ts'
import { exchangeHeader, roleHeader } from './model-fetch.ts'
import { draftReply, type ReplyDraft } from './reply.ts'
import { excerpt } from './upstream.ts'

export type Attempt = {
  chat: ChatOpenAICompletions
  /** The requests under way, for the `fetch` below the SDK to find. */
  exchanges: Map<string, Exchange>
  clock: Clock
  clocks: Clocks
  endsAtMs: number
  id: string
  role: ModelRole
  model: string
  ask: Ask
  usedIds: readonly string[]
  onText: (text: string) => void
}

export type Outcome = { ok: true; reply: ModelReply } | { ok: false; fault: Fault; usage: Usage }

/**
 * Reads the raw chunks of `completionWithRetry`: the message chunks of `stream()` lose tool calls of servers
 * that send no role, and usage of a cut stream, and cost a callback manager that reads the environment.
 */
const converse = async (attempt: Attempt, exchange: Exchange, draft: ReplyDraft): Promise<void> => {
  const { chat, role, model, ask } = attempt
  const chunks = await chat.completionWithRetry(
    {
      ...chat.invocationParams(ask.options, { streaming: true }),
      model,
      messages: ask.messages,
      stream: true,
    },
    {
      headers: { [exchangeHeader]: exchange.id, [roleHeader]: role },
      signal: exchange.signal,
      timeout: longestTimerMs,
      maxRetries: 0,
    },
  )
  for await (const chunk of chunks) {
    if (exchange.signal.aborted) return
    draft.take(chunk)
  }
}

/** What the SDK threw while it read the stream: an error object in it, or what is not JSON or no chunk. */
const faultOfThrown = (error: unknown): Fault => {
  if (error instanceof Error && 'error' in error && error.error != null)
    return faultOfErrorObject(error.error)
  if (error instanceof SyntaxError) return faultOfReply('sent what is not JSON')
  if (error instanceof z.ZodError) return faultOfReply('sent what is no chat completion')
  return faultOfReply(`sent what could not be read: ${excerpt(String(error))}`)
}

const faultOfEnd = (draft: ReplyDraft, ended: boolean): Fault | undefined => {
  if (draft.finished()) return undefined
  if (!draft.started()) return faultOfReply('sent a reply without choices')
  return ended ? undefined : cutShort
}

const outcomeOf = (fault: Fault | undefined, draft: ReplyDraft, model: string): Outcome => {
  if (fault !== undefined && !(fault.interrupted === true && draft.finished())) {
    return { ok: false, fault, usage: draft.usage() }
  }
  const reply = draft.end(model)
  if (reply.finish !== 'content_filter' || reply.text !== '' || reply.tool_calls.length > 0) {
    return { ok: true, reply }
  }
  const filtered: Fault = { code: 'model_content_filtered', what: 'withheld its whole reply', retry: false }
  return { ok: false, fault: filtered, usage: reply.usage }
}

/** One provider request, its outcome as a value. Rejects only when the caller aborts, with the signal's reason. */
export const tryOnce = async (attempt: Attempt, signal: AbortSignal): Promise<Outcome> => {
  const { exchanges, id, model, usedIds, onText } = attempt
  const exchange = openExchange(attempt, signal)
  const draft = draftReply({ usedIds, onText })
  let thrown: Fault | undefined
  exchanges.set(id, exchange)
  try {
    await Promise.race([converse(attempt, exchange, draft), exchange.stopped])
  } catch (error) {
    thrown = faultOfThrown(error)
  } finally {
    exchanges.delete(id)
    exchange.close()
  }
  signal.throwIfAborted()
  return outcomeOf(exchange.fault() ?? thrown ?? faultOfEnd(draft, exchange.ended()), draft, model)
}
