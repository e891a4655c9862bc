import { describeFiles } from '../files/describe-files.ts'
import { talkOf } from '../memory/earlier-talk.ts'
import type { RuntimeState } from '../runtime-state.ts'
import { estimateTokens, fitTokens } from '../tokens.ts'
import { turnPrompt } from '../turn.ts'
import { describeUser } from '../user-description.ts'
import { partShares } from './budget.ts'
import { type Fence, fenceOf, labelOf } from './fence.ts'
import { goalText } from './goal.ts'
import { historyOf } from './history.ts'
import { joinSections, section } from './section.ts'

type BackgroundState = Pick<
  RuntimeState,
  | 'prompts'
  | 'user_context'
  | 'memory'
  | 'output_style'
  | 'output_structure'
  | 'scenario'
  | 'task_goals'
  | 'origin_files'
  | 'preprocessed_files'
  | 'action_history'
  | 'chat_history'
>

/**
 * The request and everything around it, within its share of a budget in tokens; the same at every step of a turn. What
 * changes least from turn to turn comes first, the request last: a turn's begins with most of what the last one's did.
 */
export const backgroundWithin = (state: BackgroundState, budget: number): string => {
  const fence = fenceOf(state)
  // a text is cut before it is fenced: a mark is never cut off
  const within = (text: string, share: number): string => fitTokens(text, Math.floor(budget * share))
  const standing = joinSections([
    section('User', describeUser(state.user_context)),
    section('Files', filesText(state, fence, Math.floor(budget * partShares.files))),
    section('Scenario', state.scenario),
    section('Output style', state.output_style),
  ])
  const current = joinSections([
    section('Memory', memoryText(state, budget * partShares.memory, fence)),
    section('Output structure', within(structureText(state), partShares.structure)),
    section('Goal', goalText(state, budget * partShares.goal, fence)),
    section('Request', within(turnPrompt(state), partShares.request)),
  ])
  const taken = estimateTokens(standing) + estimateTokens(current)
  const room = historyRoom(budget, budget * partShares.background - taken)
  const { told, recalled } = historyOf(state, room, fence)
  return joinSections([standing, told, recalled, current])
}

/** All of its share, or half of it, a quarter …: it must not change with every word of the request. */
const historyRoom = (budget: number, spare: number): number => {
  let room = Math.floor(budget * (partShares.earlier + partShares.summary))
  while (room > spare && room > 0) room = Math.floor(room / 2)
  return room
}

/** Once files were prepared, their titles, columns and notes are shown: words of the files, and so data. */
const filesText = (state: BackgroundState, fence: Fence, maxTokens: number): string => {
  const text = fitTokens(describeFiles(state, maxTokens), maxTokens)
  const isPrepared = Object.values(state.preprocessed_files).some((files) => Object.keys(files).length > 0)
  return isPrepared ? fence(text, labelOf('file')) : text
}

const structureText = ({ output_structure }: Pick<RuntimeState, 'output_structure'>): string =>
  output_structure.map((piece) => `- ${piece.id} (${piece.type}): ${piece.expected}`).join('\n')

/** The most relevant memories, the latest of a kind first, a talk as it was recalled last; nobody vouches for what they were made of. */
const memoryText = (state: Pick<RuntimeState, 'memory'>, budget: number, fence: Fence): string => {
  const chosen = new Set<RuntimeState['memory'][number]>()
  const versions = new Map(state.memory.map(({ id }) => [talkOf(id), id]))
  let left = budget
  for (const memory of state.memory.toReversed().toSorted((a, b) => b.relevance - a.relevance)) {
    if (versions.get(talkOf(memory.id)) !== memory.id) continue
    const tokens = estimateTokens(memory.content) + 4
    if (tokens > left || [...chosen].some(({ id }) => id === memory.id)) continue
    left -= tokens
    chosen.add(memory)
  }
  const lines = state.memory.filter((memory) => chosen.has(memory)).map((memory) => `- ${memory.content}`)
  return lines.length === 0 ? '' : fence(lines.join('\n'), labelOf('memory'))
}
