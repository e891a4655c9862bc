import { isMasonError } from '../../state/errors.ts'
import type { Clock } from '../../state/ports.ts'
import { repeatWork } from '../repeat-work.ts'
import { type DistilParts, distilRun } from './distil.ts'
import { dropFailed, failDistillation, takeDistillation } from './distil-queue.ts'
import { reembed } from './reembed.ts'

export type MemoryWorkOptions = DistilParts & {
  clock: Clock
  /** Between two looks when there was nothing to do. */
  everyMs?: number
  /** How long one run may take; after it another worker may have it. */
  leaseMs?: number
}

const reembedEveryMs = 30_000

/** Learns from ended runs and keeps vectors up to date, in the background and one thing at a time. */
export const startMemoryWork = (options: MemoryWorkOptions): { close(): Promise<void> } => {
  const { database, clock, log, everyMs = 1000, leaseMs = 120_000 } = options
  const stopped = new AbortController()

  const distilAll = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      const claim = await takeDistillation(database, leaseMs)
      if (!claim) return
      const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(leaseMs)])
      await distilRun(options, claim, signal).catch(async (error: unknown) => {
        if (isMasonError(error, 'lease_lost')) return
        if (!stopped.signal.aborted)
          log.warn(
            { run_id: claim.run_id, tries: claim.tries, error: String(error) },
            'nothing was learned of a run',
          )
        await failDistillation(database, claim, String(error))
      })
    }
  }
  const embedAll = async (): Promise<void> => {
    while (!stopped.signal.aborted && (await reembed(options, stopped.signal)) > 0);
    await dropFailed(database)
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
