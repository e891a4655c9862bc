import { createPostgresBackend, type QueueBaseOptions } from 'bullmq'
import { settlesWithin } from './deadline.ts'
import type { Engine } from './engine.ts'
import { migrateBullmq, PglitePool, type PgliteSession } from './pglite-pool.ts'

/** The data folder is locked by one process, so a job that is active at start was left by a dead one. */
const takeBackLostJobs = `
  UPDATE job SET state = 'waiting', lock_token = NULL, locked_until_ms = NULL, stalled_marked = false
  WHERE state = 'active'`

/** jsonb refuses NUL and lone surrogates, reorders keys and drops doubled ones: what is sent travels as text. */
type Envelope = { mason_json: string }

const isEnvelope = (data: unknown): data is Envelope =>
  typeof data === 'object' &&
  data !== null &&
  Object.keys(data).length === 1 &&
  'mason_json' in data &&
  typeof data.mason_json === 'string'

/**
 * BullMQ on the app's own PGlite, in the schema `bullmq`. One engine per instance: opening takes back jobs
 * that are active. The app must reach the instance through `query`, `exec` and `transaction` only; its
 * `pg` adapter and `execProtocol` take no part in the mutex and would land inside open transactions.
 */
export async function openEmbedded(session: PgliteSession): Promise<Engine> {
  await migrateBullmq(session, takeBackLostJobs)
  const pool = new PglitePool(session)
  return {
    backend: (name, options, flags) =>
      createPostgresBackend(name, { ...(options as QueueBaseOptions<PglitePool>), connection: pool }, flags),
    fault: () => (session.closed ? 'the embedded database is closed' : null),
    roundTrip: () => session.query('SELECT 1'),
    encode: (data): Envelope => ({ mason_json: JSON.stringify(data ?? null) }),
    decode: (data) => (isEnvelope(data) ? (JSON.parse(data.mason_json) as unknown) : data),
    close: async () => {
      await settlesWithin(pool.end(), 500)
    },
  }
}
