import { EventEmitter } from 'node:events'
import type { PGlite, Transaction } from '@electric-sql/pglite'
import { DEFAULT_SCHEMA, type PgPool, type PgPoolClient, type PgQueryResult, runMigrations } from 'bullmq'

/** The part of PGlite that is used: all of it goes through PGlite's transaction mutex, as the app's queries do. */
export type PgliteSession = Pick<PGlite, 'transaction' | 'listen' | 'closed' | 'query'>

const int8 = 20
const jsonb = 3802
/** Fixed here, because the owner of the instance may have set other parsers. */
const parsers = { [int8]: Number, [jsonb]: (text: string) => JSON.parse(text) as unknown }

const withoutComments = (sql: string) => sql.replace(/--.*$/gm, '').trim()

/** `runExclusive` would not do: it guards single statements and lets them into somebody else's open transaction. */
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

/** A checked-out client: no session of its own, just its own notifications. */
class PglitePoolClient extends EventEmitter implements PgPoolClient {
  readonly #pool: PglitePool
  readonly #stops: (() => void)[] = []

  constructor(pool: PglitePool) {
    super()
    this.#pool = pool
  }

  async query<Row>(text: string, params: readonly unknown[] = []): Promise<PgQueryResult<Row>> {
    const statement = withoutComments(text)
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

/** Looks like a `pg.Pool` to BullMQ and runs on the one session of an in-process PGlite. */
export class PglitePool extends EventEmitter implements PgPool {
  /** In process there is no connection to lose, so BullMQ need not poll for lost ones. */
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

  /** One LISTEN per channel for all clients. Returns what takes this listener away. */
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
  // PGlite.transaction does these three; a failure leaves it by throwing.
  if (/^(BEGIN|COMMIT|ROLLBACK)$/.test(text)) return { rows: [] }
  if (params) return transaction.query<Row>(text, [...params])
  const results = await transaction.exec(text)
  return (results.at(-1) ?? { rows: [] }) as PgQueryResult<Row>
}
