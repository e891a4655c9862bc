import { z } from 'zod'
import { type AnsweredCall, hashCall, hashResult } from '../../state/calls.ts'
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
    .array(
      z.object({
        id: z.string(),
        status: todoStatusSchema,
        action: z.int().nullish().describe('The id of the action whose result completed it'),
        reason: z.string().nullish().describe('What met its success criteria, or why it failed'),
      }),
    )
    .nullish()
    .describe('Tasks that the results complete by their success criteria, or that failed; no others'),
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
    todos: (reply.todos ?? []).map(({ action = null, reason, ...todo }) => ({
      ...todo,
      action,
      reason: reason ?? '',
    })),
  }
}

/** What reflection thinks of the results that just came back. */
export type Reflection = ReturnType<typeof toReflection>

/** What a result is worth by rule, where no model has read it: prompts that run full retain the important and relevant first. */
const ruleJudgements = {
  /** Says what not to try again, which the step it belongs to says as well. */
  error: { relevance: 0.1, important: false },
  /** The earlier result of the same call says it already. */
  repeat: { relevance: 0.2, important: false },
  /** That something is not there can be part of the answer; its line says so. */
  nothing: { relevance: 0.4, important: false },
  /** New: it may be what the answer needs. */
  result: { relevance: 0.7, important: true },
} as const

/** Classifies calls in their order; one that says the same as an `earlier` one repeats it. */
const createClassifier = (earlier: readonly AnsweredCall[]) => {
  const seen = new Map<string, AnsweredCall[]>()
  const remember = (one: AnsweredCall): void => {
    const same = seen.get(hashCall(one.call))
    if (same) same.push(one)
    else seen.set(hashCall(one.call), [one])
  }
  const isRepeat = ({ call, action }: AnsweredCall): boolean =>
    seen.get(hashCall(call))?.some((other) => hashResult(other.action) === hashResult(action)) === true
  for (const one of earlier) remember(one)
  return (one: AnsweredCall): keyof typeof ruleJudgements => {
    const { result } = one.action
    if (result.is_error === true) return 'error'
    if (isRepeat(one)) return 'repeat'
    remember(one)
    return result.found === 0 ? 'nothing' : 'result'
  }
}

/** What was looked for in vain is said in the planner's own words: those of a result are data. */
const toGap = ({ call, action: { result, summary } }: AnsweredCall): string =>
  result.is_error === true
    ? cutText(`${call.tool}: ${String(result.text ?? summary)}`, 500)
    : `${call.tool} ${cutText(JSON.stringify(call.args), 200)}: nothing was found`

/**
 * By rule, without a model: what failed is a gap, and so is what was looked for where nothing was found at all. `earlier`
 * are the turn's calls before these.
 */
export const reflectByRule = (
  calls: readonly AnsweredCall[],
  earlier: readonly AnsweredCall[] = [],
): Reflection => {
  const failed = calls.filter(({ action }) => action.result.is_error === true)
  const classify = createClassifier(earlier)
  const isEmpty = failed.length === 0 && calls.every(({ action }) => action.result.found === 0)
  return {
    reasoning: isEmpty
      ? 'Nothing was found.'
      : failed.length === 0
        ? 'All results came without error.'
        : `${failed.length} of ${calls.length} calls failed.`,
    is_sufficient: failed.length === 0 && !isEmpty,
    knowledge_gap: cutText((isEmpty ? calls : failed).map(toGap).join('\n'), maxGap),
    follow_up_queries: [],
    judged: calls.map((one) => ({ id: one.action.id, ...ruleJudgements[classify(one)] })),
    todos: [],
  }
}
