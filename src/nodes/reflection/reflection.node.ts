import { computePromptBudget, partShares } from '../../context/budget.ts'
import { renderGoal, renderPlan } from '../../context/context.ts'
import { renderResults } from '../../context/result-text.ts'
import { fitParts, part, titles } from '../../context/sections.ts'
import { defineNode, type GraphInfo } from '../../graph/definitions.ts'
import { requestJson } from '../../graph/json-request.ts'
import { type AnsweredCall, findLastFanOut, listAnsweredCalls } from '../../state/calls.ts'
import type { PromptPart } from '../../state/prompt-part.ts'
import { createDataFence, dataRule } from '../../state/provenance.ts'
import type { RuntimeState, Todo } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { fitTokens } from '../../state/text/tokens.ts'
import { completeTodo, failTodo } from '../../state/todos.ts'
import { noUsage } from '../../state/token-usage.ts'
import { turnActions, turnPrompt, turnTodos } from '../../state/turn.ts'
import { type Reflection, reflectByRule, reflectionReply, toReflection } from './judge.ts'

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
        ? await requestJson(
            models,
            {
              role: 'reflection',
              instructions,
              parts: partsOf(
                state,
                calls,
                computePromptBudget('reflection', models.window?.('reflection', request.models?.reflection)),
              ),
              schema: reflectionReply,
              model: request.models?.reflection,
            },
            signal,
            log,
          )
        : { value: null, usage: noUsage }
    const reflection = asked.value ? toReflection(asked.value, calls) : reflectByRule(calls)
    const isPure = (tool: string): boolean => graph.tool(tool)?.pure === true
    const todos = updateTodoStatuses(turnTodos(state), calls, reflection, clock.now(), { isPure })
    const { todos: _moved, ...result } = reflection
    const retried = todos.filter((todo) => todo.status === 'pending').map((todo) => todo.id)
    return checkpoint(
      {
        preparation: reflection.reasoning,
        summary: toSummary(reflection),
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
  const since = findLastFanOut(actions)?.id
  return listAnsweredCalls(actions.slice(actions.findLastIndex((action) => action.id === since)))
}

/** Rules decide when every result came without error from a pure tool. */
const needsModel = (calls: readonly AnsweredCall[], graph: GraphInfo): boolean =>
  calls.some(({ call, action }) => action.result.is_error === true || graph.tool(call.tool)?.pure !== true)

const partsOf = (
  state: Pick<RuntimeState, 'prompts' | 'task_goals' | 'todos' | 'action_history'>,
  calls: readonly AnsweredCall[],
  budget: number,
): PromptPart[] => {
  const fence = createDataFence(state)
  return [
    part(titles.goal, renderGoal(state, budget * partShares.goal, fence), 'agent'),
    part(titles.request, fitTokens(turnPrompt(state), Math.floor(budget * partShares.request)), 'user'),
    renderResults(calls, budget * partShares.step, fence),
    ...fitParts(renderPlan(state), Math.floor(budget * partShares.closing)),
  ]
}

const toSummary = ({ is_sufficient, knowledge_gap }: Reflection): string => {
  if (knowledge_gap) return cutText(`Still missing: ${knowledge_gap}`, 500)
  return is_sufficient ? 'The results will do' : 'More is needed'
}

type Tools = { isPure(tool: string): boolean }

/**
 * The tasks in work after their calls came back: as the reflection says, else by the results: one good result completes
 * a task, only failures fail the try. Only tasks that changed are given.
 */
export const updateTodoStatuses = (
  todos: readonly Todo[],
  calls: readonly AnsweredCall[],
  reflection: Reflection,
  now: Date,
  toolInfo: Tools,
): Todo[] => {
  const said = new Map(reflection.todos.map(({ id, status }) => [id, status]))
  return todos
    .map((todo) => updateTodoStatus(todo, findTodoCalls(todo, calls), said.get(todo.id), now, toolInfo))
    .filter((todo, index) => todo !== todos[index])
}

const findTodoCalls = (todo: Todo, calls: readonly AnsweredCall[]): readonly AnsweredCall[] => {
  const suggested = calls.filter(({ call }) => todo.suggested_tools.includes(call.tool))
  return suggested.length > 0 ? suggested : calls
}

const updateTodoStatus = (
  todo: Todo,
  calls: readonly AnsweredCall[],
  said: Todo['status'] | undefined,
  now: Date,
  tools: Tools,
): Todo => {
  const good = calls.findLast(({ action }) => action.result.is_error !== true)
  const status =
    said ?? (todo.status !== 'processing' || calls.length === 0 ? undefined : good ? 'completed' : 'failed')
  const last = good ?? calls.at(-1)
  const attempt = { now, tool_used: last?.call.tool ?? '', execution_time: 0 }
  if (status === 'completed') return completeTodo(todo, { ...attempt, output: last?.action.summary ?? '' })
  if (status !== 'failed') return todo
  const failed = failTodo(todo, { ...attempt, error: String(last?.action.result.text ?? 'the task failed') })
  // a tool that always gives the same for the same call gains nothing by waiting
  return failed.status === 'pending' && calls.every(({ call }) => tools.isPure(call.tool))
    ? { ...failed, retry_after: null }
    : failed
}
