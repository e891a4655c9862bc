import { repeatWork } from '../../infra/lib/repeat-work.ts'
import type { Hints } from '../../infra/queue/hints.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import type { Registry, RegistryView } from '../ports/model-ports.ts'
import { type RegistryRows, readRegistryRows, readRegistryVersion } from './registry-rows.ts'
import { type RegistrySeedOptions, seedRegistry } from './registry-seed.ts'
import { createRegistryViewBuilder, type RegistryViewOptions } from './registry-view.ts'

/** What the registry of a process needs. */
export type RegistryOptions = RegistrySeedOptions &
  RegistryViewOptions & { hints: Hints; clock: Clock; log: Log; pollEveryMs?: number }

const channel = 'registry'
/** Changes that are hinted in this time are read together: an admin who adds hundreds of models takes little time from the runs. */
const gatherMs = 100

/**
 * Seeds the registry and follows its changes, of which a view is made once someone looks: a tenth of a second after a hint, and by polling its version every second, so
 * that a lost hint costs one second at most. `refresh` also notifies the other processes. A load that fails leaves the view as it is;
 * the next poll retries.
 */
export const openRegistry = async (options: RegistryOptions): Promise<Registry> => {
  const { database, hints, clock, log, pollEveryMs = 1000 } = options
  const makeView = createRegistryViewBuilder(options)
  let view = makeView(await seedRegistry(options))
  /** Rows that no one has looked at since they were read. */
  let fresh: RegistryRows | null = null
  const closing = new AbortController()

  const keepLast = (error: unknown): void => {
    if (!closing.signal.aborted)
      log.warn(
        { error: String(error), version: view.version },
        'the model registry could not be read; the last view stays in use',
      )
  }
  const load = async (): Promise<void> => {
    try {
      fresh = await readRegistryRows(database)
    } catch (error) {
      keepLast(error)
    }
  }
  const readView = (): RegistryView => {
    try {
      if (fresh) view = makeView(fresh)
    } catch (error) {
      keepLast(error)
    }
    fresh = null
    return view
  }

  // one load at a time; callers until it begins share it
  let last = Promise.resolve()
  let next: Promise<void> | null = null
  const reload = (): Promise<void> => {
    next ??= last = last.then(() => {
      next = null
      return load()
    })
    return next
  }

  const poll = async (): Promise<void> => {
    const version = await readRegistryVersion(database)
    // any other version, not only a later one: the database may have been restored from a backup
    if (version !== Number((fresh ?? view).version) && !closing.signal.aborted) await reload()
  }
  const polling = repeatWork(poll, pollEveryMs, clock, log, 'polling for changes of the model registry')
  let look: Promise<void> | null = null
  // not awaited: polling sees the changes before the subscription
  const subscription = hints.subscribe(channel, () => {
    look ??= clock.sleep(gatherMs, closing.signal).then(() => {
      look = null
      return poll()
    })
    look.catch(() => {})
  })

  return {
    get view(): RegistryView {
      return readView()
    },
    async refresh() {
      hints.publish(channel, '')
      await reload()
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      await Promise.all([polling.stop(), subscription.then((unsubscribe) => unsubscribe())])
      await last
    },
  }
}
