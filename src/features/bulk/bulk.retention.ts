import { defineRetention } from '../definitions.ts'

/** Lists of runs that are over, and those that were not confirmed within an hour. */
const deleteStatement = `
  DELETE FROM bulk_jobs WHERE (tenant, job_id) IN (SELECT tenant, job_id FROM bulk_jobs
    WHERE created_at < clock_timestamp() - CASE WHEN status = 'unconfirmed' THEN interval '1 hour' ELSE $1::int * interval '1 day' END
      AND status NOT IN ('queued', 'running') ORDER BY created_at LIMIT 10)`

export default defineRetention({ sweep: (database, days) => database.query(deleteStatement, [days]) })
