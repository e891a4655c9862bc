import type { PromptPart } from '../state/prompt-part.ts'
import { type DataFence, derivedLabel } from '../state/provenance.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { estimateTokens } from '../state/text/tokens.ts'
import { currentTurn, type ReadonlyAction, turnPrompt } from '../state/turn.ts'
import { type HistorySelection, selectHistory } from './history-budget.ts'
import { type HistoryEntry, listHistoryEntries } from './history-entries.ts'
import { findLatestCompaction } from './latest-compaction.ts'
import { computeOverlap, extractTerms, raiseRank, takeBest } from './relevance-rank.ts'
import { part, promptText, titles } from './sections.ts'

type HistoryState = Pick<RuntimeState, 'prompts' | 'action_history' | 'chat_history'>

/**
 * `history`: earlier turns in the order of time; the next turn's begins with the same text. `recalled`: what that leaves
 * out and this request asks for.
 */
type HistoryParts = { history: readonly PromptPart[]; recalled: PromptPart }

/** The share of the budget for history; the rest, and some of what history leaves, is for what the request asks for. */
const historyShare = 0.85
const recalledShare = 0.25

/** The summary of compacted turns, the conversation and results after it, and what of them is related to the request. */
export const buildHistory = (state: HistoryState, budget: number, fence: DataFence): HistoryParts => {
  const latest = findLatestCompaction(state)
  const key = `${currentTurn(state)} ${latest?.id ?? 0} ${budget}`
  const anchor = state.action_history.at(-2)
  const known = anchor && historyCache.get(anchor)
  if (known && known.key === key && known.prompt === turnPrompt(state)) return known.history
  const summary = part(titles.summary, latest ? fence(latest.text, derivedLabel) : '', 'agent')
  const summaryTokens = estimateTokens(promptText([summary]))
  const turns = groupByTurn(listHistoryEntries(state, latest))
  const selection = selectHistory(turns, Math.max(0, budget * historyShare - summaryTokens))
  const conversation = part(titles.conversation, renderConversation(turns, selection, fence), 'agent')
  const left = budget - summaryTokens - estimateTokens(promptText([conversation]))
  const history: HistoryParts = {
    history: [summary, conversation],
    recalled: part(
      titles.recalled,
      renderRecalled(state, turns.flat(), selection, Math.min(left, budget * recalledShare), fence),
      'agent',
    ),
  }
  if (anchor) historyCache.set(anchor, { key, prompt: turnPrompt(state), history })
  return history
}

/** By the turn before: the same at each step of this one. */
const historyCache = new WeakMap<
  readonly ReadonlyAction[],
  { key: string; prompt: string; history: HistoryParts }
>()

/** The pieces of each turn as they came: what was asked, what was found, what was answered. */
const groupByTurn = ({ chat, actions }: ReturnType<typeof listHistoryEntries>): HistoryEntry[][] => {
  const asked = chat.filter(({ heading }) => heading === 'user')
  const answered = chat.filter(({ heading }) => heading !== 'user')
  const turns: HistoryEntry[][] = []
  for (const entry of [...asked, ...actions, ...answered]) {
    turns[entry.turn] ??= []
    turns[entry.turn]?.push(entry)
  }
  // without the turns that have no entries
  return Object.values(turns)
}

/** A line of talk begins with who said it, and those that follow it are set in; an action begins with a dash. */
const renderConversation = (
  turns: readonly (readonly HistoryEntry[])[],
  selection: HistorySelection,
  fence: DataFence,
): string => {
  const lines: string[] = []
  let hidden = 0
  for (const piece of turns.flat()) {
    const how = selection.get(piece)
    if (piece.kind === 'action') {
      if (how) lines.push(how === 'line' ? `- ${piece.heading}` : renderHistoryEntry(piece, fence))
    } else if (how) {
      if (hidden > 0) lines.push(omittedMessages)
      hidden = 0
      lines.push(`${piece.heading}: ${indentLines(piece.text)}`)
    } else hidden++
  }
  return lines.join('\n')
}

const omittedMessages = '[messages left out]'

const indentLines = (text: string): string => text.replaceAll('\n', '\n  ')

/** An entry as an item of a list: who said it in which turn, or what was called, and the text. */
export const renderHistoryEntry = (
  { kind, heading, turn, text, label }: HistoryEntry,
  fence: DataFence,
): string =>
  kind === 'chat'
    ? `- ${heading} (turn ${turn}): ${indentLines(text)}`
    : `- ${heading}\n${fence(text, label)}`

/** A piece that holds so much of what is asked for is worth telling again. */
const minOverlap = 0.3

const renderRecalled = (
  state: HistoryState,
  pieces: readonly HistoryEntry[],
  selection: HistorySelection,
  room: number,
  fence: DataFence,
): string => {
  const terms = extractTerms(turnPrompt(state))
  const asked = pieces.flatMap((piece) => {
    if (selection.get(piece) === 'whole') return []
    const shared = computeOverlap(piece.kind === 'chat' ? piece.text : piece.heading, terms)
    return shared >= minOverlap ? [{ ...piece, rank: raiseRank(piece.rank, shared) }] : []
  })
  const recalled = takeBest(asked, room - headingTokens, ({ tokens }) => tokens)
  return [...recalled].map((piece) => renderHistoryEntry(piece, fence)).join('\n')
}

const headingTokens = 10
