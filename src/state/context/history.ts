import type { RuntimeState } from '../runtime-state.ts'
import { estimateTokens } from '../tokens.ts'
import { type ReadonlyAction, turnOf, turnPrompt } from '../turn.ts'
import { latestCompaction } from './compacted.ts'
import { type Piece, unrankedPieces } from './earlier.ts'
import { derivedLabel, type Fence } from './fence.ts'
import { overlap, termsOf, towards } from './rank.ts'
import { joinSections, section } from './section.ts'
import { type Told, take, tellTurns } from './told.ts'

type HistoryState = Pick<RuntimeState, 'prompts' | 'action_history' | 'chat_history'>

/**
 * `told`: what came before, in the order of time, which the next turn's begins with; `recalled`: what that leaves out and
 * this request asks for.
 */
type History = { told: string; recalled: string }

/** How much of the room is told; the rest, and some of what is left of it, is for what the request asks for. */
const toldShare = 0.85
const recalledShare = 0.25

/** What compaction made of earlier turns, what was said and found, and what of it has to do with the request. */
export const historyOf = (state: HistoryState, budget: number, fence: Fence): History => {
  const latest = latestCompaction(state)
  const key = `${turnOf(state)} ${latest?.id ?? 0} ${budget}`
  const anchor = state.action_history.at(-2)
  const known = anchor && made.get(anchor)
  if (known && known.key === key && known.prompt === turnPrompt(state)) return known.history
  const summary = section('Session summary', latest ? fence(latest.text, derivedLabel) : '')
  const turns = byTurn(unrankedPieces(state, latest))
  const told = tellTurns(turns, Math.max(0, budget * toldShare - estimateTokens(summary)))
  const conversation = section('Conversation', conversationOf(turns, told, fence))
  const left = budget - estimateTokens(summary) - estimateTokens(conversation)
  const history = {
    told: joinSections([summary, conversation]),
    recalled: section(
      'From earlier turns',
      recalledOf(state, turns.flat(), told, Math.min(left, budget * recalledShare), fence),
    ),
  }
  if (anchor) made.set(anchor, { key, prompt: turnPrompt(state), history })
  return history
}

/** By the turn before: the same at each step of this one. */
const made = new WeakMap<readonly ReadonlyAction[], { key: string; prompt: string; history: History }>()

/** The pieces of each turn as they came: what was asked, what was found, what was answered. */
const byTurn = ({ chat, actions }: ReturnType<typeof unrankedPieces>): Piece[][] => {
  const turns = new Map<number, { asked: Piece[]; found: Piece[]; answered: Piece[] }>()
  const of = (turn: number) => {
    const known = turns.get(turn) ?? { asked: [], found: [], answered: [] }
    turns.set(turn, known)
    return known
  }
  for (const piece of chat) of(piece.turn)[piece.line === 'user' ? 'asked' : 'answered'].push(piece)
  for (const piece of actions) of(piece.turn).found.push(piece)
  return [...turns.entries()]
    .toSorted(([a], [b]) => a - b)
    .map(([, { asked, found, answered }]) => [...asked, ...found, ...answered])
}

/** A line of talk begins with who said it, and those that follow it are set in; an action begins with a dash. */
const conversationOf = (turns: readonly (readonly Piece[])[], told: Told, fence: Fence): string => {
  const lines: string[] = []
  let hidden = 0
  for (const piece of turns.flat()) {
    const how = told.get(piece)
    if (piece.kind === 'action') {
      if (how) lines.push(how === 'line' ? `- ${piece.line}` : found(piece, fence))
    } else if (how) {
      if (hidden > 0) lines.push(leftOut)
      hidden = 0
      lines.push(`${piece.line}: ${setIn(piece.text)}`)
    } else hidden++
  }
  return lines.join('\n')
}

const leftOut = '[messages left out]'

const setIn = (text: string): string => text.replaceAll('\n', '\n  ')
const found = ({ line, text, label }: Piece, fence: Fence): string => `- ${line}\n${fence(text, label)}`

/** A piece that holds so much of what is asked for is worth telling again. */
const leastOverlap = 0.3

const recalledOf = (
  state: HistoryState,
  pieces: readonly Piece[],
  told: Told,
  room: number,
  fence: Fence,
): string => {
  const terms = termsOf(turnPrompt(state))
  const asked = pieces.flatMap((piece) => {
    if (told.get(piece) === 'whole') return []
    const shared = overlap(piece.kind === 'chat' ? piece.text : piece.line, terms)
    return shared >= leastOverlap ? [{ ...piece, rank: towards(piece.rank, shared) }] : []
  })
  return [...take(asked, room - headingTokens)]
    .map((piece) =>
      piece.kind === 'chat'
        ? `- ${piece.line} (turn ${piece.turn}): ${setIn(piece.text)}`
        : found(piece, fence),
    )
    .join('\n')
}

const headingTokens = 10
