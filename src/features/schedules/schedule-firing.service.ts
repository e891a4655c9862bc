import { logRef, runSubmissionRef, workerDatabaseRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { type FiringCounts, fireSchedules } from './schedule-firing.ts'
import { scheduleFiringRef } from './schedules.ref.ts'

export default defineService({
  provides: scheduleFiringRef,
  needs: { database: workerDatabaseRef, log: logRef, runs: runSubmissionRef },
  start({ database, log, runs }) {
    let counts: FiringCounts | null = null
    return {
      counts: () => counts,
      async fireDue() {
        counts ??= { fired: 0, failed: 0 }
        const { fired, failed } = await fireSchedules(
          database,
          (businessId, request, key) =>
            runs.submit(businessId, request, key, { by: 'queue', beganAtMs: Date.now() }),
          log,
        )
        counts = { fired: counts.fired + fired, failed: counts.failed + failed }
      },
    }
  },
})
