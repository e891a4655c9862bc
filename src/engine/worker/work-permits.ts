import type { VisitPermit } from '../../graph/live-run.ts'
import { createFairPermits } from '../../infra/lib/permits.ts'
import type { ThreadShares } from './thread-shares.ts'

/** Claims share the permits as one business more. */
const claims = ''
/** A visit that has worked for so long is taken to wait for something. */
const maxWorkMs = 100

/** Permits to work, which businesses share; of visits, as many as `shares` allows. A visit holds one only while it works. */
export const createWorkPermits = (count: number, shares: Pick<ThreadShares, 'worked' | 'limitVisits'>) => {
  const limitOf = (business: string): number =>
    business === claims ? count : shares.limitVisits(business, count, (other) => permits.isWaiting(other))
  const permits = createFairPermits(count, Number.POSITIVE_INFINITY, limitOf)

  return {
    get held(): number {
      return permits.held
    },
    /** The businesses of which as many visits wait as may work: until some do, they get no further run. */
    waiting: (): string[] => permits.waiting(count),
    /** A permit to claim a run, and until it begins. None waits long. */
    claim: (): Promise<AsyncDisposable> => permits.acquire(claims),
    /** Waits until a visit may work. */
    async beginVisit(business: string, signal: AbortSignal): Promise<VisitPermit> {
      let held: AsyncDisposable | null = null
      let taking: Promise<void> | null = null
      let timer: NodeJS.Timeout | undefined
      const leave = (): void => {
        clearTimeout(timer)
        void held?.[Symbol.asyncDispose]()
        held = null
      }
      const acquire = async (): Promise<void> => {
        shares.worked(business)
        held = await permits.acquire(business, signal)
        timer = setTimeout(leave, maxWorkMs).unref()
      }
      /** A visit that is stopped may still end its work. */
      const retake = async (): Promise<void> => {
        if (held) return
        taking ??= acquire()
          .catch(() => {})
          .finally(() => {
            taking = null
          })
        await taking
      }
      await acquire()
      return {
        async without(wait) {
          leave()
          try {
            return await wait()
          } finally {
            await retake()
          }
        },
        async renew() {
          await retake()
          clearTimeout(timer)
        },
        end: () => void (taking ? taking.then(leave) : leave()),
      }
    },
  }
}
