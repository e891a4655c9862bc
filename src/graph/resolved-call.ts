import { readWholeText } from '../context/result-text.ts'
import { type PlannedCall, readAnsweredCall, stopsOnFailure } from '../state/calls.ts'
import { MasonError } from '../state/errors.ts'
import type { Blobs } from '../state/ports/blobs.ts'
import { contentHash } from '../state/text/content-hash.ts'
import type { ReadonlyAction } from '../state/turn.ts'
import type { AnyTool } from './definitions.ts'
import { listUsedSteps, resolveArguments } from './references.ts'

/** The arguments that a call runs with, where results took the place of its references, and their hash. */
export type ResolvedCall = { args: PlannedCall['args']; sha256: string }

/**
 * Resolves a call of a plan by the actions `since`, which answer the steps before it; null where it refers to no result. The same
 * in every process, for it is made of committed actions. Throws `bad_tool_call` where that makes no arguments.
 */
export const resolveCall = async (
  tool: Pick<AnyTool, 'name' | 'input' | 'raw'>,
  call: PlannedCall,
  { plan, since }: { plan: ReadonlyAction; since: readonly ReadonlyAction[] },
  blobs: Pick<Blobs, 'read'>,
): Promise<ResolvedCall | null> => {
  const steps = stopsOnFailure(plan) ? listUsedSteps(tool, call) : []
  if (steps.length === 0) return null
  const texts = new Map<number, string>()
  for (const step of steps) {
    const answer = since.find((action) => readAnsweredCall(action)?.index === step)
    const text = answer ? await readWholeText(answer, blobs) : null
    if (text === null)
      throw new MasonError('bad_tool_call', `the result of step ${step} is gone`, {
        remedy: 'make its call again',
      })
    texts.set(step, text)
  }
  const args = resolveArguments(tool, call, (step) => texts.get(step) ?? '')
  return { args, sha256: contentHash(args) }
}
