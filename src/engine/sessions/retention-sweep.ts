import { createFilesSweep } from '../../files/files-sweep.ts'
import type { Database } from '../../infra/database/database.ts'
import { sweepUnreadAnswers } from '../../models/call/unread-answers.ts'

/** How many days unused data is retained. */
export type Retention = { blobsDays: number; rejectedJobsDays: number }

/** Deletes what a feature has of before so many days, a bounded batch at each call. */
export type Sweep = (database: Database, days: number) => Promise<unknown>

/**
 * Deletes expired data, a bounded batch at each pass: unreadable model responses, uploaded files that no
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
    await sweepUnreadAnswers(database, retention.rejectedJobsDays)
    await database.query(changesStatement)
    await sweepFiles()
    const swept = await Promise.allSettled(sweeps.map((sweep) => sweep(database, retention.rejectedJobsDays)))
    const failed = swept.find((one) => one.status === 'rejected')
    if (failed) throw failed.reason
  }
}

/** Streams of a business resume for a day. */
const changesStatement = `
  DELETE FROM run_changes WHERE ctid = ANY(ARRAY(SELECT ctid FROM run_changes
    WHERE at < clock_timestamp() - interval '1 day' ORDER BY at LIMIT 10000))`
