import type { Database } from '../../src/infra/database/database.ts'
import { writes } from '../campaign/crash-points.ts'
import { watchWrites } from '../campaign/watch-writes.ts'

/** One who takes part in an order: it goes on to a stop point and no further. */
export type Actor = {
  name: string
  /** The points that it has passed, such as `before-append:2`, the second time. */
  passed: readonly string[]
  /** Whether it stands at a point, or has ended. */
  readonly isStill: boolean
  readonly hasEnded: boolean
  /** Lets it go on up to this point; null: to its end. The first time it begins. */
  goTo(point: string | null): void
  /** Resolves once it is still. */
  still(): Promise<void>
  /** It comes to a point of its own, such as the send of a request. */
  reached(point: string): Promise<void> | undefined
  /** The database as it has it: each durable write is a point on each of its sides. */
  watch(database: Database): Database
}

/** `work` begins with the first `goTo`; an error of it is the actor's end, and is thrown by `still`. */
export const createActor = (name: string, work: (actor: Actor) => Promise<unknown>): Actor => {
  const passed: string[] = []
  const counts = new Map<string, number>()
  let stop: string | null = null
  let goOn: (() => void) | null = null
  let whenStill = Promise.resolve()
  let becomeStill = (): void => {}
  let error: unknown = null
  let [hasBegun, isStill, hasEnded] = [false, true, false]
  const rest = (): void => {
    isStill = true
    becomeStill()
  }
  const actor: Actor = {
    name,
    passed,
    get isStill() {
      return isStill
    },
    get hasEnded() {
      return hasEnded
    },
    goTo(point) {
      stop = point
      if (hasEnded) return
      isStill = false
      whenStill = new Promise((resolve) => {
        becomeStill = resolve
      })
      goOn?.()
      goOn = null
      if (hasBegun) return
      hasBegun = true
      void work(actor)
        .catch((thrown: unknown) => {
          error = thrown
        })
        .finally(() => {
          hasEnded = true
          rest()
        })
    },
    async still() {
      await whenStill
      if (error) throw error
    },
    reached(point) {
      const nth = (counts.get(point) ?? 0) + 1
      counts.set(point, nth)
      const at = `${point}:${nth}`
      passed.push(at)
      if (at !== stop) return undefined
      stop = null
      const held = new Promise<void>((resolve) => {
        goOn = resolve
      })
      rest()
      return held
    },
    watch: (database) =>
      Object.entries(writes).reduce(
        (watched, [write, trait]) =>
          watchWrites(trait, (side, mayWait) => (mayWait ? actor.reached(`${side}-${write}`) : undefined))(
            watched,
          ),
        database,
      ),
  }
  return actor
}
