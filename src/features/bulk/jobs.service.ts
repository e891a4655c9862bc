import { businessRunsRef, configRef, databaseRef, logRef, workerDatabaseRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { bulkRef } from './bulk.ref.ts'
import { createBulkJobs } from './bulk-jobs.ts'
import { actInBulk, createBulkWork } from './bulk-work.ts'

export default defineService({
  provides: bulkRef,
  needs: {
    database: databaseRef,
    workerDatabase: workerDatabaseRef,
    config: configRef,
    log: logRef,
    runsOf: businessRunsRef,
  },
  start: ({ database, workerDatabase, config, log, runsOf }) => ({
    of: (businessId) => createBulkJobs(database, businessId),
    work: createBulkWork({
      database: workerDatabase,
      log,
      leaseMs: config.leaseMs,
      act: (job, runId) => actInBulk(runsOf(job.tenant), job, runId),
    }),
  }),
})
