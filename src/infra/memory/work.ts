import { once } from 'node:events'
import { openDeadline } from '../../state/deadline.ts'
import { isMasonError } from '../../state/errors.ts'
import type { Clock } from '../../state/ports.ts'
import { noTracer } from '../../state/trace.ts'
import { repeatWork } from '../repeat-work.ts'
import { type DistilParts, distilRun } from './distil.ts'
import { type DistilClaim, dropFailed, failDistillation, takeDistillation } from './distil-queue.ts'
import { reembed } from './reembed.ts'

export type MemoryWorkOptions = DistilParts & {
  clock: Clock
  /** Between two looks when there was nothing to do. */
  everyMs?: number
  /** How long one run may take; after it another worker may have it. */
  leaseMs?: number
}

const reembedEveryMs = 30_000
/** Businesses whose memories could not be embedded, after which the next ones wait for the next time. */
const mostFaults = 3

/** Runs that one process learns from at once: nearly all of the time a model is waited for. */
const mostLearners = 4

/** Learns from ended runs and keeps vectors up to date, in the background. */
export const startMemoryWork = (options: MemoryWorkOptions): { close(): Promise<void> } => {
  const { database, clock, log, everyMs = 1000, leaseMs = 120_000, tracer = noTracer } = options
  const stopped = new AbortController()

  /** Never rejects: what went wrong stands in the log, and the run is taken again. */
  const learn = async (claim: DistilClaim): Promise<void> => {
    const { run_id, tenant, tries } = claim
    using deadline = openDeadline(leaseMs, stopped.signal)
    try {
      await tracer.learning({ run_id, business_id: tenant, tries }, () =>
        distilRun(options, claim, deadline.signal),
      )
    } catch (error) {
      if (isMasonError(error, 'lease_lost')) return
      if (!stopped.signal.aborted)
        log.warn({ run_id, tries, error: String(error) }, 'nothing was learned of a run')
      await failDistillation(database, claim, String(error)).catch((fault: unknown) =>
        log.warn({ run_id, error: String(fault) }, 'a run that taught nothing waits for its time limit'),
      )
    }
  }
  /** Until nothing is due and nobody learns any more: one slow model keeps the others from nothing. */
  const distilAll = async (): Promise<void> => {
    const learners = new Set<Promise<void>>()
    const oneIsDone = () => Promise.race(learners)
    /** A while at most: what is due by then does not wait for the slow. */
    const oneIsDoneOrLate = async (): Promise<void> => {
      using late = openDeadline(everyMs, stopped.signal)
      await Promise.race([oneIsDone(), once(late.signal, 'abort')])
    }
    try {
      while (!stopped.signal.aborted) {
        const { size: before } = learners
        const claim = await takeDistillation(database, leaseMs)
        if (claim) {
          const learner = learn(claim).finally(() => learners.delete(learner))
          learners.add(learner)
          if (learners.size === mostLearners) await oneIsDone()
        } else if (learners.size > 0) await oneIsDoneOrLate()
        // one that ended meanwhile may have made room for the next of its session
        else if (before === 0) return
      }
    } finally {
      await Promise.all(learners)
    }
  }
  // one business that may ask no model, or whose text no model takes, keeps nobody else waiting
  const passedOver = new Set<string>()
  const embedAll = async (): Promise<void> => {
    await dropFailed(database)
    for (let faults = 0; !stopped.signal.aborted && faults < mostFaults; ) {
      const done = await reembed(options, stopped.signal, passedOver).catch((error: unknown) => {
        if (!stopped.signal.aborted) log.warn({ error: String(error) }, 'memories could not be embedded anew')
        faults++
        return null
      })
      if (done !== 0) continue
      passedOver.clear()
      return
    }
  }
  const distilling = repeatWork(distilAll, everyMs, clock, log, 'learning from runs')
  const embedding = repeatWork(
    embedAll,
    Math.max(everyMs, reembedEveryMs),
    clock,
    log,
    'embedding memories anew',
  )
  return {
    async close() {
      stopped.abort()
      await Promise.all([distilling.stop(), embedding.stop()])
    },
  }
}
