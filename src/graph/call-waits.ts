import { isMasonError, toErrorMessage } from '../state/errors.ts'
import type { UnknownEffect } from '../state/ports/effects.ts'
import type { CallRef } from '../state/ports/run-log.ts'
import type { RunWait, WaitOutcome, WaitRef, WaitRequest, WaitState } from '../state/ports/waits.ts'
import type { LiveRun } from './live-run.ts'
import { checkRequest } from './requests.ts'

/** Thrown in a call that waits: the visit ends without an action and the run is parked. */
export class SuspendedError extends Error {}

/** How long a run waits for an operator: then its call gets the error. */
const operatorTimeoutMs = 7 * 24 * 60 * 60 * 1000

/** Makes the waits of one visit. `readCall` throws where the visit answers no call. */
export const createCallWaits = (
  run: LiveRun,
  readCall: () => CallRef,
  signal: AbortSignal,
): {
  waitAll(requests: readonly WaitRequest[]): Promise<WaitOutcome[]>
  waitForOperator(effect: UnknownEffect): Promise<boolean>
} => {
  let parts = 0

  const suspend = (call: CallRef): never => {
    run.waitingCalls.push(call)
    throw new SuspendedError()
  }
  const start = (call: CallRef, first: number, requests: readonly RunWait[]): Promise<WaitState[]> =>
    run.log.startWaits(call, first, requests).catch((error: unknown) => {
      // a run with a cancel request waits for nothing: parking it ends it
      if (isMasonError(error, 'cancelled')) suspend(call)
      throw error
    })
  const poll = async (request: RunWait, wait: WaitRef): Promise<WaitOutcome | null> => {
    try {
      const found = await request.poll?.(signal)
      if (found === undefined) return null
      if ('outcome' in found) return await run.log.endWait(wait, found.outcome)
      await run.log.delayPoll(wait, found.againInMs)
      return null
    } catch (error) {
      // the call has its answer with the error: nothing is left to poll for it
      if (!signal.aborted && !isMasonError(error, 'lease_lost', 'database_unavailable'))
        await run.log.endWait(wait, { status: 'failed', error: toErrorMessage(error) })
      throw error
    }
  }

  const waitFrom = async (first: number, requests: readonly RunWait[]): Promise<WaitOutcome[]> => {
    const call = readCall()
    const states = await start(call, first, requests)
    const outcomes = await Promise.all(
      requests.map((request, at) => {
        const { outcome, is_poll_due } = states[at] as WaitState
        return is_poll_due && !outcome ? poll(request, { ...call, part: first + at }) : outcome
      }),
    )
    const ended = outcomes.filter((outcome) => outcome !== null)
    return ended.length === requests.length ? ended : suspend(call)
  }

  return {
    waitAll(requests) {
      for (const request of requests) checkRequest('wait', request)
      const first = parts
      parts += requests.length
      return waitFrom(first, requests)
    },
    /** Numbered by how often it was sent, below the waits of the tool: after each send an operator is needed anew. */
    async waitForOperator({ effect_id, sends }) {
      const request = { kind: 'effect', refId: effect_id, expiresInMs: operatorTimeoutMs } as const
      const [outcome] = await waitFrom(-sends, [request])
      return outcome?.status === 'settled'
    },
  }
}
