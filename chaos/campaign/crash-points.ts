import type { Database } from '../../src/infra/database/database.ts'
import { watchWrites } from './watch-writes.ts'

/** Every durable write of the runtime, by a trait of its statement that no other statement has. */
export const writes = {
  admit: /INSERT INTO idempotency/,
  reject: /INSERT INTO rejected_jobs/,
  claim: /UPDATE businesses b SET claims/,
  append: /UPDATE runs r SET next_seq = next_seq \+ 1(?!.*INSERT INTO run_results).*INSERT INTO actions/s,
  finish: /UPDATE runs r SET next_seq = next_seq \+ 1.*INSERT INTO run_results.*INSERT INTO actions/s,
  'keep-blob': /INSERT INTO blobs/,
  'effect-intent': /INSERT INTO effects/,
  'effect-sent': /UPDATE effects e SET status = 'sent'/,
  'effect-unknown': /UPDATE effects e SET status = \$5, error/,
  park: /INSERT INTO input_requests/,
  answer: /UPDATE input_requests i SET answered_at = clock_timestamp\(\), answer = \$4/,
  requeue: /run_at = GREATEST/,
  'hand-back': /stalls = GREATEST\(stalls - 1, 0\).*lease_until = NULL/,
  'give-up': /UPDATE runs SET status = 'queued', lease_owner = NULL, lease_until = NULL, next_seq/,
  cancel: /cancel_requested_at = COALESCE/,
  settle: /UPDATE runs SET epoch = epoch \+ 1, status = \$3/,
  heartbeat: /UPDATE runs r SET lease_until = clock_timestamp\(\)/,
  presence: /INSERT INTO workers/,
  farewell: /DELETE FROM workers WHERE worker_id/,
  'silent-workers': /DELETE FROM workers WHERE seen_at/,
  'outbox-delete': /^(?!.*UPDATE businesses).*DELETE FROM outbox/s,
  'expire-question': /answer = '\{"kind":"expired"\}'/,
  'old-keys': /DELETE FROM idempotency/,
} as const

export type Write = keyof typeof writes

/** Kills the process at `side-write:n`, the nth time that side of a write is reached, e.g. `before-append:3`. */
export const createCrash = (at: string, tell: (at: string) => void): ((database: Database) => Database) => {
  const [, side, write = '', nth = '1'] = /^(before|after|committed)-([a-z-]+)(?::(\d+))?$/.exec(at) ?? []
  const trait = writes[write as Write]
  if (!trait)
    throw new Error(
      `CRASH_AT=${at} names no point; write before-, after- or committed- and one of: ${Object.keys(writes).join(', ')}`,
    )
  let left = Number(nth)
  return watchWrites(trait, (reached) => {
    if (reached !== side || --left !== 0) return
    tell(at)
    process.kill(process.pid, 'SIGKILL')
  })
}
