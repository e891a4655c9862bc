import { allRunsRef, databaseRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { listAllRuns } from './all-runs.ts'

export default defineService({
  provides: allRunsRef,
  needs: { database: databaseRef },
  start: ({ database }) => listAllRuns.bind(null, database),
})
