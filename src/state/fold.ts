import { applyPatch, type Patch } from './patch.ts'
import {
  type Action,
  type ActionBody,
  emptyState,
  judgementSchema,
  type RuntimeState,
} from './runtime-state.ts'
import { addUsage, noUsage } from './usage.ts'

/** One committed action as the database keeps it. `seq` is the action's id in its session. */
export type ActionRow = { seq: number; turn: number; body: ActionBody; patch: Patch }

/** Opens the lists of every turn up to `turn`; a turn that was cancelled before it began stays empty. */
const openTurn = (state: RuntimeState, turn: number): RuntimeState => {
  const missing = turn - state.prompts.length
  if (missing <= 0) return state
  const fill = <Item>(list: readonly Item[], item: Item): Item[] => [...list, ...Array(missing).fill(item)]
  return {
    ...state,
    prompts: fill(state.prompts, ''),
    task_goals: fill(state.task_goals, ''),
    todos: fill(state.todos, []),
    action_history: fill(state.action_history, []),
    usage: fill(state.usage, noUsage),
  }
}

const judgementsSchema = judgementSchema.array()

/** What reflection judged, shown on the actions it judged. The rows themselves never change. */
const applyJudgements = (state: RuntimeState, judged: unknown): RuntimeState => {
  const parsed = judgementsSchema.safeParse(judged)
  if (!parsed.success || parsed.data.length === 0) return state
  const byId = new Map(parsed.data.map((judgement) => [judgement.id, judgement]))
  const judge = (action: Action): Action => {
    const judgement = byId.get(action.id)
    if (!judgement) return action
    const context = action.context && { ...action.context, important: judgement.important }
    return { ...action, relevance: judgement.relevance, context }
  }
  const history = (state.action_history as readonly Action[][]).map((turn) =>
    turn.some((action) => byId.has(action.id)) ? turn.map(judge) : turn,
  )
  return { ...state, action_history: history }
}

/** The state after one more action. The graph and `fold` both go through here, so they cannot differ. */
export const applyAction = (before: RuntimeState, row: ActionRow): RuntimeState => {
  const state = openTurn(before, row.turn)
  const at = row.turn - 1
  const action: Action = { id: row.seq, ...row.body }
  const next: RuntimeState = {
    ...applyPatch(state, row.turn, row.patch),
    action_history: state.action_history.with(at, [...(state.action_history[at] ?? []), action]),
    usage: state.usage.with(at, addUsage(state.usage[at] ?? noUsage, row.body.usage)),
  }
  // what answers a call holds a tool's own data, whatever its names
  return row.body.result.call === undefined ? applyJudgements(next, row.body.result.judged) : next
}

/** The state as a patch of `turn` would leave it, before its action is committed. */
export const preview = (state: RuntimeState, turn: number, patch: Patch): RuntimeState =>
  applyPatch(openTurn(state, turn), turn, patch)

/** The state that the rows of a session, in order of `seq`, add up to. */
export const fold = (rows: Iterable<ActionRow>, from: RuntimeState = emptyState): RuntimeState => {
  let state = from
  for (const row of rows) state = applyAction(state, row)
  return state
}
