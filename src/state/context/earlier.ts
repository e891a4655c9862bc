import { type AnsweredCall, answeredCalls } from '../calls.ts'
import { cutText } from '../cut-text.ts'
import type { RuntimeState } from '../runtime-state.ts'
import { estimateTokens, fitTokens } from '../tokens.ts'
import { type ReadonlyAction, turnOf, turnPrompt } from '../turn.ts'
import { type Compacted, isCompacted } from './compacted.ts'
import { type Label, labelOf, labelOfAction } from './fence.ts'
import { overlap, type Rank, rankOf, termsOf, towards } from './rank.ts'
import { resultText } from './results.ts'

/** One thing said or found in an earlier turn: a line on it, and what it said in full or in its beginning. */
export type Piece = {
  turn: number
  /** The id of the action; of what was said, that of the last action of its turn. */
  id: number
  kind: 'chat' | 'action'
  line: string
  text: string
  label: Label
  rank: Rank
  /** Of line and text with what stands around them. */
  tokens: number
}

type EarlierState = Pick<RuntimeState, 'prompts' | 'action_history' | 'chat_history'>
type ChatMessage = RuntimeState['chat_history'][number]

const maxChatTokens = 1000
const maxExcerpt = 1200
const aroundTokens = 30

/** What the latest turns said counts as important: a request goes on from there. */
const freshTurns = 2
const chatRelevance = 0.5

type EarlierPieces = { chat: Piece[]; actions: Piece[] }

/** All that earlier turns said and found and no compaction covers, with its rank for the request of this turn. */
export const earlierPieces = (state: EarlierState, compacted: Compacted | null): EarlierPieces => {
  const now = turnOf(state)
  const terms = termsOf(turnPrompt(state))
  const { chat, actions } = unrankedPieces(state, compacted)
  return {
    chat: chat.map((piece) => ({ ...piece, rank: chatRank(piece, now, terms) })),
    actions: actions.map((piece) => ({ ...piece, rank: towards(piece.rank, overlap(piece.line, terms)) })),
  }
}

/** The same with the ranks of their own turns: for who only asks how large they are. */
export const unrankedPieces = (state: EarlierState, compacted: Compacted | null): EarlierPieces => {
  const now = turnOf(state)
  const lastIds = state.action_history.map((turn) => turn.at(-1)?.id ?? 0)
  const chat = state.chat_history
    .filter(({ turn }) => turn < now && !isCompacted({ id: lastIds[turn - 1] ?? 0 }, compacted))
    .map((message, at) => chatPiece(message, lastIds[message.turn - 1] ?? 0, at))
  const actions = state.action_history.slice(0, now - 1).flatMap((turn, at) =>
    answersOf(turn)
      .filter(({ action }) => !isCompacted(action, compacted))
      .map((one) => actionPiece(one, at + 1)),
  )
  return { chat, actions }
}

const chatRank = (piece: Piece, now: number, terms: readonly string[]): Rank =>
  towards({ ...piece.rank, important: piece.turn >= now - freshTurns }, overlap(piece.text, terms))

const chats = new WeakMap<ChatMessage, Piece>()
const pieces = new WeakMap<ReadonlyAction, Piece>()
const answers = new WeakMap<readonly ReadonlyAction[], readonly AnsweredCall[]>()

/** Turns that are over do not change: each is read once. */
const answersOf = (turn: readonly ReadonlyAction[]): readonly AnsweredCall[] => {
  const known = answers.get(turn) ?? answeredCalls(turn)
  answers.set(turn, known)
  return known
}

const chatPiece = (message: ChatMessage, id: number, recency: number): Piece => {
  const known = chats.get(message)
  if (known) return known
  const text = fitTokens(message.content, maxChatTokens)
  const piece: Piece = {
    turn: message.turn,
    id,
    kind: 'chat',
    line: message.role,
    text,
    label: labelOf(message.role === 'user' ? 'user' : 'agent'),
    rank: { important: false, relevance: chatRelevance, recency },
    tokens: estimateTokens(text) + 4,
  }
  chats.set(message, piece)
  return piece
}

/** A call and what it brought, as later turns are shown it. */
const actionPiece = ({ call, action }: AnsweredCall, turn: number): Piece => {
  const known = pieces.get(action)
  if (known) return known
  const { content } = action.context ?? {}
  const text = typeof content === 'string' ? content : resultText(action)
  const excerpt = cutText(text, maxExcerpt)
  const failed = action.result.is_error === true ? ' (error)' : ''
  const args = cutText(JSON.stringify(call.args), 200)
  const line = `action ${action.id} (turn ${turn}): ${call.tool} ${args}${failed}`
  const piece: Piece = {
    turn,
    id: action.id,
    kind: 'action',
    line,
    text: excerpt,
    label: labelOfAction(action),
    rank: rankOf(action),
    tokens: estimateTokens(line) + estimateTokens(excerpt) + aroundTokens,
  }
  pieces.set(action, piece)
  return piece
}
