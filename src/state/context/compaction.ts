import { cutText } from '../cut-text.ts'
import type { RuntimeState } from '../runtime-state.ts'
import { estimateTokens, fitTokens } from '../tokens.ts'
import { type ReadonlyAction, turnActions, turnOf } from '../turn.ts'
import { partShares } from './budget.ts'
import { type Compacted, isCompacted, latestCompaction, mergeRanges, type Range } from './compacted.ts'
import { earlierPieces, type Piece, unrankedPieces } from './earlier.ts'
import { labelOfAction } from './fence.ts'
import { byRank, rankOf } from './rank.ts'
import { resultText } from './results.ts'
import { type Round, roundsOf } from './rounds.ts'

type CompactionState = Pick<RuntimeState, 'prompts' | 'action_history' | 'chat_history'>

/** The latest turns and steps stay as they were: what is asked next goes on from there. */
const freshTurns = 2
const freshRounds = 3

/**
 * What a compaction may sum up now, that of earlier turns in the order of time, and which ids it then stands for, those
 * of the one before it among them.
 */
export type Compactable = { before: Compacted | null; pieces: Piece[]; ranges: Range[] }

export const compactableOf = (state: CompactionState): Compactable => {
  const before = latestCompaction(state)
  const old = oldOf(state, earlierPieces(state, before)).toSorted((a, b) => a.id - b.id)
  const rounds = oldRounds(state, before)
  // a turn that never began has no actions, and the one before it counts
  const lastOld =
    state.action_history
      .slice(0, Math.max(0, turnOf(state) - 1 - freshTurns))
      .flat()
      .at(-1)?.id ?? 0
  const [first, last] = [rounds[0], rounds.at(-1)]
  return {
    before,
    pieces: [...old, ...rounds.flatMap((round) => roundPieces(round, turnOf(state)))],
    ranges: mergeRanges([
      ...(before?.ranges ?? []),
      ...(lastOld > 0 ? [[1, lastOld] as const] : []),
      ...(first && last ? [[first.plan.id, lastId(last)] as const] : []),
    ]),
  }
}

const oldOf = (state: CompactionState, { chat, actions }: ReturnType<typeof earlierPieces>): Piece[] =>
  [...chat, ...actions].filter(({ turn }) => turn < turnOf(state) - freshTurns)

const oldRounds = (state: CompactionState, before: Compacted | null): Round[] =>
  roundsOf(turnActions(state))
    .filter(({ plan }) => !isCompacted(plan, before))
    .slice(0, -freshRounds)

const lastId = ({ plan, at, end }: Round): number => plan.id + (end - at) - 1

/**
 * Whether what can be summed up has grown past its share of the planner's budget. Right after a compaction nothing can,
 * so there is at most one for each so many tokens.
 */
export const isCompactionDue = (state: CompactionState, budget: number): boolean => {
  const max = budget * partShares.compaction
  const before = latestCompaction(state)
  let tokens = 0
  for (const round of oldRounds(state, before)) {
    tokens += tokensOfRound(round)
    if (tokens > max) return true
  }
  if (turnOf(state) - 1 <= freshTurns) return false
  const old = oldOf(state, unrankedPieces(state, before))
  return tokens + old.reduce((sum, piece) => sum + piece.tokens, 0) > max
}

const sizes = new WeakMap<Round, number>()

const tokensOfRound = (round: Round): number => {
  const known = sizes.get(round)
  if (known !== undefined) return known
  const size = round.calls.reduce(
    (sum, { call, answer }) =>
      sum + estimateTokens(JSON.stringify(call.args)) + (answer ? estimateTokens(resultText(answer)) : 0),
    estimateTokens(round.plan.preparation),
  )
  sizes.set(round, size)
  return size
}

const maxExcerpt = 4000

const roundPieces = ({ plan, calls }: Round, turn: number): Piece[] =>
  calls.flatMap(({ call, answer }) => {
    if (!answer) return []
    const said = plan.preparation ? `${cutText(plan.preparation, 300)} ` : ''
    const line = `${said}action ${answer.id} (turn ${turn}): ${call.tool} ${cutText(JSON.stringify(call.args), 300)}`
    return [pieceOf(answer, line, turn)]
  })

const pieceOf = (action: ReadonlyAction, line: string, turn: number): Piece => {
  const text = cutText(resultText(action), maxExcerpt)
  return {
    turn,
    id: action.id,
    kind: 'action',
    line: action.result.is_error === true ? `${line} (error)` : line,
    text,
    label: labelOfAction(action),
    rank: rankOf(action),
    tokens: estimateTokens(line) + estimateTokens(text),
  }
}

const maxLine = 300

/**
 * The summary that rules make: what the one before said, then a line a piece, the least important, relevant and recent
 * ones dropped first; within so many tokens.
 */
export const summaryByRules = ({ before, pieces }: Compactable, maxTokens: number): string => {
  const carried = before ? fitTokens(before.text, Math.floor(maxTokens / 2)) : ''
  let left = maxTokens - estimateTokens(carried)
  const kept = new Map<Piece, string>()
  for (const piece of pieces.toSorted((a, b) => byRank(a.rank, b.rank))) {
    const line = `- ${piece.line.slice(0, maxLine)}: ${cutText(piece.text.replaceAll(/\s+/g, ' '), maxLine)}`
    const tokens = estimateTokens(line) + 1
    if (tokens > left) continue
    left -= tokens
    kept.set(piece, line)
  }
  const hidden = pieces.length - kept.size
  return [
    carried,
    ...pieces.flatMap((piece) => kept.get(piece) ?? []),
    hidden > 0 ? `[${hidden} less relevant ones dropped]` : '',
  ]
    .filter((line) => line !== '')
    .join('\n')
}
