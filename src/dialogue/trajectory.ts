import { readResultText } from '../context/result-text.ts'
import { listRounds, type PlanRound } from '../context/rounds.ts'
import { cutText } from '../state/text/cut-text.ts'
import type { ReadonlyAction } from '../state/turn.ts'
import { type DialoguePart, writeDialogue } from './write.ts'

/** The server of a tool that names none. */
const ownServer = 'mason_server'

/** Characters of a result that are put back; `read_result` reads the rest. */
const maxResultChars = 16_000

/** How a run is rendered: the server of a tool, and the answer that the user got, null while there is none. */
export type TrajectoryOptions = { serverOf(tool: string): string | undefined; answer: string | null }

/**
 * The turn of a run that called its tools natively, in the language of the dialogue: what was thought, what was called in which block,
 * what was put back, and the answer. A pure function of the actions, whose large results are inlined.
 */
export const renderTrajectory = (
  actions: readonly ReadonlyAction[],
  { serverOf, answer }: TrajectoryOptions,
): string => {
  const rounds = new Map(listRounds(actions).map((round) => [round.plan, round]))
  const parts = actions.flatMap((action): DialoguePart[] => {
    const round = rounds.get(action)
    if (round) return [...renderThought(action), renderCalls(round, serverOf), ...renderResults(round)]
    return action.node === 'planner' ? renderThought(action) : []
  })
  return writeDialogue([...parts, ...(answer === null ? [] : [{ kind: 'answer' as const, text: answer }])])
}

/** What the model thought and said before its calls. */
const renderThought = ({ preparation, result: { reasoning } }: ReadonlyAction): DialoguePart[] => {
  const texts = [reasoning, preparation].filter((text) => typeof text === 'string' && text.trim() !== '')
  return texts.length > 0 ? [{ kind: 'think', text: texts.join('\n') }] : []
}

const renderCalls = ({ plan, calls }: PlanRound, serverOf: TrajectoryOptions['serverOf']): DialoguePart => ({
  kind: 'calls',
  block: plan.result.block === 'sequential' ? 'sequential' : 'parallel',
  calls: calls.map(({ call: { tool, args } }) => ({
    ...{ server: serverOf(tool) ?? ownServer, tool },
    // another way to write the same JSON, in which no tag closes and no text refers to a result
    body: JSON.stringify(args).replaceAll('</', '<\\/').replaceAll('{results[', '\\u007bresults['),
  })),
})

/** The results that were put back, in the order of the block; none for a call that the run ended before. */
const renderResults = ({ calls }: PlanRound): DialoguePart[] =>
  calls.flatMap(({ answer }, index) => {
    if (!answer) return []
    const text = readResultText(answer)
    const head = cutText(text, maxResultChars)
    const rest = `[cut: ${text.length} characters in all; read_result with action_id ${answer.id} reads the rest]`
    return [{ kind: 'result', index, text: head.length < text.length ? `${head}\n${rest}` : text }]
  })
