/**
 * What a scripted run does, as given in its prompt. `calculate` computes, `think` makes the model take its time and then
 * computes, `look` is a tool call that takes its time, `write` an effect at the provider, `ask` a question to a person.
 */
export type Step = 'calculate' | 'write' | 'ask' | `think~${number}` | `look~${number}`

export type Job = { name: string; steps: readonly string[] }

export const promptOf = (name: string, steps: readonly Step[]): string => `job ${name}: ${steps.join(' ')}`

/** The words of the last job in a prompt, or in the planner's background, which ends with the request. */
export const lastJob = (text: string): { name: string; words: string[] } => {
  const [, name = '', words = ''] =
    [...text.matchAll(/(?:^|(?:^|\n)# Request\n)job (\S+): (.*)/g)].at(-1) ?? []
  return { name, words: words.split(' ') }
}

/** Reads a job back. */
export const jobIn = (text: string): Job => {
  const { name, words } = lastJob(text)
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
