import { readCount } from '../../infra/database/database.ts'
import { databaseRef, rejectedJobsRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'

const countStatement = 'SELECT count(*)::int AS count FROM rejected_jobs WHERE run_id IS NULL'

export default defineService({
  provides: rejectedJobsRef,
  needs: { database: databaseRef },
  start:
    ({ database }) =>
    () =>
      readCount(database, countStatement),
})
