import { type LargeTexts, readResultText } from '../context/result-text.ts'
import type { PlanRound } from '../context/rounds.ts'
import { explainNotRun } from '../state/calls.ts'
import type { Json } from '../state/runtime-state.ts'
import { cutText } from '../state/text/cut-text.ts'
import type { ReadonlyAction } from '../state/turn.ts'
import type { DialoguePart } from './write.ts'

/** The server of a tool that names none. */
export const ownServer = 'mason_server'

/** Characters of a result that are put back; `read_result` reads the rest. */
const maxResultChars = 16_000

/** The calls of a step that was decided natively, as the language writes them; `serverOf` names the server of a tool. */
export const renderCalls = (
  plan: ReadonlyAction,
  calls: readonly { tool: string; args: Json }[],
  serverOf: (tool: string) => string | undefined,
): DialoguePart => ({
  kind: 'calls',
  block: plan.result.block === 'sequential' ? 'sequential' : 'parallel',
  calls: calls.map(({ tool, args }) => ({
    server: serverOf(tool) ?? ownServer,
    tool,
    // another way to write the same JSON, in which no tag closes and no text refers to a result
    body: JSON.stringify(args).replaceAll('</', '<\\/').replaceAll('{results[', '\\u007bresults['),
  })),
})

/**
 * What is put back after the calls of a step: the results in the order of the block, and what was not done of the reply. A pure
 * function of the actions; `large` has the texts that are in blobs. A call that the run ended before has none.
 */
export const renderPutBack = ({ plan, calls, stoppedBy }: PlanRound, large?: LargeTexts): DialoguePart[] => {
  const notRun = stoppedBy === null ? null : explainNotRun(stoppedBy)
  const results = calls.flatMap(({ answer }, index): DialoguePart[] => {
    const text = answer ? renderResult(answer, large) : notRun
    return text === null ? [] : [{ kind: 'result', index, text }]
  })
  const { dialect, notes } = plan.result
  if (dialect !== 'xml' || !Array.isArray(notes) || notes.length === 0) return results
  const text = notes.map((note) => `Note: ${String(note)}`).join('\n')
  return [...results, { kind: 'result', index: calls.length, text }]
}

const renderResult = (answer: ReadonlyAction, large: LargeTexts | undefined): string => {
  const whole = large?.get(answer)
  const text = whole?.text ?? readResultText(answer)
  const total = whole?.total ?? text.length
  const head = cutText(text, maxResultChars)
  if (head.length === total) return text
  return `${head}\n[cut: ${total} characters in all; read_result with action_id ${answer.id} reads the rest]`
}
