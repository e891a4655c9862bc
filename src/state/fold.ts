import { applyPatch, type Patch } from './patch.ts'
import {
  type Action,
  type ActionBody,
  emptyState,
  type Judgement,
  judgementSchema,
  type RuntimeState,
} from './runtime-state.ts'
import { addUsage, noUsage } from './token-usage.ts'

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

/**
 * The turn's actions with one more, and with its judgements set on the actions it judged; the rows themselves never
 * change. `isOwn`: no other code has this list, so it may grow in place.
 */
const addAction = (list: readonly Action[], action: Action, isOwn: boolean): Action[] => {
  const next = isOwn ? (list as Action[]) : [...list]
  next.push(action)
  // what answers a call holds a tool's own data, whatever its names
  if (action.result.judged === undefined || action.result.call !== undefined) return next
  const judged = judgementsSchema.safeParse(action.result.judged)
  for (const judgement of judged.success ? judged.data : []) judge(next, judgement)
  return next
}

/** Ids of a turn follow each other, so that the judged action is found without looking at the others. */
const judge = (actions: Action[], { id, relevance, important }: Judgement): void => {
  const at = id - (actions[0]?.id ?? 0)
  const action = actions[at]
  if (action?.id === id)
    actions[at] = { ...action, relevance, context: action.context && { ...action.context, important } }
}

const apply = (before: RuntimeState, row: ActionRow, isOwn: boolean): RuntimeState => {
  const state = openTurn(before, row.turn)
  const at = row.turn - 1
  const actions = addAction((state.action_history[at] ?? []) as Action[], { id: row.seq, ...row.body }, isOwn)
  return {
    ...applyPatch(state, row.turn, row.patch),
    action_history: isOwn ? state.action_history : state.action_history.with(at, actions),
    usage: state.usage.with(at, addUsage(state.usage[at] ?? noUsage, row.body.usage)),
  }
}

/** The state after one more action. The graph and `fold` both go through here, so they cannot differ. */
export const applyAction = (before: RuntimeState, row: ActionRow): RuntimeState => apply(before, row, false)

/** The state that the rows of a session, in order of `seq`, add up to. Linear in the rows: each list is copied once. */
export const foldActions = (rows: Iterable<ActionRow>, from: RuntimeState = emptyState): RuntimeState => {
  let state = from
  let ownTurn = 0
  for (const row of rows) {
    state = apply(state, row, row.turn === ownTurn)
    ownTurn = row.turn
  }
  return state
}
