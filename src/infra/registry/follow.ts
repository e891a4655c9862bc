import type { Clock, Log } from '../../state/ports.ts'
import type { Registry, RegistryView } from '../models/ports.ts'
import type { Hints } from '../queue/hints.ts'
import { repeatWork } from '../repeat-work.ts'
import { readRows, readVersion } from './rows.ts'
import { type SeedOptions, seedRegistry } from './seed.ts'
import { createViewMaker, type ViewOptions } from './view.ts'

export type RegistryOptions = SeedOptions &
  ViewOptions & { hints: Hints; clock: Clock; log: Log; lookEveryMs?: number }

const channel = 'registry'

/**
 * Seeds the registry and follows it: at once by a hint, and by a look at its version every second, so that a lost hint
 * costs a second and never a change. `refresh` also tells the other processes. A load that fails leaves the view as it is;
 * the next look tries again.
 */
export const openRegistry = async (options: RegistryOptions): Promise<Registry> => {
  const { database, hints, clock, log, lookEveryMs = 1000 } = options
  const makeView = createViewMaker(options)
  let view = makeView(await seedRegistry(options))
  let isClosed = false

  const load = async (): Promise<void> => {
    try {
      view = makeView(await readRows(database))
    } catch (error) {
      if (!isClosed)
        log.warn(
          { error: String(error), version: view.version },
          'the model registry could not be read; what was read last stays in use',
        )
    }
  }

  // one load at a time; whoever comes while one is under way shares the next
  let loading: Promise<void> | null = null
  let next: Promise<void> | null = null
  const reload = (): Promise<void> => {
    if (loading) {
      next ??= loading.then(() => {
        next = null
        return reload()
      })
      return next
    }
    loading = load().finally(() => {
      loading = null
    })
    return loading
  }

  const look = async (): Promise<void> => {
    const version = await readVersion(database)
    // another one, not only a later one: a database may have been put back from a backup
    if (version !== view.version && !isClosed) await reload()
  }
  const looking = repeatWork(look, lookEveryMs, clock, log, 'looking for changes of the model registry')
  // not waited for: the looks see what comes before it hears
  const deaf = hints.subscribe(channel, () => {
    look().catch(() => {})
  })

  return {
    get view(): RegistryView {
      return view
    },
    async refresh() {
      hints.publish(channel, '')
      await reload()
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      await Promise.all([looking.stop(), deaf.then((leave) => leave())])
      await loading
    },
  }
}
