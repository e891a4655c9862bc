import type { ModelMessage } from '../../src/state/ports/model-messages.ts'

/**
 * What a scripted run does, as given in its prompt. `calculate` computes, `think` makes the model take its time and then
 * computes, `look` is a tool call that takes its time, `write` an effect at the provider, `ask` a question to a person.
 */
export type Step = 'calculate' | 'write' | 'ask' | `think~${number}` | `look~${number}`

export type Job = { name: string; steps: readonly string[] }

export const promptOf = (name: string, steps: readonly Step[]): string => `job ${name}: ${steps.join(' ')}`

/** The words of the job that a prompt is. */
export const readWords = (text: string): { name: string; words: string[] } => {
  const [, name = '', words = ''] = /^job (\S+): (.*)/.exec(text) ?? []
  return { name, words: words.split(' ') }
}

/** The request of the turn among a planner's messages: those of earlier turns come before it. */
export const requestIn = (messages: readonly ModelMessage[]): string =>
  messages.findLast(({ role, content }) => role === 'user' && content.startsWith('job '))?.content ?? ''

/** Reads a job back. */
export const jobIn = (text: string): Job => {
  const { name, words } = readWords(text)
  return { name, steps: words.filter((step) => step !== '') }
}

const toolOf: Record<string, string> = { write: 'gate_write', look: 'gate_read', ask: 'ask_user' }

/** The name of a step and its milliseconds. */
export const partsOf = (step: string): { kind: string; ms: number } => {
  const [kind = '', ms = '0'] = step.split('~')
  return { kind, ms: Number(ms) }
}

/** The actions a run must have appended, each once and in this order, whatever was done to its workers. */
export const nodesOf = (steps: readonly string[]): string[] => [
  'load-session',
  'user-context',
  ...steps.flatMap((step) => ['planner', toolOf[partsOf(step).kind] ?? 'calculate', 'reflection']),
  'planner',
  'answer',
  'end',
]
