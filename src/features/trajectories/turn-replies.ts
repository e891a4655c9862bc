import { readResultText } from '../../context/result-text.ts'
import { listRounds } from '../../context/rounds.ts'
import { readReply } from '../../dialogue/reply.ts'
import { parseArguments } from '../../graph/call-body.ts'
import { explainNotRun } from '../../state/calls.ts'
import type { RunView } from '../../state/run-view.ts'
import type { Json, RuntimeState } from '../../state/runtime-state.ts'
import type { ReadonlyAction } from '../../state/turn.ts'

/** All that an export is made of: a run, the state up to its turn with large results in full, its tools and costs. */
export type TrajectorySource = {
  run: RunView
  state: RuntimeState
  tools: readonly {
    type: 'function'
    function: { name: string; description?: string; parameters: Record<string, unknown> }
  }[]
  cost: readonly { currency: string; cost: number }[]
}

/** A reply of the planner, in whatever dialect. `result`: what came back of a call, whole; null: nothing has. */
export type TurnReply = {
  action: ReadonlyAction
  calls: {
    id: string
    name: string
    args: Json
    result: string | null
    answer?: ReadonlyAction | undefined
  }[]
}

/** The replies of a run that were acted on, in their order; calls that changed the plan come last. */
export const listReplies = ({ run, state }: Pick<TrajectorySource, 'run' | 'state'>): TurnReply[] => {
  const actions = state.action_history[run.turn - 1] ?? []
  const rounds = new Map(listRounds(actions).map((round) => [round.plan, round]))
  const ids = new Set<string>()
  /** A model that writes the same reply again, or counts its calls anew, gives an id twice. */
  const toUnique = (id: string, action: ReadonlyAction): string => {
    const unique = ids.has(id) ? `${id}_${action.id}` : id
    ids.add(unique)
    return unique
  }
  const isReply = (action: ReadonlyAction) => rounds.has(action) || action.node === 'planner'
  return actions.filter(isReply).map((action) => {
    const { calls = [], stoppedBy = null } = rounds.get(action) ?? {}
    const notRun = stoppedBy === null ? null : explainNotRun(stoppedBy)
    const made = calls.map(({ call: { id, tool: name, args }, answer }) => {
      return {
        id: toUnique(id, action),
        name,
        args,
        answer,
        result: answer ? readResultText(answer) : notRun,
      }
    })
    const changes = listPlanChanges(action).map((args, index) => {
      return { id: `${action.id}_plan_${index}`, name: 'update_todos', args, result: 'The plan is updated.' }
    })
    return { action, calls: [...made, ...changes] }
  })
}

/** The arguments of a reply's calls of `update_todos`: these are no actions. */
const listPlanChanges = ({ result: { plan_calls, wrote, dialect } }: ReadonlyAction): readonly Json[] => {
  if (Array.isArray(plan_calls)) return plan_calls
  const written = dialect === 'xml' ? readReply(String(wrote)).blocks.at(-1)?.calls : []
  return (written ?? []).flatMap(({ tool, body }) =>
    tool === 'update_todos' ? (parseArguments(body) ?? []) : [],
  )
}

/** What came before the request: what was known of the user and the files, where there was something, and earlier turns. */
export const listEarlier = ({ run, state: { memory, origin_files, chat_history } }: TrajectorySource) => {
  const lines = [
    ...(memory.length > 0 ? ['Remembered of the user:'] : []),
    ...memory.map(({ content }) => `- ${content}`),
    ...(origin_files.length > 0 ? ['Files:'] : []),
    ...origin_files.map(({ name }) => `- ${name}`),
  ]
  const known = lines.length > 0 ? [{ role: 'system' as const, content: lines.join('\n') }] : []
  return [...known, ...chat_history.filter(({ turn }) => turn < run.turn)]
}

/** The outcomes that a reward can be made of. */
export const readRewards = ({ run, state, cost }: TrajectorySource) => ({
  status: run.status,
  finish_reason: run.finish_reason,
  todos: (state.todos[run.turn - 1] ?? []).map(({ id, status }) => ({ id, status })),
  usage: run.usage,
  cost,
})
