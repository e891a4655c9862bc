import { listRounds, type PlanRound } from '../../context/rounds.ts'
import { renderCalls, renderPutBack } from '../../dialogue/results.ts'
import { type DialoguePart, writeDialogue } from '../../dialogue/write.ts'
import type { Json } from '../../state/runtime-state.ts'
import type { ReadonlyAction } from '../../state/turn.ts'

/** How a run is rendered: the server of a tool, and the answer that the user got, null while there is none. */
export type TrajectoryOptions = { serverOf(tool: string): string | undefined; answer: string | null }

/** The turn of a run in the language, and whether its model wrote it so. */
export type Trajectory = { text: string; origin: 'written' | 'rendered' | 'mixed' }

/**
 * The turn of a run in the language of the dialogue, its parts joined by one newline. What the model wrote in the language and what was
 * put back is there byte for byte, refused replies with it; what it said and called natively is rendered. A pure function of the
 * actions, whose large results are inlined.
 */
export const renderTrajectory = (
  actions: readonly ReadonlyAction[],
  { serverOf, answer }: TrajectoryOptions,
): Trajectory => {
  const rounds = new Map(listRounds(actions).map((round) => [round.plan, round]))
  const texts: string[] = []
  const origins = new Set<'written' | 'rendered'>()
  let hasAnswer = answer === null
  for (const action of actions) {
    const round = rounds.get(action)
    if (!round && action.node !== 'planner') continue
    const { dialect, wrote } = action.result
    const isWritten = dialect === 'xml' && typeof wrote === 'string'
    const written = [...listExchange(action), ...(isWritten ? [wrote] : [])]
    const rendered = isWritten ? [] : renderPlan(action, round, serverOf)
    if (written.length > 0) origins.add('written')
    if (rendered.length > 0) origins.add('rendered')
    texts.push(...written, ...rendered.map((part) => writeDialogue([part])))
    if (round) texts.push(...renderPutBack(round).map((part) => writeDialogue([part])))
    hasAnswer = answer === null || (!round && isWritten)
  }
  if (!hasAnswer && answer !== null) {
    texts.push(writeDialogue([{ kind: 'answer', text: answer }]))
    origins.add('rendered')
  }
  const [only = 'rendered'] = origins
  return { text: texts.join('\n'), origin: origins.size > 1 ? 'mixed' : only }
}

/** Replies of one step in the language that were refused or only planned, each with what was put back. */
const listExchange = ({ result }: ReadonlyAction): string[] =>
  (Array.isArray(result.exchange) ? result.exchange : []).flatMap((entry: Json) => {
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return []
    const { wrote, put_back, dialect = result.dialect } = entry
    // an empty reply is left out
    const isPart = (text: Json | undefined): text is string => typeof text === 'string' && text !== ''
    return dialect === 'xml' ? [wrote, put_back].filter(isPart) : []
  })

const renderPlan = (
  action: ReadonlyAction,
  round: PlanRound | undefined,
  serverOf: TrajectoryOptions['serverOf'],
): DialoguePart[] => {
  const { plan_calls } = action.result
  const changes = Array.isArray(plan_calls) ? plan_calls.map((args) => ({ tool: 'update_todos', args })) : []
  // those that changed the plan come last: they have no results, which are numbered by place
  const calls = [...(round?.calls.map(({ call }) => call) ?? []), ...changes]
  return [...renderThought(action), ...(calls.length > 0 ? [renderCalls(action, calls, serverOf)] : [])]
}

/** What the model thought and said before its calls. */
const renderThought = ({ preparation, result: { reasoning } }: ReadonlyAction): DialoguePart[] => {
  const texts = [reasoning, preparation].filter((text) => typeof text === 'string' && text.trim() !== '')
  return texts.length > 0 ? [{ kind: 'think', text: texts.join('\n') }] : []
}
