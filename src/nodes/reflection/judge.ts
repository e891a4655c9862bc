import { z } from 'zod'
import type { AnsweredCall } from '../../state/calls.ts'
import { todoStatusSchema } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'

/** Characters of a gap; what routing and progress read of a reflection must stay small. */
const maxGap = 4000

/** What a model is asked for; lenient in what it leaves out. */
export const reflectionReply = z.object({
  reasoning: z.string().nullish().describe('First think: what came back, and does it answer the task?'),
  is_sufficient: z.boolean().describe('Whether the request can be answered now'),
  knowledge_gap: z.string().nullish().describe('What is still missing; empty when nothing is'),
  follow_up_queries: z.array(z.string()).nullish(),
  judged: z
    .array(z.object({ id: z.int(), relevance: z.number().min(0).max(1), important: z.boolean().nullish() }))
    .nullish()
    .describe('For each action: how much it matters for the final answer, 0 to 1'),
  todos: z
    .array(z.object({ id: z.string(), status: todoStatusSchema }))
    .nullish()
    .describe('Tasks whose status changes: completed or failed'),
})

/** A model's reply, with what it left out and without actions it invented. */
export const toReflection = (reply: z.infer<typeof reflectionReply>, calls: readonly AnsweredCall[]) => {
  const known = new Set(calls.map(({ action }) => action.id))
  return {
    reasoning: reply.reasoning ?? '',
    is_sufficient: reply.is_sufficient,
    knowledge_gap: cutText(reply.knowledge_gap ?? '', maxGap),
    follow_up_queries: reply.follow_up_queries ?? [],
    judged: (reply.judged ?? [])
      .filter(({ id }) => known.has(id))
      .map(({ id, relevance, important }) => ({ id, relevance, important: important ?? relevance >= 0.7 })),
    todos: reply.todos ?? [],
  }
}

/** What reflection thinks of the results that just came back. */
export type Reflection = ReturnType<typeof toReflection>

/** By rule, without a model: what came without error is taken as good, what failed is a gap. */
export const reflectByRule = (calls: readonly AnsweredCall[]): Reflection => {
  const failed = calls.filter(({ action }) => action.result.is_error === true)
  return {
    reasoning:
      failed.length === 0
        ? 'All results came without error.'
        : `${failed.length} of ${calls.length} calls failed.`,
    is_sufficient: failed.length === 0,
    knowledge_gap: cutText(
      failed
        .map(({ call, action }) =>
          cutText(`${call.tool}: ${String(action.result.text ?? action.summary)}`, 500),
        )
        .join('\n'),
      maxGap,
    ),
    follow_up_queries: [],
    judged: calls.map(({ action }) =>
      action.result.is_error === true
        ? { id: action.id, relevance: 0.1, important: false }
        : { id: action.id, relevance: 0.7, important: true },
    ),
    todos: [],
  }
}
