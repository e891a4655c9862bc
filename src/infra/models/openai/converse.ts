import type { ChatOpenAICompletions } from '@langchain/openai'
import type { Clock } from '../../../state/ports.ts'
import type { AnswerReader, ProviderOutcome, ProviderRequest } from '../ports.ts'
import type { Ask } from './ask.ts'
import { faultOfThrown, outcomeOfFault, outcomeOfResult, underClocks } from './attempt.ts'
import { readEvents, type TakeChunk } from './event-stream.ts'
import { type Exchange, longestTimerMs } from './exchange.ts'
import { cutShort, type Fault, faultOfReply } from './faults.ts'
import { lineOf } from './line.ts'
import { exchangeHeader, type Line } from './model-fetch.ts'
import { draftByFormat, draftReply, type ReplyDraft } from './reply.ts'

export type Conversation = {
  chat: ChatOpenAICompletions
  /** The requests under way, for the `fetch` below the SDK to find. */
  lines: Map<string, Line>
  clock: Clock
  /** The most an answer may weigh. */
  maxBytes: number
  id: string
  ask: Ask
  /** Null: the answer is a chat completion. */
  reader: AnswerReader | null
}

/** How many chunks are kept, to show what came when it could not be read. */
const mostKept = 500

/**
 * Asks by `completionWithRetry` and reads the raw chunks: the message chunks of `stream()` lose tool calls of servers
 * that send no role, and usage of a cut stream, and cost a callback manager that reads the environment.
 */
const exchangeChunks = async (
  { chat, lines, clock, maxBytes, id, ask }: Conversation,
  request: ProviderRequest,
  exchange: Exchange,
  isStreamed: boolean,
  take: TakeChunk,
): Promise<void> => {
  let body: ReadableStream<Uint8Array> | null = null
  const onBody = (received: ReadableStream<Uint8Array>): void => {
    body = received
  }
  lines.set(id, lineOf(request, exchange, 'chat/completions', isStreamed ? onBody : null))
  const options = {
    headers: { [exchangeHeader]: exchange.id },
    signal: exchange.signal,
    timeout: longestTimerMs,
    maxRetries: 0,
  }
  const asked = {
    ...chat.invocationParams(ask.options, { streaming: isStreamed }),
    ...ask.parameters,
    model: request.model.upstream_name,
    messages: ask.messages,
  }
  if (!isStreamed) return take(await chat.completionWithRetry({ ...asked, stream: false }, options), true)
  await chat.completionWithRetry({ ...asked, stream: true }, options)
  if (body !== null) await readEvents(body, { exchange, clock, maxBytes }, take)
}

const faultOfEnd = (draft: ReplyDraft, ended: boolean): Fault | undefined => {
  if (draft.finished()) return undefined
  if (!draft.started()) return faultOfReply('sent a reply without choices')
  return ended ? undefined : cutShort
}

/** One provider request of a chat model, its outcome as a value. Rejects only when the caller aborts. */
export const converse = async (
  conversation: Conversation,
  request: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderOutcome> => {
  const { lines, id, reader } = conversation
  const draft = reader === null ? draftReply(request) : draftByFormat(reader, request)
  const isStreamed = reader === null || reader.stream([]) !== null
  const raw: unknown[] = []
  let told: unknown = null
  const take: TakeChunk = (chunk, whole) => {
    request.onRaw?.(chunk)
    if (reader !== null && raw.length < mostKept) raw.push(chunk)
    draft.take(chunk, whole)
    const usage = draft.usage()
    if (usage !== null && usage !== told) request.onUsage?.(usage)
    told = usage
  }
  const { exchange, thrown } = await underClocks(
    request,
    conversation,
    (opened) => exchangeChunks(conversation, request, opened, isStreamed, take),
    signal,
  ).finally(() => lines.delete(id))
  const failed = thrown === undefined ? undefined : faultOfThrown(thrown)
  const fault = exchange.fault() ?? failed ?? faultOfEnd(draft, exchange.ended())
  if (fault !== undefined && !(fault.interrupted === true && draft.finished()))
    return outcomeOfFault(fault, draft.usage(), thrown, raw)
  try {
    return outcomeOfResult(draft.end())
  } catch (error) {
    return outcomeOfFault(faultOfThrown(error), draft.usage(), error, raw)
  }
}
