import { memoizeByObject } from '../state/memoize.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { cutText } from '../state/text/cut-text.ts'
import { estimateTokens, fitTokens } from '../state/text/tokens.ts'
import { currentTurn, turnActions } from '../state/turn.ts'
import { partShares } from './budget.ts'
import {
  createActionEntry,
  type HistoryEntry,
  listHistoryEntries,
  rankHistoryEntries,
} from './history-entries.ts'
import {
  type ActionRange,
  type Compaction,
  findLatestCompaction,
  isCompacted,
  mergeRanges,
} from './latest-compaction.ts'
import { takeBest } from './relevance-rank.ts'
import { readResultText } from './result-text.ts'
import { listRounds, type PlanRound } from './rounds.ts'

type CompactionState = Pick<RuntimeState, 'prompts' | 'action_history' | 'chat_history'>

/** The latest turns and steps stay as they were: what is asked next goes on from there. */
const freshTurns = 2
const freshRounds = 3

/**
 * What a compaction may sum up now, that of earlier turns in the order of time, and which ids it then covers, those
 * of the one before it among them.
 */
export type Compactable = { previous: Compaction | null; entries: HistoryEntry[]; ranges: ActionRange[] }

/** What a compaction would sum up now. */
export const findCompactable = (state: CompactionState): Compactable => {
  const previous = findLatestCompaction(state)
  const old = selectOld(state, rankHistoryEntries(state, previous)).toSorted((a, b) => a.id - b.id)
  const rounds = oldRounds(state, previous)
  // a turn that never began has no actions, and the one before it counts
  const lastOld =
    state.action_history
      .slice(0, Math.max(0, currentTurn(state) - 1 - freshTurns))
      .flat()
      .at(-1)?.id ?? 0
  const [first, last] = [rounds[0], rounds.at(-1)]
  return {
    previous,
    entries: [...old, ...rounds.flatMap((round) => toHistoryEntries(round, currentTurn(state)))],
    ranges: mergeRanges([
      ...(previous?.ranges ?? []),
      ...(lastOld > 0 ? [[1, lastOld] as const] : []),
      ...(first && last ? [[first.plan.id, lastId(last)] as const] : []),
    ]),
  }
}

const selectOld = (
  state: CompactionState,
  { chat, actions }: ReturnType<typeof rankHistoryEntries>,
): HistoryEntry[] => [...chat, ...actions].filter(({ turn }) => turn < currentTurn(state) - freshTurns)

const oldRounds = (state: CompactionState, before: Compaction | null): PlanRound[] =>
  listRounds(turnActions(state))
    .filter(({ plan }) => !isCompacted(plan, before))
    .slice(0, -freshRounds)

const lastId = ({ plan, start, end }: PlanRound): number => plan.id + (end - start) - 1

/**
 * Whether what can be summed up has grown past its share of the planner's budget. Right after a compaction nothing can,
 * so there is at most one for each so many tokens.
 */
export const isCompactionDue = (state: CompactionState, budget: number): boolean => {
  const max = budget * partShares.compaction
  const before = findLatestCompaction(state)
  let tokens = 0
  for (const round of oldRounds(state, before)) {
    tokens += countRoundTokens(round)
    if (tokens > max) return true
  }
  if (currentTurn(state) - 1 <= freshTurns) return false
  const old = selectOld(state, listHistoryEntries(state, before))
  return tokens + old.reduce((sum, piece) => sum + piece.tokens, 0) > max
}

const countRoundTokens = memoizeByObject(({ plan, calls }: PlanRound): number =>
  calls.reduce(
    (sum, { call, answer }) =>
      sum + estimateTokens(JSON.stringify(call.args)) + (answer ? estimateTokens(readResultText(answer)) : 0),
    estimateTokens(plan.preparation),
  ),
)

const maxExcerpt = 4000

const toHistoryEntries = ({ plan, calls }: PlanRound, turn: number): HistoryEntry[] =>
  calls.flatMap(({ call, answer }) => {
    if (!answer) return []
    const said = plan.preparation && `${cutText(plan.preparation, 300)} `
    const text = cutText(readResultText(answer), maxExcerpt)
    return [createActionEntry({ call, action: answer }, turn, text, 300, said)]
  })

const maxLine = 300

/**
 * The summary that rules make: what the one before said, then a line a piece, the least important, relevant and recent
 * ones dropped first; within so many tokens.
 */
export const summarizeByRules = ({ previous, entries }: Compactable, maxTokens: number): string => {
  const carried = previous ? fitTokens(previous.text, Math.floor(maxTokens / 2)) : ''
  const lines = entries.map(({ rank, title, kind, heading, text }) => ({
    rank,
    text: `- ${(kind === 'chat' ? heading : `${title}: ${heading}`).slice(0, maxLine)}: ${cutText(text.replaceAll(/\s+/g, ' '), maxLine)}`,
  }))
  const left = maxTokens - estimateTokens(carried)
  const best = takeBest(lines, left, ({ text }) => estimateTokens(text) + 1)
  const hidden = lines.length - best.size
  return [
    carried,
    ...[...best].map(({ text }) => text),
    hidden > 0 ? `[${hidden} less relevant ones dropped]` : '',
  ]
    .filter((line) => line !== '')
    .join('\n')
}
