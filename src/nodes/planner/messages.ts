import { progress } from '../../graph/progress.ts'
import { answeredCall, plannedCalls } from '../../state/calls.ts'
import {
  backgroundOf,
  type ContextFields,
  joinSections,
  type OpenedBlobs,
  planOf,
  resultText,
} from '../../state/context.ts'
import type { ModelMessage } from '../../state/ports.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'
import { type ReadonlyAction, turnActions } from '../../state/turn.ts'
import { plannerInstructions, replanNote } from './instructions.ts'

/**
 * The conversation a planner is shown: its instructions, the background, then this turn as it went: its own calls and
 * what came back. The oldest part comes first and never changes; the plan, which does, comes last.
 */
export const plannerMessages = (
  state: Pick<RuntimeState, ContextFields>,
  blobs: OpenedBlobs,
): ModelMessage[] => {
  const stalled = progress(state)
  const closing = joinSections([planOf(state), stalled.verdict === 'replan' ? replanNote(stalled.why) : ''])
  return [
    { role: 'system', content: plannerInstructions },
    { role: 'user', content: backgroundOf(state) },
    ...turnMessages(turnActions(state), blobs),
    ...(closing ? [{ role: 'user' as const, content: closing }] : []),
  ]
}

const turnMessages = (actions: readonly ReadonlyAction[], blobs: OpenedBlobs): ModelMessage[] => {
  const messages: ModelMessage[] = []
  for (const [at, action] of actions.entries()) {
    const calls = plannedCalls(action)
    if (calls.length > 0) {
      const answers = answersTo(actions, at + 1)
      messages.push({
        role: 'assistant',
        content: action.preparation,
        tool_calls: calls.map(({ id, tool, args }) => ({ id, name: tool, arguments: JSON.stringify(args) })),
      })
      for (const { id, index } of calls) {
        const answer = answers.get(index)
        messages.push({
          role: 'tool',
          tool_call_id: id,
          content: answer ? resultText(answer, blobs) : '[no result]',
        })
      }
    } else if (action.node === 'reflection') messages.push(...reflectionMessages(action))
  }
  return messages
}

/** The answers to the calls made just before `start`: those before the next plan. */
const answersTo = (actions: readonly ReadonlyAction[], start: number): Map<number, ReadonlyAction> => {
  const answers = new Map<number, ReadonlyAction>()
  for (let at = start; at < actions.length; at++) {
    const action = actions[at]
    if (!action || plannedCalls(action).length > 0) break
    const call = answeredCall(action)
    if (call) answers.set(call.index, action)
  }
  return answers
}

/** Only what a plan can use: a gap that was found. Silence means that the results will do. */
const reflectionMessages = ({ result }: ReadonlyAction): ModelMessage[] => {
  if (result.is_sufficient !== false || typeof result.knowledge_gap !== 'string' || !result.knowledge_gap)
    return []
  const queries = Array.isArray(result.follow_up_queries)
    ? result.follow_up_queries.map((query) => `- ${String(query)}`)
    : []
  return [
    {
      role: 'user',
      content: ['# Reflection', `Still missing: ${result.knowledge_gap}`, ...queries].join('\n'),
    },
  ]
}
