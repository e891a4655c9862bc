import { databaseRef, runSubmissionRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { createSchedules } from './schedule-store.ts'
import { schedulesRef } from './schedules.ref.ts'

export default defineService({
  provides: schedulesRef,
  needs: { database: databaseRef, runs: runSubmissionRef },
  start: ({ database, runs }) =>
    createSchedules({
      database,
      checkRequest: runs.check,
      submit: async (businessId, request) => (await runs.submit(businessId, request)).run,
    }),
})
