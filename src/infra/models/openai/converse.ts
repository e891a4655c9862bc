import type { AnswerReader, ProviderOutcome, ProviderRequest } from '../ports.ts'
import { cutShort, type Fault, faultOfReply } from '../wire/faults.ts'
import type { Piece } from '../wire/split.ts'
import { type Talked, talk, type Wire } from '../wire/talk.ts'
import type { Ask } from './ask.ts'
import type { Chat } from './chat.ts'
import { requestTo } from './line.ts'
import { faultOfThrown, outcomeOfFault, outcomeOfResult, parsed } from './outcome.ts'
import { draftByFormat, draftReply, type ReplyDraft } from './reply.ts'

export type Conversation = {
  chat: Chat
  wire: Wire
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
const askBy = async (
  { chat, wire, ask }: Conversation,
  request: ProviderRequest,
  isStreamed: boolean,
  take: (piece: Piece) => void,
  signal: AbortSignal,
): Promise<Talked> => {
  const { base_url: _, allow_private: allowPrivate, timeouts: clocks } = request.model.endpoint
  const asked = {
    ...chat.invocationParams(ask.options, { streaming: isStreamed }),
    ...ask.parameters,
    model: request.model.upstream_name,
    messages: ask.messages,
    stream: isStreamed,
  }
  let talked: Talked | undefined
  await chat.ask(asked, async (worded) => {
    const exchanging = {
      request: requestTo('chat/completions', request, worded),
      allowPrivate,
      clocks,
      endsAtMs: request.endsAtMs,
      expects: isStreamed ? ('sse' as const) : ('whole' as const),
      done: isStreamed ? '[DONE]' : null,
      take,
    }
    talked = await talk(wire, exchanging, signal)
  })
  if (talked === undefined) throw new Error('LangChain did not send what it was given')
  return talked
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
  const { reader } = conversation
  const draft = reader === null ? draftReply(request) : draftByFormat(reader, request)
  const isStreamed = reader === null || reader.stream([]) !== null
  const raw: unknown[] = []
  let told: unknown = null
  const take = ({ kind, text }: Piece): void => {
    const chunk = parsed(text)
    request.onRaw?.(chunk)
    if (reader !== null && raw.length < mostKept) raw.push(chunk)
    draft.take(chunk, kind === 'whole')
    const usage = draft.usage()
    if (usage !== null && usage !== told) request.onUsage?.(usage)
    told = usage
  }
  const { fault: found, thrown, ended } = await askBy(conversation, request, isStreamed, take, signal)
  const failed = thrown === undefined ? undefined : faultOfThrown(thrown)
  const fault = found ?? failed ?? faultOfEnd(draft, ended)
  if (fault !== undefined && !(fault.interrupted === true && draft.finished()))
    return outcomeOfFault(fault, draft.usage(), thrown, raw)
  try {
    return outcomeOfResult(draft.end())
  } catch (error) {
    return outcomeOfFault(faultOfThrown(error), draft.usage(), error, raw)
  }
}
