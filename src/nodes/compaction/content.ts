import type { Compactable } from '../../state/context/compaction.ts'
import type { Piece } from '../../state/context/earlier.ts'
import { derivedLabel, type Fence } from '../../state/context/fence.ts'
import { byRank } from '../../state/context/rank.ts'
import { joinSections, section } from '../../state/context/section.ts'
import { estimateTokens } from '../../state/tokens.ts'

/** What a model is shown to sum up, within a budget: the summary so far, then what came after it in order of time. */
export const compactionContent = ({ before, pieces }: Compactable, budget: number, fence: Fence): string => {
  const summary = before ? fence(before.text, derivedLabel) : ''
  let left = budget - estimateTokens(summary)
  const shown = new Map<Piece, string>()
  for (const piece of pieces.toSorted((a, b) => byRank(a.rank, b.rank))) {
    const text = textOf(piece, fence)
    const tokens = estimateTokens(text) + 1
    if (tokens > left) continue
    left -= tokens
    shown.set(piece, text)
  }
  return joinSections([
    section('Session summary', summary),
    section('Said and found since', pieces.flatMap((piece) => shown.get(piece) ?? []).join('\n')),
  ])
}

const textOf = ({ kind, line, turn, text, label }: Piece, fence: Fence): string =>
  kind === 'chat'
    ? `- ${line} (turn ${turn}): ${text.replaceAll('\n', '\n  ')}`
    : `- ${line}\n${fence(text, label)}`
