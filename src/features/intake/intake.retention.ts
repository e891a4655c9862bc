import { defineRetention } from '../definitions.ts'

const rejectedStatement = `
  DELETE FROM rejected_jobs WHERE rejected_id = ANY(ARRAY(SELECT rejected_id FROM rejected_jobs
    WHERE received_at < clock_timestamp() - $1::int * interval '1 day' ORDER BY received_at LIMIT 500))`

/** Counts of jobs that Redis has lost since; of any other the row is deleted when it ends. */
const recoveredStatement = `DELETE FROM recovered_jobs WHERE counted_at < clock_timestamp() - interval '1 day'`

export default defineRetention({
  async sweep(database, days) {
    await database.query(rejectedStatement, [days])
    await database.query(recoveredStatement)
  },
})
