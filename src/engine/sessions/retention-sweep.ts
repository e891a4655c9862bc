import { createFilesSweep } from '../../files/files-sweep.ts'
import type { Database } from '../../infra/database/database.ts'
import { sweepUnreadAnswers } from '../../models/call/unread-answers.ts'

/** How many days unused data is retained. */
export type Retention = { blobsDays: number; rejectedJobsDays: number }

/** Deletes what a feature has of before so many days, a bounded batch at each call. */
export type Sweep = (database: Database, days: number) => Promise<unknown>

/**
 * Deletes expired data, a bounded batch at each pass: rejected queue jobs, unreadable model responses, uploaded files that no
 * run names, and blobs that no session holds (of deleted sessions, of requests that were never admitted). Several processes
 * may sweep at once.
 */
export const createRetentionSweep = (
  database: Database,
  retention: Retention,
  sweeps: readonly Sweep[] = [],
): (() => Promise<void>) => {
  const sweepFiles = createFilesSweep(database, retention.blobsDays)
  return async () => {
    await database.query(rejectedStatement, [retention.rejectedJobsDays])
    await sweepUnreadAnswers(database, retention.rejectedJobsDays)
    for (const statement of [changesStatement, recoveredStatement]) await database.query(statement)
    await sweepFiles()
    const swept = await Promise.allSettled(sweeps.map((sweep) => sweep(database, retention.rejectedJobsDays)))
    const failed = swept.find((one) => one.status === 'rejected')
    if (failed) throw failed.reason
  }
}

const rejectedStatement = `
  DELETE FROM rejected_jobs WHERE rejected_id = ANY(ARRAY(SELECT rejected_id FROM rejected_jobs
    WHERE received_at < clock_timestamp() - $1::int * interval '1 day' ORDER BY received_at LIMIT 500))`

/** Streams of a business resume for a day. */
const changesStatement = `
  DELETE FROM run_changes WHERE ctid = ANY(ARRAY(SELECT ctid FROM run_changes
    WHERE at < clock_timestamp() - interval '1 day' ORDER BY at LIMIT 10000))`

/** Counts of jobs that Redis has lost since; of any other the row is deleted when it ends. */
const recoveredStatement = `DELETE FROM recovered_jobs WHERE counted_at < clock_timestamp() - interval '1 day'`
