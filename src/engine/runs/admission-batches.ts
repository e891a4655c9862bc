import type { Database } from '../../infra/database/database.ts'
import { isDatabaseUnavailable } from '../../infra/database/database-errors.ts'
import { MasonError } from '../../state/errors.ts'
import type { RunRequest } from '../../state/run-request.ts'
import {
  type Admission,
  type AdmissionRequest,
  admitRun,
  admitRuns,
  findEarlierAdmission,
  type IdempotencyKey,
  toAdmissionRequest,
} from './admission.ts'

const maxBatchSize = 64
/** Two, so that one is prepared and read while the other is being flushed. */
const maxCommits = 2

type WaitingAdmission = {
  candidate: AdmissionRequest
  resolve(admission: Admission): void
  reject(error: unknown): void
  /** In a commit of its own. */
  admitAlone(): Promise<Admission>
}

/**
 * Admits the runs of one business. Those that arrive during a commit share the next one: a flood costs one flush for many
 * runs, and a single run does not wait.
 */
export const createAdmissions = (database: Database, businessId: string) => {
  let waiting: WaitingAdmission[] = []
  let commits = 0
  /** Sessions and keys of the commits in flight. */
  const busyNames = new Set<string>()

  const commitNext = async (): Promise<void> => {
    if (commits >= maxCommits) return
    const { batch, rest } = nextBatch(waiting, busyNames)
    if (batch.length === 0) return
    waiting = rest
    const names = batch.flatMap(listConflictNames)
    for (const name of names) busyNames.add(name)
    commits++
    await commitBatch(database, businessId, batch)
    commits--
    for (const name of names) busyNames.delete(name)
    void commitNext()
  }

  return {
    /**
     * Once it resolves the run is durable, whatever happens to the queue. The same key and body return the same run, also
     * when `beforeNew` would refuse a new one. Throws what `beforeNew` throws, `idempotency_conflict`,
     * `session_of_another_user` and `too_many_requests`.
     */
    async admit(
      request: RunRequest,
      key: IdempotencyKey | undefined,
      beforeNew: () => Promise<void>,
    ): Promise<Admission> {
      const candidate = toAdmissionRequest(request, key)
      try {
        await beforeNew()
      } catch (refusal) {
        const earlier = await findEarlierAdmission(database, businessId, candidate)
        if (earlier) return earlier
        throw refusal
      }
      const admitAlone = () => admitRun(database, businessId, request, key)
      // files are written first, and no other run should wait for that
      if (candidate.uploads.length > 0) return admitAlone()
      return new Promise((resolve, reject) => {
        waiting.push({ candidate, resolve, reject, admitAlone })
        // after all that arrived in this turn of the event loop
        setImmediate(() => void commitNext())
      })
    },
  }
}

/** What one commit may contain once: the row of a session changes once in a statement, and a key is inserted once. */
const listConflictNames = ({ candidate: { row } }: WaitingAdmission): string[] => [
  `session ${row.session_id}`,
  ...(row.key === null ? [] : [`key ${row.key}`]),
]

/** The oldest that can share a commit. Turns of a session follow the order of arrival, so what waits keeps its position. */
const nextBatch = (
  waiting: readonly WaitingAdmission[],
  busy: ReadonlySet<string>,
): { batch: WaitingAdmission[]; rest: WaitingAdmission[] } => {
  const batch: WaitingAdmission[] = []
  const rest: WaitingAdmission[] = []
  const taken = new Set(busy)
  for (const next of waiting) {
    const names = listConflictNames(next)
    const fits = batch.length < maxBatchSize && !names.some((name) => taken.has(name))
    ;(fits ? batch : rest).push(next)
    for (const name of names) taken.add(name)
  }
  return { batch, rest }
}

/** Settles each on its own; an error of one costs the others no more than a commit each. Never rejects. */
const commitBatch = async (
  database: Database,
  businessId: string,
  batch: readonly WaitingAdmission[],
): Promise<void> => {
  try {
    const candidates = batch.map(({ candidate }) => candidate)
    const admissions = await admitRuns(database, businessId, candidates)
    for (const [at, { resolve, reject }] of batch.entries()) {
      const admission = admissions[at]
      if (admission && !(admission instanceof MasonError)) resolve(admission)
      else reject(admission)
    }
  } catch (error) {
    // whether they were committed is unknown, so none is retried
    if (isDatabaseUnavailable(error)) for (const { reject } of batch) reject(error)
    else await Promise.all(batch.map(({ admitAlone, resolve, reject }) => admitAlone().then(resolve, reject)))
  }
}
