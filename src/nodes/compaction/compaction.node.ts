import { z } from 'zod'
import { askForJson } from '../../graph/ask-for-json.ts'
import { defineNode } from '../../graph/node.ts'
import { partShares, promptBudget } from '../../state/context/budget.ts'
import { compactionNode } from '../../state/context/compacted.ts'
import { type Compactable, compactableOf, summaryByRules } from '../../state/context/compaction.ts'
import { dataRule, fenceOf } from '../../state/context/fence.ts'
import { openDeadline } from '../../state/deadline.ts'
import { isMasonError } from '../../state/errors.ts'
import type { Log, Models } from '../../state/ports.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'
import { fitTokens } from '../../state/tokens.ts'
import { noUsage } from '../../state/usage.ts'
import { compactionContent } from './content.ts'

const instructions = `You sum up what an agent and its user have said and found so far, for the agent's next steps.
Keep what may still be needed: what the user wants and said of themselves, decisions, names, figures with their units, what failed and why, and what is open.
Name the action a fact comes from as [action 12]. Leave out what leads nowhere, and what is said twice. Keep what the earlier summary says unless it no longer holds.
Write in the language of the conversation.
${dataRule}`

const reply = z.object({ summary: z.string().min(1) })

/** A summary that takes longer is made by rules. */
const timeoutMs = 60_000

/** Sums up what was said and found, in place of which later prompts show the summary; the log keeps all of it. */
export default defineNode({
  name: compactionNode,
  description: 'Sums up what was said and found so far, for the prompts that follow',
  reads: ['prompts', 'action_history', 'chat_history'],
  writes: [],
  next: ['planner'],
  async run(state, { checkpoint, models, request, log }, signal) {
    const compactable = compactableOf(state)
    const planner = promptBudget('planner', models.window?.('planner', request.models?.planner))
    const maxTokens = Math.floor(planner * partShares.summary)
    const asked = await askToSumUp(state, compactable, models, signal, log)
    const text = asked.summary ? fitTokens(asked.summary, maxTokens) : summaryByRules(compactable, maxTokens)
    return checkpoint({
      summary: `Summed up ${compactable.pieces.length} things that were said and found`,
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

type Asked = Awaited<ReturnType<typeof askForJson<typeof reply>>>

/** What the model makes of it; null where there is none but rules, or it cannot be reached, read or waited for. */
const askToSumUp = async (
  state: Pick<RuntimeState, 'prompts'>,
  compactable: Compactable,
  models: Models,
  signal: AbortSignal,
  log: Log,
): Promise<{ summary: string | null; usage: Asked['usage'] }> => {
  const none = { summary: null, usage: noUsage }
  if (models.describe().offline) return none
  const budget = promptBudget('compaction', models.window?.('compaction'))
  const content = compactionContent(compactable, budget, fenceOf(state))
  using deadline = openDeadline(timeoutMs, signal)
  try {
    const { value, usage } = await askForJson(
      models,
      { role: 'compaction', instructions, content, schema: reply },
      deadline.signal,
      log,
    )
    return { summary: value?.summary.trim() || null, usage }
  } catch (error) {
    if (signal.aborted || isMasonError(error, 'lease_lost', 'database_unavailable')) throw error
    log.warn({ role: 'compaction', fault: String(error) }, 'rules sum up, no model did')
    const { usage } = ((error as { detail?: unknown }).detail ?? {}) as { usage?: Asked['usage'] }
    return { summary: null, usage: usage ?? noUsage }
  }
}
