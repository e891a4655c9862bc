import { MasonError } from '../../state/errors.ts'
import type { Clock, Sql } from '../../state/ports.ts'
import { isUnavailable } from '../database/faults.ts'

const maxPauseMs = 1000

export type SteadyLease = {
  /** Aborted when the lease is lost. */
  signal: AbortSignal
  /** Throws `lease_lost` when the lease is too old to act on. */
  check(): void
}

/**
 * The database as one claimed run sees it: a statement whose answer did not come is sent again until it is answered
 * or the lease is lost (`lease_lost`), also when it hangs. Only for statements that do no harm when done twice. A process
 * that was frozen while it waited does not act on the answer: no timer has told it yet that its lease is over.
 */
export const createSteadySql = (sql: Sql, clock: Clock, lease: SteadyLease): Sql => ({
  async query<Row>(text: string, values: readonly unknown[] = []) {
    for (let attempt = 0; ; attempt++) {
      if (lease.signal.aborted) throw leaseLost(lease.signal.reason)
      try {
        const answer = await unlessLost(sql.query<Row>(text, values), lease.signal)
        lease.check()
        return answer
      } catch (error) {
        if (!isUnavailable(error)) throw error
        await clock.sleep(Math.min(maxPauseMs, 50 * 2 ** attempt), lease.signal).catch(() => {})
      }
    }
  },
})

/** `work`, or `lease_lost` as soon as the lease is; the work itself goes on, fenced. */
const unlessLost = async <T>(work: Promise<T>, leaseSignal: AbortSignal): Promise<T> => {
  let onAbort = (): void => {}
  const lost = new Promise<never>((_, reject) => {
    onAbort = () => reject(leaseLost(leaseSignal.reason))
    leaseSignal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([work, lost])
  } finally {
    leaseSignal.removeEventListener('abort', onAbort)
  }
}

export const leaseLost = (cause?: unknown): MasonError =>
  new MasonError('lease_lost', 'another worker has this run', { cause })
