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
import type { ModelMessage, Reasoning } from '../../state/ports.ts'
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
  const opening: ModelMessage[] = [
    { role: 'system', content: plannerInstructions },
    { role: 'user', content: backgroundOf(state) },
  ]
  return opening.concat(
    turnMessages(turnActions(state), blobs),
    closing ? { role: 'user', content: closing } : [],
  )
}

/** What the steps of a turn that are over have told, up to the plan that stands at `at`. */
type Told = { messages: readonly ModelMessage[]; at: number; plan: ReadonlyAction }

/** By the first action of the turn, so that a step adds its own messages and does not make all others anew. */
const told = new WeakMap<ReadonlyAction, Told>()

const turnMessages = (actions: readonly ReadonlyAction[], blobs: OpenedBlobs): ModelMessage[] => {
  const [first] = actions
  const known = first && told.get(first)
  const before = known && actions[known.at] === known.plan ? known : { messages: [], at: 0 }
  const messages = [...before.messages]
  let over: { length: number; at: number; plan: ReadonlyAction } | null = null
  let isLasting = true
  for (const [index, action] of actions.slice(before.at).entries()) {
    const at = before.at + index
    if (plannedCalls(action).length > 0) {
      if (isLasting) over = { length: messages.length, at, plan: action }
      messages.push(...callMessages(action, answersTo(actions, at + 1), blobs))
    } else if (action.node === 'reflection') messages.push(...reflectionMessages(action))
    // how much of a large result is shown depends on what came after it
    else if (action.result.blob !== undefined) isLasting = false
  }
  if (first && over)
    told.set(first, { messages: messages.slice(0, over.length), at: over.at, plan: over.plan })
  return messages
}

const callMessages = (
  plan: ReadonlyAction,
  answers: ReadonlyMap<number, ReadonlyAction>,
  blobs: OpenedBlobs,
): ModelMessage[] => {
  const calls = plannedCalls(plan)
  return [
    {
      role: 'assistant',
      content: plan.preparation,
      tool_calls: calls.map(({ id, tool, args }) => ({ id, name: tool, arguments: JSON.stringify(args) })),
      ...reasoningOf(plan),
    },
    ...calls.map(({ id, index }): ModelMessage => {
      const answer = answers.get(index)
      return { role: 'tool', tool_call_id: id, content: answer ? resultText(answer, blobs) : '[no result]' }
    }),
  ]
}

/** What was thought before these calls; a vendor that thinks between calls wants it back for as long as the turn lasts. */
const reasoningOf = ({ result: { reasoning, reasoned_by } }: ReadonlyAction): { reasoning?: Reasoning } =>
  typeof reasoning === 'string' && typeof reasoned_by === 'string'
    ? { reasoning: { text: reasoning, by: reasoned_by } }
    : {}

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
