import type { ModelRole, ModelWindow } from '../state/ports/models.ts'

/** Of a model of which nothing is known, in tokens. */
const defaultWindow = 128_000
const defaultOutput = 4096

/** These look at a part of the state only. */
const briefRoles: readonly ModelRole[] = ['understand', 'reflection']

/**
 * Tokens that the prompt of a role may take, without the tools that are offered beside it: half of what the model takes,
 * for a brief role a quarter. The rest is room for its answer and for estimates that are off.
 */
export const computePromptBudget = (role: ModelRole, window: ModelWindow | undefined): number => {
  const context = window?.context ?? defaultWindow
  const output = Math.min(window?.output ?? defaultOutput, context / 2)
  const share = briefRoles.includes(role) ? 0.25 : 0.5
  return Math.max(1000, Math.floor(Math.min(context * share, context - output)))
}

/** What each part of a prompt may take of its budget. */
export const partShares = {
  request: 0.35,
  memory: 0.06,
  files: 0.08,
  structure: 0.1,
  goal: 0.03,
  summary: 0.06,
  /** What earlier turns said and found; half or less where the parts above leave less. */
  earlier: 0.23,
  /** All of the above. */
  background: 0.65,
  /** One result. */
  result: 0.15,
  /** All results of one step. */
  step: 0.4,
  /** The plan, which closes the prompt. */
  closing: 0.1,
  /** What can be summed up may grow to this before it is. */
  compaction: 0.4,
} as const
