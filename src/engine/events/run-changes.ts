import type { RunChange } from '../../state/run-view.ts'
import type { Feed } from './feed.ts'
import type { Poller } from './polling.ts'

const pollMs = 1000
/** After a hint whose transaction is not below all open ones yet. */
const soonMs = 100
const soonTries = 10

/**
 * The runs of a business whose status changes, after a position (null: from now on): first `ready`, then each change at least once, in
 * the order of their transactions. The last of some that are read together has the position to resume at.
 */
export async function* streamRunChanges(
  poller: Pick<Poller, 'startChanges' | 'readChanges'>,
  feed: Pick<Feed, 'followBusiness'>,
  businessId: string,
  after: number | null,
  signal: AbortSignal,
): AsyncGenerator<RunChange> {
  let wake: (hinted: boolean) => void = () => {}
  let isHinted = false
  const stop = feed.followBusiness(businessId, () => {
    isHinted = true
    wake(true)
  })
  const onAbort = (): void => wake(false)
  signal.addEventListener('abort', onAbort, { once: true })
  const pause = (ms: number): Promise<boolean> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms)
      wake = (hinted) => {
        clearTimeout(timer)
        resolve(hinted)
      }
      if (isHinted || signal.aborted) wake(isHinted)
    })
  try {
    let { position, reset } = await poller.startChanges(after)
    yield { event: 'ready', id: position, data: { reset } }
    for (let soon = 0; !signal.aborted; ) {
      const rows = await poller.readChanges(position)
      for (const [index, { position: at, ...row }] of rows.entries()) {
        const data = { ...row, at: row.at.toISOString() }
        yield index === rows.length - 1 ? { event: 'run', id: at, data } : { event: 'run', data }
        position = at
      }
      if (rows.length > 0) continue
      soon = (await pause(soon > 0 ? soonMs : pollMs)) ? soonTries : Math.max(0, soon - 1)
      isHinted = false
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    stop()
  }
}
