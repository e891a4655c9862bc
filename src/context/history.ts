import type { ModelMessage } from '../state/ports/model-messages.ts'
import type { PromptPart } from '../state/prompt-part.ts'
import {
  type DataFence,
  derivedLabel,
  joinTexts,
  ownText,
  type PromptText,
  userWords,
} from '../state/provenance.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { estimateTokens } from '../state/text/tokens.ts'
import { currentTurn, type ReadonlyAction, turnPrompt } from '../state/turn.ts'
import { type HistorySelection, selectHistory } from './history-budget.ts'
import { type HistoryEntry, listHistoryEntries } from './history-entries.ts'
import { findLatestCompaction } from './latest-compaction.ts'
import { computeOverlap, extractTerms, raiseRank, takeBest } from './relevance-rank.ts'
import { fenceResult } from './result-text.ts'
import { part, promptText, titles } from './sections.ts'

type HistoryState = Pick<RuntimeState, 'prompts' | 'action_history' | 'chat_history'>

/** One text of an earlier turn: a message, what its calls returned, or a note that messages are left out. */
type HistoryText = { role: 'user' | 'assistant' | 'results' | 'note'; text: PromptText }

/**
 * `summary` of what was compacted, then `texts` of earlier turns in the order of time; the next turn's begin with the
 * same ones. `recalled`: what they leave out and this request asks for.
 */
export type History = { summary: PromptPart; texts: readonly HistoryText[]; recalled: PromptPart }

/** The share of the budget for history; the rest, and some of what history leaves, is for what the request asks for. */
const historyShare = 0.85
const recalledShare = 0.25

/** The summary of compacted turns, what was said and found after it, and what of them is related to the request. */
export const buildHistory = (state: HistoryState, budget: number, fence: DataFence): History => {
  const latest = findLatestCompaction(state)
  const key = `${currentTurn(state)} ${latest?.id ?? 0} ${budget}`
  const anchor = state.action_history.at(-2)
  const known = anchor && historyCache.get(anchor)
  if (known && known.key === key && known.prompt === turnPrompt(state)) return known.history
  const summary = part(titles.summary, fence(latest?.text ?? '', derivedLabel), 'agent')
  const summaryTokens = estimateTokens(promptText([summary]))
  const turns = groupByTurn(listHistoryEntries(state, latest))
  const selection = selectHistory(turns, Math.max(0, budget * historyShare - summaryTokens))
  const texts = renderTurns(turns.flat(), selection, fence)
  const left = budget - summaryTokens - estimateTokens(renderConversation(texts).text)
  const asked = renderRecalled(state, turns.flat(), selection, Math.min(left, budget * recalledShare), fence)
  const history: History = { summary, texts, recalled: part(titles.recalled, asked, 'agent') }
  if (anchor) historyCache.set(anchor, { key, prompt: turnPrompt(state), history })
  return history
}

/** By the turn before: the same at each step of this one. */
const historyCache = new WeakMap<
  readonly ReadonlyAction[],
  { key: string; prompt: string; history: History }
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

/** The results of one turn are one text, between what was asked and what was answered. */
const renderTurns = (
  entries: readonly HistoryEntry[],
  selection: HistorySelection,
  fence: DataFence,
): HistoryText[] => {
  const texts: HistoryText[] = []
  let turn = 0
  for (const entry of entries) {
    const how = selection.get(entry)
    const last = texts.at(-1)
    if (entry.kind === 'action') {
      const text = renderHistoryEntry(how === 'line' ? { ...entry, text: '' } : entry, fence)
      if (how && last?.role === 'results' && turn === entry.turn)
        last.text = joinTexts([last.text, text], '\n')
      else if (how) texts.push({ role: 'results', text })
    } else if (how) {
      const role = entry.heading === 'user' ? 'user' : 'assistant'
      texts.push({ role, text: fence(entry.text.trim(), entry.label) })
    } else if (last?.text !== omittedMessages) texts.push({ role: 'note', text: omittedMessages })
    turn = entry.turn
  }
  return texts
}

const omittedMessages = ownText`[messages left out]`

/** Earlier turns as one text, for roles that look at them from outside. Lines that follow the first are set in. */
export const renderConversation = (texts: History['texts']): PromptPart => {
  const lines = texts.map(({ role, text }) => {
    if (role === 'user') return ownText`user: ${userWords(indentLines(text))}`
    return role === 'assistant' ? ownText`assistant:\n${text}` : text
  })
  return part(titles.conversation, joinTexts(lines, '\n'), 'agent')
}

/** Earlier turns as the messages they were. An answer may repeat what files and pages say, so its fence is within it. */
export const toHistoryMessages = (texts: History['texts']): ModelMessage[] =>
  texts.map(({ role, text }) =>
    role === 'assistant'
      ? { role, content: text }
      : {
          role: 'user',
          content: role === 'results' ? promptText([part(titles.results, text, 'tool')]) : text,
        },
  )

const indentLines = (text: string): string => text.replaceAll('\n', '\n  ')

/** An entry as an item of a list: who said it in which turn, or what was called, and the text. */
export const renderHistoryEntry = (
  { kind, title, heading, text, label }: HistoryEntry,
  fence: DataFence,
): PromptText => {
  if (kind === 'chat' && label.trusted) return ownText`- ${title}: ${userWords(indentLines(text))}`
  return ownText`- ${title}:\n${kind === 'chat' ? fence(text, label) : fenceResult(heading, text, label, fence)}`
}

/** A piece that holds so much of what is asked for is worth telling again. */
const minOverlap = 0.3

const renderRecalled = (
  state: HistoryState,
  pieces: readonly HistoryEntry[],
  selection: HistorySelection,
  room: number,
  fence: DataFence,
): PromptText => {
  const terms = extractTerms(turnPrompt(state))
  const asked = pieces.flatMap((piece) => {
    if (selection.get(piece) === 'whole') return []
    const shared = computeOverlap(piece.kind === 'chat' ? piece.text : piece.heading, terms)
    return shared >= minOverlap ? [{ ...piece, rank: raiseRank(piece.rank, shared) }] : []
  })
  const recalled = takeBest(asked, room - headingTokens, ({ tokens }) => tokens)
  const texts = [...recalled].map((piece) => renderHistoryEntry(piece, fence))
  return joinTexts(texts, '\n')
}

const headingTokens = 10
