import type { RuntimeState } from '../runtime-state.ts'
import { estimateTokens } from '../tokens.ts'
import { type ReadonlyAction, turnOf, turnPrompt } from '../turn.ts'
import { latestCompaction } from './compacted.ts'
import { earlierPieces, type Piece } from './earlier.ts'
import { type Fence, labelOf } from './fence.ts'
import { byRank } from './rank.ts'
import { joinSections, section } from './section.ts'

type HistoryState = Pick<RuntimeState, 'prompts' | 'action_history' | 'chat_history'>

/** How much of the room is the chat's before actions get any. */
const chatShare = 0.5

/**
 * What came before: what compaction made of it, what was said and what was found, within so many tokens. Chat and
 * actions compete for the room, the important, relevant and recent ones first; they stand in the order of time.
 */
export const historyOf = (state: HistoryState, budget: number, fence: Fence): string => {
  const latest = latestCompaction(state)
  const key = `${turnOf(state)} ${latest?.id ?? 0} ${budget}`
  const anchor = state.action_history.at(-2)
  const known = anchor && made.get(anchor)
  if (known && known.key === key && known.prompt === turnPrompt(state)) return known.text
  const summary = latest ? fence(latest.text, derived) : ''
  const text = joinSections([
    section('Session summary', summary),
    earlierOf(state, budget - estimateTokens(summary), fence),
  ])
  if (anchor) made.set(anchor, { key, prompt: turnPrompt(state), text })
  return text
}

/** Made of what stood in results: no more to be trusted than they are. */
const derived = { ...labelOf('agent'), trusted: false }

/** By the turn before: the same at each step of this one. */
const made = new WeakMap<readonly ReadonlyAction[], { key: string; prompt: string; text: string }>()

const earlierOf = (state: HistoryState, budget: number, fence: Fence): string => {
  const { chat, actions } = earlierPieces(state, latestCompaction(state))
  const room = { left: budget * chatShare }
  const said = new Set(take(chat, room))
  room.left += budget * (1 - chatShare)
  const found = new Map(take(actions, room).map((piece) => [piece, whole(piece, fence)]))
  for (const piece of actions.toSorted((a, b) => byRank(a.rank, b.rank))) {
    const tokens = estimateTokens(piece.line) + 2
    if (found.has(piece) || tokens > room.left) continue
    room.left -= tokens
    found.set(piece, `- ${piece.line}`)
  }
  for (const piece of take(
    chat.filter((one) => !said.has(one)),
    room,
  ))
    said.add(piece)
  return joinSections([
    section('Conversation', conversation(chat, said)),
    section('Earlier actions', actions.flatMap((piece) => found.get(piece) ?? []).join('\n')),
  ])
}

/** The best pieces that the room holds, whole. */
const take = (pieces: readonly Piece[], room: { left: number }): Piece[] =>
  pieces
    .toSorted((a, b) => byRank(a.rank, b.rank))
    .filter(({ tokens }) => {
      const fits = tokens <= room.left
      if (fits) room.left -= tokens
      return fits
    })

const whole = ({ line, text, label }: Piece, fence: Fence): string => `- ${line}\n${fence(text, label)}`

/** In the order of time; a line begins with who said it, and those that follow it are set in. */
const conversation = (chat: readonly Piece[], said: ReadonlySet<Piece>): string => {
  const lines: string[] = []
  let hidden = 0
  for (const piece of chat) {
    if (!said.has(piece)) {
      hidden++
      continue
    }
    if (hidden > 0) lines.push(leftOut)
    hidden = 0
    lines.push(`${piece.line}: ${piece.text.replaceAll('\n', '\n  ')}`)
  }
  return lines.join('\n')
}

const leftOut = '[messages left out]'
