import { computePromptBudget, partShares } from '../../context/budget.ts'
import { renderGoal, renderPlan, renderPrompt } from '../../context/context.ts'
import { renderResults } from '../../context/result-text.ts'
import { listRounds, type PlanRound } from '../../context/rounds.ts'
import { noText, part, promptText, titles } from '../../context/sections.ts'
import { defineNode, type GraphInfo } from '../../graph/definitions.ts'
import { requestJson } from '../../graph/json-request.ts'
import { readToolEffects } from '../../graph/tool-effects.ts'
import type { AnsweredCall, PlannedCall } from '../../state/calls.ts'
import { memoizeByObject } from '../../state/memoize.ts'
import type { PromptPart } from '../../state/prompt-part.ts'
import {
  createDataFence,
  type DataFence,
  dataRule,
  derivedLabel,
  joinTexts,
  ownText,
  type PromptText,
  userWords,
} from '../../state/provenance.ts'
import type { RuntimeState, StateField } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { estimateTokens } from '../../state/text/tokens.ts'
import { isOpenTodo } from '../../state/todos.ts'
import { noUsage } from '../../state/token-usage.ts'
import { currentTurn, turnActions, turnTodos } from '../../state/turn.ts'
import { type Reflection, reflectByRule, reflectionReply, toReflection } from './judge.ts'
import { updateTodoStatuses } from './todo-verdicts.ts'

const reflectionFields = [
  'prompts',
  'task_goals',
  'todos',
  'action_history',
  'chat_history',
] as const satisfies readonly StateField[]

const instructions = ownText`You judge the results of an agent's last calls against the request. The conversation and the line for each earlier result say what is known already.
Reason first. Say whether the request can be answered now; if not, name the one gap that matters most and how to close it.
Judge each action of the results by its id: how relevant it is for the final answer, and whether it is important.
Name a task of the plan as completed only where a result meets what it is done when, with the action of that result and what met it; or as failed, with the reason.
${dataRule}`

/** Judges what came back, moves the plan, and hands over to the planner. */
export default defineNode({
  name: 'reflection',
  description: 'Judges what the calls brought, and moves the plan',
  reads: reflectionFields,
  writes: ['todos'],
  next: ['planner'],
  async run(state, { checkpoint, models, request, scenario, graph, clock, workedMs, log }, signal) {
    const { calls, earlier } = listCalls(state)
    const isWritten = listRounds(turnActions(state)).at(-1)?.plan.result.dialect === 'xml'
    const model = request.models?.reflection
    const window = models.window?.('reflection', model)
    const byRules = isWritten || scenario?.rules.includes('reflection') === true
    const asked =
      !byRules && needsModel(calls, graph)
        ? await requestJson(
            models,
            {
              role: 'reflection',
              instructions,
              parts: partsOf(state, calls, earlier, computePromptBudget('reflection', window)),
              schema: reflectionReply,
              model,
            },
            signal,
            log,
          )
        : { value: null, usage: noUsage }
    const reflection = asked.value ? toReflection(asked.value, calls) : reflectByRule(calls, earlier)
    const isPure = ({ tool, args }: PlannedCall): boolean =>
      readToolEffects(graph.tool(tool), args) === 'none'
    const { todos: verdicts, ...result } = reflection
    const progress = { actions: turnActions(state), now: clock.now(), workedMs: workedMs() }
    const todos = updateTodoStatuses(turnTodos(state), calls, verdicts, progress, isPure)
    const closed = verdicts.filter(({ id }) => todos.some((todo) => todo.id === id && !isOpenTodo(todo)))
    const retried = todos.filter((todo) => todo.status === 'pending').map((todo) => todo.id)
    return checkpoint(
      {
        preparation: reflection.reasoning,
        summary: toSummary(reflection),
        result: {
          ...result,
          by: asked.value ? 'model' : 'rules',
          ...(closed.length > 0 && { closed }),
          ...(retried.length > 0 && { retried }),
        },
        usage: asked.usage,
        relevance: 0,
        next: ['planner'],
      },
      todos.length > 0 ? { todos } : {},
    )
  },
})

type Calls = { calls: readonly AnsweredCall[]; earlier: readonly AnsweredCall[] }

