import { z } from 'zod'
import { computePromptBudget, partShares } from '../../context/budget.ts'
import { type Compactable, findCompactable, summarizeByRules } from '../../context/compaction.ts'
import { renderHistoryEntry } from '../../context/history.ts'
import { compactionNodeName } from '../../context/latest-compaction.ts'
import { takeBest } from '../../context/relevance-rank.ts'
import { part, titles } from '../../context/sections.ts'
import { defineNode } from '../../graph/definitions.ts'
import { requestJson } from '../../graph/json-request.ts'
import { openDeadline } from '../../state/deadline.ts'
import { isMasonError } from '../../state/errors.ts'
import type { Log } from '../../state/ports/log.ts'
import { type Models, rulesOnly } from '../../state/ports/models.ts'
import type { PromptPart } from '../../state/prompt-part.ts'
import {
  createDataFence,
  type DataFence,
  dataRule,
  derivedLabel,
  joinTexts,
  ownText,
} from '../../state/provenance.ts'
import type { RuntimeState, Usage } from '../../state/runtime-state.ts'
import { estimateTokens, fitTokens } from '../../state/text/tokens.ts'
import { noUsage, readSpentUsage } from '../../state/token-usage.ts'

const instructions = ownText`You sum up what an agent and its user have said and found so far, for the agent's next steps.
Keep what may still be needed: what the user wants and said of themselves, decisions, names, figures with their units, what failed and why, and what is open.
Name the action a fact comes from as [action 12]. Leave out what leads nowhere, and what is said twice. Keep what the earlier summary says unless it no longer holds.
Write in the language of the conversation.
${dataRule}`

const reply = z.object({ summary: z.string().min(1) })

/** A summary that takes longer is made by rules. */
const timeoutMs = 60_000

/** Sums up what was said and found, in place of which later prompts show the summary; the log keeps all of it. */
export default defineNode({
  name: compactionNodeName,
  description: 'Sums up what was said and found so far, for the prompts that follow',
  reads: ['prompts', 'action_history', 'chat_history'],
  writes: [],
  next: ['planner'],
  async run(state, { checkpoint, models, request, log }, signal) {
    const compactable = findCompactable(state)
    const planner = computePromptBudget('planner', models.window?.('planner', request.models?.planner))
    const maxTokens = Math.floor(planner * partShares.summary)
    const asked = await requestSummary(state, compactable, models, signal, log)
    const text = asked.summary
      ? fitTokens(asked.summary, maxTokens)
      : summarizeByRules(compactable, maxTokens)
    return checkpoint({
      summary: `Summed up ${compactable.entries.length} things that were said and found`,
      result: {
        text,
        compacted: compactable.ranges.map(([from, to]) => [from, to]),
        by: asked.summary ? 'model' : 'rules',
      },
      context: { type: 'text', content: text, important: true, usage_type: 'reference' },
      usage: asked.usage,
      relevance: 0.5,
      next: ['planner'],
    })
  },
})

/** What the model makes of it; null where there is none but rules, or it cannot be reached, read or waited for. */
const requestSummary = async (
  state: Pick<RuntimeState, 'prompts'>,
  compactable: Compactable,
  models: Models,
  signal: AbortSignal,
  log: Log,
): Promise<{ summary: string | null; usage: Usage }> => {
  const none = { summary: null, usage: noUsage }
  if (models.describe().capabilities.includes(rulesOnly)) return none
  const budget = computePromptBudget('compaction', models.window?.('compaction'))
  const parts = compactionParts(compactable, budget, createDataFence(state))
  using deadline = openDeadline(timeoutMs, signal)
  try {
    const { value, usage } = await requestJson(
      models,
      { role: 'compaction', instructions, parts, schema: reply },
      deadline.signal,
      log,
    )
    return { summary: value?.summary.trim() || null, usage }
  } catch (error) {
    if (signal.aborted || isMasonError(error, 'lease_lost', 'database_unavailable')) throw error
    log.warn({ role: 'compaction', error: String(error) }, 'rules sum up, no model did')
    return { summary: null, usage: readSpentUsage(error) }
  }
}

/** What a model has to sum up, within a budget: the summary so far, then what came after it in order of time. */
const compactionParts = (
  { previous, entries }: Compactable,
  budget: number,
  fence: DataFence,
): PromptPart[] => {
  const summary = fence(previous?.text ?? '', derivedLabel)
  const rendered = entries.map((entry) => ({ rank: entry.rank, text: renderHistoryEntry(entry, fence) }))
  const best = takeBest(rendered, budget - estimateTokens(summary), ({ text }) => estimateTokens(text) + 1)
  const found = [...best].map(({ text }) => text)
  return [part(titles.summary, summary, 'agent'), part(titles.found, joinTexts(found, '\n'), 'agent')]
}
