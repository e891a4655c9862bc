import { askForJson } from '../../graph/ask-for-json.ts'
import { defineNode, type GraphInfo } from '../../graph/node.ts'
import { type AnsweredCall, answeredCalls, lastFanOut } from '../../state/calls.ts'
import { partShares, promptBudget } from '../../state/context/budget.ts'
import { dataRule, fenceOf } from '../../state/context/fence.ts'
import { goalText } from '../../state/context/goal.ts'
import { resultsOf } from '../../state/context/results.ts'
import { joinSections, section } from '../../state/context/section.ts'
import { planOf } from '../../state/context.ts'
import { cutText } from '../../state/cut-text.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'
import { fitTokens } from '../../state/tokens.ts'
import { turnActions, turnPrompt, turnTodos } from '../../state/turn.ts'
import { noUsage } from '../../state/usage.ts'
import { byRule, fromReply, type Reflection, reflectionReply } from './judge.ts'
import { moveTodos } from './move-todos.ts'

const instructions = `You judge the results of an agent's last calls against the request.
Reason first. Say whether the request can be answered now; if not, name the one gap that matters most and how to close it.
Judge each action by its id: how relevant it is for the final answer, and whether it is important.
Name tasks of the plan that these results complete, or that failed.
${dataRule}`

/** Judges what came back, moves the plan, and hands over to the planner. */
export default defineNode({
  name: 'reflection',
  description: 'Judges what the calls brought, and moves the plan',
  reads: ['prompts', 'task_goals', 'todos', 'action_history'],
  writes: ['todos'],
  next: ['planner'],
  async run(state, { checkpoint, models, request, scenario, graph, clock, log }, signal) {
    const calls = latestCalls(state)
    const byRules = scenario?.rules.includes('reflection') === true
    const asked =
      !byRules && needsModel(calls, graph)
        ? await askForJson(
            models,
            {
              role: 'reflection',
              instructions,
              content: contentOf(
                state,
                calls,
                promptBudget('reflection', models.window?.('reflection', request.models?.reflection)),
              ),
              schema: reflectionReply,
              model: request.models?.reflection,
            },
            signal,
            log,
          )
        : { value: null, usage: noUsage }
    const reflection = asked.value ? fromReply(asked.value, calls) : byRule(calls)
    const isPure = (tool: string): boolean => graph.tool(tool)?.pure === true
    const todos = moveTodos(turnTodos(state), calls, reflection, clock.now(), { isPure })
    const { todos: _moved, ...result } = reflection
    const retried = todos.filter((todo) => todo.status === 'pending').map((todo) => todo.id)
    return checkpoint(
      {
        preparation: reflection.reasoning,
        summary: summaryOf(reflection),
        result: { ...result, by: asked.value ? 'model' : 'rules', ...(retried.length > 0 && { retried }) },
        usage: asked.usage,
        relevance: 0,
        next: ['planner'],
      },
      todos.length > 0 ? { todos } : {},
    )
  },
})

/** The calls of the last fan-out, each with its action. */
const latestCalls = (state: Pick<RuntimeState, 'action_history'>): AnsweredCall[] => {
  const actions = turnActions(state)
  const since = lastFanOut(actions)?.id
  return answeredCalls(actions.slice(actions.findLastIndex((action) => action.id === since)))
}

/** Rules decide when every result came without error from a pure tool. */
const needsModel = (calls: readonly AnsweredCall[], graph: GraphInfo): boolean =>
  calls.some(({ call, action }) => action.result.is_error === true || graph.tool(call.tool)?.pure !== true)

const contentOf = (
  state: Pick<RuntimeState, 'prompts' | 'task_goals' | 'todos' | 'action_history'>,
  calls: readonly AnsweredCall[],
  budget: number,
): string => {
  const fence = fenceOf(state)
  return joinSections([
    section('Goal', goalText(state, budget * partShares.goal, fence)),
    section('Request', fitTokens(turnPrompt(state), Math.floor(budget * partShares.request))),
    resultsOf(calls, budget * partShares.step, fence),
    fitTokens(planOf(state), Math.floor(budget * partShares.closing)),
  ])
}

const summaryOf = ({ is_sufficient, knowledge_gap }: Reflection): string => {
  if (knowledge_gap) return cutText(`Still missing: ${knowledge_gap}`, 500)
  return is_sufficient ? 'The results will do' : 'More is needed'
}
