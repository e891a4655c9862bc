import { EventEmitter } from 'node:events'
import type { PGlite, Transaction } from '@electric-sql/pglite'
import {
  createPostgresBackend,
  DEFAULT_SCHEMA,
  type PgPool,
  type PgPoolClient,
  type PgQueryResult,
  type QueueBaseOptions,
  runMigrations,
} from 'bullmq'
import { settlesWithin } from '../lib/timeouts.ts'
import type { QueueDriver } from './queue-driver.ts'

/** One process holds the lock of the data folder, so a job that is active at start was left by a dead process. */
const requeueLostJobs = `
  UPDATE job SET state = 'waiting', lock_token = NULL, locked_until_ms = NULL, stalled_marked = false
  WHERE state = 'active'`

/**
 * Wake-ups by BullMQ on the app's own PGlite, in the schema `bullmq`. Only one driver per instance, because opening requeues active
 * jobs. The app may use `query`, `exec` and `transaction` of the instance only: its `pg` adapter and `execProtocol`
 * bypass the mutex, so their statements could land inside open transactions.
 */
export async function openEmbeddedQueue(session: PgliteSession): Promise<QueueDriver> {
  await migrateBullmq(session, requeueLostJobs)
  const pool = new PglitePool(session)
  return {
    backend: (name, options, flags) =>
      createPostgresBackend(name, { ...(options as QueueBaseOptions<PglitePool>), connection: pool }, flags),
    problem: () => (session.closed ? 'the embedded database is closed' : null),
    roundTrip: () => session.query('SELECT 1'),
    isOurs: async () => true,
    close: async () => void (await settlesWithin(pool.end(), 500)),
  }
}

/** The used part of PGlite; all of it goes through PGlite's transaction mutex, as the app's queries do. */
export type PgliteSession = Pick<PGlite, 'transaction' | 'listen' | 'closed' | 'query'>

const int8 = 20
const jsonb = 3802
/** Set here, because the owner of the instance may have set other parsers. */
const parsers = { [int8]: Number, [jsonb]: (text: string) => JSON.parse(text) as unknown }

const stripComments = (sql: string) => sql.replace(/--.*$/gm, '').trim()

/** Not `runExclusive`, which guards single statements and lets them into another caller's open transaction. */
async function queryInSchema<Row>(
  session: PgliteSession,
  text: string,
  params: readonly unknown[],
): Promise<PgQueryResult<Row>> {
  const result = await session.transaction(async (transaction) => {
    // Local, so that the app's queries on the same session never see it.
    await transaction.exec(`SET LOCAL search_path TO ${DEFAULT_SCHEMA}`)
    return transaction.query<Row>(text, [...params], { parsers })
  })
  return { rows: result.rows, rowCount: result.affectedRows ?? result.rows.length }
}

/** A checked-out client, which has its own notifications but no session of its own. */
class PglitePoolClient extends EventEmitter implements PgPoolClient {
  readonly #pool: PglitePool
  readonly #stops: (() => void)[] = []

  constructor(pool: PglitePool) {
    super()
    this.#pool = pool
  }

  async query<Row>(text: string, params: readonly unknown[] = []): Promise<PgQueryResult<Row>> {
    const statement = stripComments(text)
    const channel = /^LISTEN\s+(\w+)/i.exec(statement)?.[1]
    if (channel !== undefined) {
      const notify = (payload: string) => this.emit('notification', { channel, payload })
      this.#stops.push(await this.#pool.listen(channel, notify))
      return { rows: [] }
    }
    if (/^(BEGIN|START|COMMIT|ROLLBACK)\b/i.test(statement)) {
      throw new Error('a PGlite pool client cannot hold a transaction open; use PGlite.transaction')
    }
    return this.#pool.query<Row>(text, params)
  }

  release(): void {
    for (const stop of this.#stops.splice(0)) stop()
    this.removeAllListeners()
  }
}

/** A `pg.Pool` for BullMQ that runs on the one session of an in-process PGlite. */
export class PglitePool extends EventEmitter implements PgPool {
  /** There is no connection to lose, so BullMQ need not poll for lost ones. */
  readonly options = { keepAlive: true }
  readonly #session: PgliteSession
  readonly #notifications = new EventEmitter().setMaxListeners(0)
  readonly #channels = new Map<string, Promise<() => Promise<void>>>()

  constructor(session: PgliteSession) {
    super()
    this.#session = session
  }

  query<Row>(text: string, params: readonly unknown[] = []): Promise<PgQueryResult<Row>> {
    return queryInSchema<Row>(this.#session, text, params)
  }

  async connect(): Promise<PgPoolClient> {
    return new PglitePoolClient(this)
  }

  /** One LISTEN per channel for all clients. Returns the function that removes this listener. */
  async listen(channel: string, listener: (payload: string) => void): Promise<() => void> {
    let listening = this.#channels.get(channel)
    if (!listening) {
      listening = this.#session.listen(channel, (payload) => this.#notifications.emit(channel, payload))
      this.#channels.set(channel, listening)
    }
    await listening
    this.#notifications.on(channel, listener)
    return () => this.#notifications.off(channel, listener)
  }

  /** Stops listening. The PGlite instance belongs to the caller and stays open. */
  async end(): Promise<void> {
    const channels = [...this.#channels.values()]
    this.#channels.clear()
    if (!this.#session.closed) await Promise.all(channels.map(async (listening) => (await listening)()))
  }
}

/** BullMQ's migrations as one PGlite transaction; `after` runs inside it, in BullMQ's schema. */
export async function migrateBullmq(session: PgliteSession, after: string): Promise<void> {
  await session.transaction(async (transaction) => {
    await runMigrations({ query: (text, params) => runInside(transaction, text, params) }, DEFAULT_SCHEMA)
    await transaction.exec(after)
  })
}

async function runInside<Row>(
  transaction: Transaction,
  text: string,
  params?: readonly unknown[],
): Promise<PgQueryResult<Row>> {
  // PGlite.transaction issues these three itself; an error rolls back by leaving it.
  if (/^(BEGIN|COMMIT|ROLLBACK)$/.test(text)) return { rows: [] }
  if (params) return transaction.query<Row>(text, [...params])
  const results = await transaction.exec(text)
  return (results.at(-1) ?? { rows: [] }) as PgQueryResult<Row>
}
