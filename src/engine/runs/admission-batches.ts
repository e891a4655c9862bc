import type { NamedFiles } from '../../files/uploads.ts'
import type { Database } from '../../infra/database/database.ts'
import { createStatementBatches } from '../../infra/database/statement-batches.ts'
import type { JobData } from '../../state/run-request.ts'
import {
  type Admission,
  type AdmissionRequest,
  admitCandidate,
  admitRuns,
  findEarlierAdmission,
  type IdempotencyKey,
  toAdmissionRequest,
} from './admission.ts'

/**
 * Admits the runs of one business. Those that arrive during a commit share the next one: a flood costs one flush for many
 * runs, and a single run does not wait.
 */
export const createAdmissions = (database: Database, businessId: string) => {
  const admitAlone = (candidate: AdmissionRequest) => admitCandidate(database, businessId, candidate)
  const admitTogether = createStatementBatches<AdmissionRequest, Admission>({
    maxSize: 64,
    // two, so that one is prepared and read while the other is being flushed
    maxInFlight: 2,
    // those of a session come one after the other, also where a refused batch is written one by one; an id and a key are inserted once
    listNames: ({ row }) => [
      `session ${row.session_id}`,
      `run ${row.run_id}`,
      ...(row.key === null ? [] : [`key ${row.key}`]),
    ],
    write: (candidates) => admitRuns(database, businessId, candidates),
    writeAlone: admitAlone,
  })

  return {
    /**
     * Once it resolves the run is durable, whatever happens to the queue. The same key and body return the same run, also
     * when `beforeNew` would refuse a new one, which finds the files that the request names. Throws what `beforeNew` throws,
     * `idempotency_conflict`, `session_of_another_user` and `too_many_requests`.
     */
    async admit(
      request: JobData,
      key: IdempotencyKey | undefined,
      beforeNew: () => Promise<NamedFiles | undefined>,
      tokenId: string | null = null,
    ): Promise<Admission> {
      let named: NamedFiles | undefined
      try {
        named = await beforeNew()
      } catch (refusal) {
        const earlier = await findEarlierAdmission(database, businessId, request, key)
        if (earlier) return earlier
        throw refusal
      }
      const candidate = await toAdmissionRequest(request, key, named, tokenId)
      // files are written first, and no other run should wait for that
      return candidate.uploads.length > 0 ? admitAlone(candidate) : admitTogether(candidate)
    },
  }
}
