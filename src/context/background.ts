import type { PromptPart } from '../state/prompt-part.ts'
import { createDataFence, type DataFence, modelWords, type PromptText, toLabel } from '../state/provenance.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { estimateTokens } from '../state/text/tokens.ts'
import { computePromptBudget, partShares } from './budget.ts'
import { type ContextState, renderGoal, renderPrompt, renderSetting, renderStructure } from './context.ts'
import { describeFiles } from './file-descriptions.ts'
import { buildHistory, type History, renderConversation } from './history.ts'
import { part, promptText, titles } from './sections.ts'
import { describeTurnStart } from './turn-start.ts'
import { describeUser } from './user-description.ts'

type BackgroundState = Omit<ContextState, 'todos'>

/** What a prompt says around the work of a turn; the same at every step of it. */
type Background = {
  /** What hardly changes from turn to turn. */
  standing: PromptPart[]
  history: History
  /** Only for this turn: what the request needs beside it. */
  current: PromptPart[]
  request: PromptPart
  fence: DataFence
}

/** What is wanted and in which form, by the field of the state. */
export const formParts = {
  task_goals: (state: BackgroundState, budget: number, fence: DataFence): PromptPart =>
    part(titles.goal, renderGoal(state, budget * partShares.goal, fence), 'agent'),
  output_style: (state: BackgroundState, _budget: number, fence: DataFence): PromptPart =>
    part(titles.style, renderSetting(state, 'output_style', fence), 'agent'),
  output_structure: (state: BackgroundState, budget: number, fence: DataFence): PromptPart =>
    part(titles.structure, renderStructure(state, budget * partShares.structure, fence), 'agent'),
}

/** The request and everything around it, within its share of a budget in tokens. */
export const collectBackground = (state: BackgroundState, budget: number): Background => {
  const fence = createDataFence(state)
  const standing = [
    part(titles.user, fence(describeUser(state.user_context), toLabel('profile')), 'profile'),
    part(titles.files, renderFiles(state, fence, Math.floor(budget * partShares.files)), 'file'),
  ]
  const current = [
    part(titles.scenario, renderSetting(state, 'scenario', fence), 'agent'),
    formParts.output_style(state, budget, fence),
    ...renderMemory(state, budget * partShares.memory, fence),
    formParts.output_structure(state, budget, fence),
    formParts.task_goals(state, budget, fence),
    part(titles.date, describeTurnStart(state), 'agent'),
  ]
  const request = part(titles.request, renderPrompt(state, budget), 'user')
  const taken = estimateTokens(promptText([...standing, ...current, request]))
  const historyBudget = computeHistoryBudget(budget, budget * partShares.background - taken)
  const history = buildHistory(state, historyBudget, fence)
  return { standing, history, current, request, fence }
}

/** The same as one text, for roles that look at the conversation from outside; the request last. */
export const buildBackground = (
  state: BackgroundState,
  budget = computePromptBudget('understand', undefined),
): PromptPart[] => {
  const { standing, history, current, request } = collectBackground(state, budget)
  const { summary, texts, recalled } = history
  return [...standing, summary, renderConversation(texts), recalled, ...current, request]
}

/** All of its share, or half of it, a quarter …: it must not change with every word of the request. */
const computeHistoryBudget = (budget: number, spare: number): number => {
  let historyBudget = Math.floor(budget * (partShares.earlier + partShares.summary))
  while (historyBudget > spare && historyBudget > 0) historyBudget = Math.floor(historyBudget / 2)
  return historyBudget
}

/** Names, columns and notes of files are words of who made them. */
const renderFiles = (state: BackgroundState, fence: DataFence, maxTokens: number): PromptText =>
  fence(describeFiles(state, maxTokens), toLabel('file'), maxTokens)

/**
 * The most relevant memories, the latest of a kind first. Only those that the memory gate confirmed stand outside the fence.
 */
const renderMemory = (
  state: Pick<RuntimeState, 'memory'>,
  budget: number,
  fence: DataFence,
): PromptPart[] => {
  const chosen = new Set<RuntimeState['memory'][number]>()
  let left = budget
  for (const memory of state.memory.toReversed().toSorted((a, b) => b.relevance - a.relevance)) {
    const tokens = estimateTokens(memory.content) + 4
    if (tokens > left || [...chosen].some(({ id }) => id === memory.id)) continue
    left -= tokens
    chosen.add(memory)
  }
  const shown = state.memory.filter((memory) => chosen.has(memory))
  const toLines = (memories: RuntimeState['memory']): string =>
    memories.map(({ content }) => `- ${content.replaceAll(/\s+/g, ' ')}`).join('\n')
  const confirmed = toLines(shown.filter((memory) => memory.confirmed))
  const others = toLines(shown.filter((memory) => !memory.confirmed))
  return [
    part(titles.preferences, modelWords(confirmed), 'user'),
    part(titles.memory, fence(others, toLabel('memory')), 'memory'),
  ]
}
