import { type AnsweredCall, listAnsweredCalls, type PlannedCall } from '../state/calls.ts'
import { memoizeByObject } from '../state/memoize.ts'
import {
  derivedLabel,
  ownText,
  type PromptText,
  type ProvenanceLabel,
  readActionLabel,
  toLabel,
} from '../state/provenance.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { cutText } from '../state/text/cut-text.ts'
import { estimateTokens, fitTokens } from '../state/text/tokens.ts'
import { currentTurn, type ReadonlyAction, turnPrompt } from '../state/turn.ts'
import { type Compaction, isCompacted } from './latest-compaction.ts'
import { computeOverlap, extractTerms, type Rank, raiseRank, rankAction } from './relevance-rank.ts'
import { readResultText } from './result-text.ts'

/** One thing said or found in an earlier turn: a line on it, and what it said in full or in its beginning. */
export type HistoryEntry = {
  turn: number
  /** The id of the action; of what was said, that of the last action of its turn. */
  id: number
  kind: 'chat' | 'action'
  /** Who said it, or which action it was. */
  title: PromptText
  /** `user`, `assistant`, or what was called. */
  heading: string
  text: string
  label: ProvenanceLabel
  rank: Rank
  /** Of line and text, with the lines around them. */
  tokens: number
}

type HistoryEntriesState = Pick<RuntimeState, 'prompts' | 'action_history' | 'chat_history'>
type ChatMessage = RuntimeState['chat_history'][number]

const maxChatTokens = 1000
const maxExcerpt = 1200
const aroundTokens = 30

/** What the latest turns said counts as important: a request goes on from there. */
const freshTurns = 2
const chatRelevance = 0.5

type HistoryEntries = { chat: HistoryEntry[]; actions: HistoryEntry[] }

/** All that earlier turns said and found and no compaction covers, with its rank for the request of this turn. */
export const rankHistoryEntries = (
  state: HistoryEntriesState,
  compacted: Compaction | null,
): HistoryEntries => {
  const now = currentTurn(state)
  const terms = extractTerms(turnPrompt(state))
  const { chat, actions } = listHistoryEntries(state, compacted)
  return {
    chat: chat.map((piece) => ({ ...piece, rank: rankChat(piece, now, terms) })),
    actions: actions.map((piece) => ({
      ...piece,
      rank: raiseRank(piece.rank, computeOverlap(piece.heading, terms)),
    })),
  }
}

/** The same with the ranks of their own turns: for who only asks how large they are. */
export const listHistoryEntries = (
  state: HistoryEntriesState,
  compacted: Compaction | null,
): HistoryEntries => {
  const now = currentTurn(state)
  const lastIds = state.action_history.map((turn) => turn.at(-1)?.id ?? 0)
  const chat = state.chat_history
    .filter(({ turn }) => turn < now && !isCompacted({ id: lastIds[turn - 1] ?? 0 }, compacted))
    .map((message, at) => toChatEntry(message, lastIds[message.turn - 1] ?? 0, at))
  const actions = state.action_history.slice(0, now - 1).flatMap((turn, at) =>
    readAnswers(turn)
      .filter(({ action }) => !isCompacted(action, compacted))
      .map(({ call, action }) => toActionEntry(action, call, at + 1)),
  )
  return { chat, actions }
}

const rankChat = (piece: HistoryEntry, now: number, terms: readonly string[]): Rank =>
  raiseRank({ ...piece.rank, important: piece.turn >= now - freshTurns }, computeOverlap(piece.text, terms))

/** Turns that are over do not change: each is read once. */
const readAnswers = memoizeByObject(listAnsweredCalls)

const toChatEntry = memoizeByObject((message: ChatMessage, id: number, recency: number): HistoryEntry => {
  const text = fitTokens(message.content, maxChatTokens)
  // an answer repeats what files and pages say, so beside other text it is data
  const label = message.role === 'user' ? toLabel('user') : derivedLabel
  return {
    turn: message.turn,
    id,
    kind: 'chat',
    title: ownText`${message.role === 'user' ? ownText`user` : ownText`assistant`} (turn ${message.turn})`,
    heading: message.role,
    text,
    label,
    rank: { important: false, relevance: chatRelevance, recency },
    tokens: estimateTokens(text) + (label.trusted ? 4 : aroundTokens),
  }
})

/** A call and its result, as prompts of later turns have it. */
const toActionEntry = memoizeByObject((action: ReadonlyAction, call: PlannedCall, turn: number) => {
  const { content } = action.context ?? {}
  const text = typeof content === 'string' ? content : readResultText(action)
  return createActionEntry({ call, action }, turn, cutText(text, maxExcerpt), 200)
})

/** The entry of a call and its result: `text` of the result, and `maxArgs` characters of the arguments. */
export const createActionEntry = (
  { call, action }: AnsweredCall,
  turn: number,
  text: string,
  maxArgs: number,
  opening = '',
): HistoryEntry => {
  const failed = action.result.is_error === true ? ownText` (error)` : ownText``
  const title = ownText`action ${action.id} (turn ${turn})${failed}`
  const heading = `${opening}${call.tool} ${cutText(JSON.stringify(call.args), maxArgs)}`
  return {
    turn,
    id: action.id,
    kind: 'action',
    title,
    heading,
    text,
    label: readActionLabel(action),
    rank: rankAction(action),
    tokens: estimateTokens(title + heading) + estimateTokens(text) + aroundTokens,
  }
}
