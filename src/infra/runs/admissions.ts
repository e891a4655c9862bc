import { MasonError } from '../../state/errors.ts'
import type { RunRequest } from '../../state/run-request.ts'
import type { Database } from '../database/database.ts'
import { isUnavailable } from '../database/faults.ts'
import { type Admission, admit, admitAll, type Entrant, entrantOf, findEarlier, type Key } from './admit.ts'

const maxAtOnce = 64
/** Two, so that one is made ready and taken apart while the other is being flushed. */
const maxCommits = 2

type Waiting = {
  entrant: Entrant
  resolve(admission: Admission): void
  reject(error: unknown): void
  /** In a commit of its own. */
  alone(): Promise<Admission>
}

/**
 * Lets the runs of one business in. Those that arrive while others are being committed wait for the next commit and
 * share it: a flood costs one flush for many runs, and a lone run waits for nobody.
 */
export const createAdmissions = (database: Database, businessId: string) => {
  let line: Waiting[] = []
  let commits = 0
  /** Sessions and keys of the commits that are on their way. */
  const busy = new Set<string>()

  const commitNext = async (): Promise<void> => {
    if (commits >= maxCommits) return
    const { batch, rest } = nextBatch(line, busy)
    if (batch.length === 0) return
    line = rest
    const names = batch.flatMap(namesOf)
    for (const name of names) busy.add(name)
    commits++
    await commit(database, businessId, batch)
    commits--
    for (const name of names) busy.delete(name)
    void commitNext()
  }

  return {
    /**
     * Once it resolves the run is durable, whatever happens to the queue. The same key and body give the same run, also
     * when `beforeNew` would refuse a new one. Throws what that throws, `idempotency_conflict`,
     * `session_of_another_user` and `too_many_requests`.
     */
    async admit(
      request: RunRequest,
      key: Key | undefined,
      beforeNew: () => Promise<void>,
    ): Promise<Admission> {
      const entrant = entrantOf(request, key)
      try {
        await beforeNew()
      } catch (refusal) {
        const earlier = await findEarlier(database, businessId, entrant)
        if (earlier) return earlier
        throw refusal
      }
      const alone = () => admit(database, businessId, request, key)
      // files are written first, which nobody else should wait for
      if (entrant.uploads.length > 0) return alone()
      return new Promise((resolve, reject) => {
        line.push({ entrant, resolve, reject, alone })
        // when all that have arrived together are in line
        setImmediate(() => void commitNext())
      })
    },
  }
}

/** What a commit may hold once only: its session's row changes once in a statement, and its key is made once. */
const namesOf = ({ entrant: { row } }: Waiting): string[] => [
  `session ${row.session_id}`,
  ...(row.key === null ? [] : [`key ${row.key}`]),
]

/** The first in line that can share a commit. The turns of a session go by the order of arrival, so who waits keeps its place. */
const nextBatch = (
  line: readonly Waiting[],
  busy: ReadonlySet<string>,
): { batch: Waiting[]; rest: Waiting[] } => {
  const batch: Waiting[] = []
  const rest: Waiting[] = []
  const taken = new Set(busy)
  for (const waiting of line) {
    const names = namesOf(waiting)
    const fits = batch.length < maxAtOnce && !names.some((name) => taken.has(name))
    ;(fits ? batch : rest).push(waiting)
    for (const name of names) taken.add(name)
  }
  return { batch, rest }
}

/** Each gets its own answer; a fault of one of them costs the others no more than a commit each. Never rejects. */
const commit = async (database: Database, businessId: string, batch: readonly Waiting[]): Promise<void> => {
  try {
    const entrants = batch.map(({ entrant }) => entrant)
    const admissions = await admitAll(database, businessId, entrants)
    for (const [at, { resolve, reject }] of batch.entries()) {
      const admission = admissions[at]
      if (admission && !(admission instanceof MasonError)) resolve(admission)
      else reject(admission)
    }
  } catch (error) {
    // out of reach: whether they are in is not known, so none is tried again
    if (isUnavailable(error)) for (const { reject } of batch) reject(error)
    else await Promise.all(batch.map(({ alone, resolve, reject }) => alone().then(resolve, reject)))
  }
}