/** The calls that were just answered, and those of the turn's earlier steps. */
const listCalls = (state: Pick<RuntimeState, 'action_history'>): Calls => {
  const rounds = listRounds(turnActions(state)).map(readCalls)
  return { calls: rounds.at(-1) ?? [], earlier: rounds.slice(0, -1).flat() }
}

/** In order of their actions. Each step that is over is read once. */
const readCalls = memoizeByObject(({ calls }: PlanRound): readonly AnsweredCall[] =>
  calls
    .flatMap(({ call, answer }) => (answer ? [{ call, action: answer }] : []))
    .sort((a, b) => a.action.id - b.action.id),
)

/** Rules decide when every result came without error from a pure tool, and after a step that was written in the language. */
const needsModel = (calls: readonly AnsweredCall[], graph: GraphInfo): boolean =>
  calls.some(
    ({ call, action }) =>
      action.result.is_error === true || readToolEffects(graph.tool(call.tool), call.args) !== 'none',
  )

/** What talk and earlier results may take of the prompt, where the parts that must be there leave so much. */
const talkShare = 0.2
const earlierShare = 0.1

const partsOf = (
  state: Pick<RuntimeState, (typeof reflectionFields)[number]>,
  calls: readonly AnsweredCall[],
  earlier: readonly AnsweredCall[],
  budget: number,
): PromptPart[] => {
  const fence = createDataFence(state)
  const asked = [
    part(titles.goal, renderGoal(state, budget * partShares.goal, fence), 'agent'),
    part(titles.request, renderPrompt(state, budget), 'user'),
  ]
  const judged = [
    renderResults(calls, budget * partShares.step, fence),
    ...renderPlan(state, Math.floor(budget * partShares.closing), fence),
  ]
  const spare = budget - estimateTokens(promptText([...asked, ...judged]))
  const said = state.chat_history.filter(({ turn }) => turn < currentTurn(state))
  const lines = takeLatest(earlier, Math.min(budget * earlierShare, spare / 2), toLine)
  const talk = takeLatest(said, Math.min(budget * talkShare, spare / 2), (one) => toMessageLine(one, fence))
  const found = fence(lines.latest.join('\n'), derivedLabel)
  return [
    part(titles.conversation, joinTexts([talk.omitted, ...talk.latest], '\n'), 'agent'),
    ...asked,
    part(titles.earlierResults, joinTexts([lines.omitted, found], '\n'), 'tool'),
    ...judged,
  ]
}

/** What was called and what came of it; reading the result again is not needed to judge the next ones. */
const toLine = ({ call, action }: AnsweredCall): string => {
  const failed = action.result.is_error === true ? ' (error)' : ''
  const args = cutText(JSON.stringify(call.args), 200)
  return `- action ${action.id}: ${call.tool} ${args}${failed}: ${cutText(action.summary.replaceAll('\n', ' '), 200)}`
}

const maxMessage = 2000

const toMessageLine = (
  { role, content }: RuntimeState['chat_history'][number],
  fence: DataFence,
): PromptText => {
  const text = cutText(content, maxMessage)
  return role === 'user'
    ? ownText`user: ${userWords(text.replaceAll('\n', '\n  '))}`
    : ownText`assistant:\n${fence(text, derivedLabel)}`
}

/** The latest items that have room, a line each, in their order, and a note of how many there are before. */
const takeLatest = <Item, Line extends string>(
  items: readonly Item[],
  budget: number,
  render: (item: Item) => Line,
): { omitted: PromptText; latest: Line[] } => {
  const latest: Line[] = []
  let left = budget - omittedTokens
  for (const item of items.toReversed()) {
    const line = render(item)
    left -= estimateTokens(line) + 1
    if (left < 0) break
    latest.unshift(line)
  }
  const omitted = items.length - latest.length
  return { omitted: omitted > 0 ? ownText`[${omitted} earlier ones left out]` : noText, latest }
}

const omittedTokens = 10

const toSummary = ({ is_sufficient, knowledge_gap }: Reflection): string => {
  if (knowledge_gap) return cutText(`Still missing: ${knowledge_gap}`, 500)
  return is_sufficient ? 'The results will do' : 'More is needed'
}
