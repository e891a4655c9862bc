import pg from 'pg'
import type { Sql } from '../../state/ports.ts'
import { businessScope, type Database, type ScopeOptions } from './database.ts'
import { databaseFault, isUnavailable } from './faults.ts'
import { migrate } from './migrate.ts'

const int8 = 20
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
} as pg.CustomTypesConfig

/** Every statement text is fixed, so each gets a name and is planned once a connection. */
const createNaming = (): ((text: string) => string) => {
  const names = new Map<string, string>()
  return (text) => {
    const name = names.get(text) ?? `mason_${names.size}`
    names.set(text, name)
    return name
  }
}

/** Applies the migrations and opens a pool. `max` connections; a statement may take 30 s, its answer 35 s. */
export const openPostgres = async (options: {
  url: string
  max?: number
  migrate?: boolean
  onError?: (error: Error) => void
}): Promise<Database> => {
  if (options.migrate !== false) await migratePostgres(options.url)
  const onError = options.onError ?? (() => {})
  const openPool = (role: string): pg.Pool => {
    const pool = new pg.Pool({
      connectionString: options.url,
      max: options.max ?? 10,
      connectionTimeoutMillis: 5000,
      // a server that vanished without a word is given up after this
      query_timeout: 35_000,
      keepAlive: true,
      types,
      // statements may follow each other without waiting for answers
      pipeline: true,
      options: `-c search_path=mason,public -c role=${role} -c statement_timeout=30000 -c idle_in_transaction_session_timeout=30000 -c jit=off`,
    })
    pool.on('error', onError)
    // a checked-out client that loses its backend emits too; without a listener the process would exit
    pool.on('connect', (client) => void client.on('error', onError))
    return pool
  }
  const pool = openPool('mason_worker')
  // its connections never are more than the role of the API, and see nothing while no business is named
  const businessPool = openPool('mason_api')
  const nameOf = createNaming()
  const sqlOf = (client: pg.Pool | pg.PoolClient): Sql => ({
    async query<Row>(text: string, values: readonly unknown[] = []) {
      try {
        const { rows } = await client.query({ name: nameOf(text), text, values: values as unknown[] })
        return { rows: rows as Row[] }
      } catch (error) {
        throw databaseFault(error)
      }
    },
  })
  const connect = (from: pg.Pool): Promise<pg.PoolClient> =>
    from.connect().catch((error: unknown) => {
      throw databaseFault(error)
    })
  const together = async <T>(
    from: pg.Pool,
    begin: string,
    work: (sql: Sql) => Promise<T>,
    { atOnce = false }: ScopeOptions = {},
  ): Promise<T> => {
    const client = await connect(from)
    return finish(client, async () => {
      const { stream } = client.connection
      stream.cork()
      // not waited for: were it to fail, what follows could do nothing
      const begun = client.query(begin)
      const sql = sqlOf(client)
      let open = true
      const working = (async () =>
        work({ query: async (text, values) => (open ? sql.query(text, values) : tooLate()) }))()
      if (atOnce) open = false
      const committed = atOnce ? client.query('COMMIT') : undefined
      stream.uncork()
      const [result] = await allOf([working, begun, committed])
      if (!committed) await client.query('COMMIT')
      return result
    })
  }
  return {
    kind: 'postgres',
    ...sqlOf(pool),
    transaction: (work, scope) => together(pool, 'BEGIN', work, scope),
    asBusiness: (businessId, work, scope) =>
      together(businessPool, `BEGIN; ${businessScope(businessId)}`, work, scope),
    close: async () => void (await Promise.all([pool.end(), businessPool.end()])),
  }
}

/**
 * Gives the connection back, after a fault with what was begun taken back. Where the fault is the server's the connection
 * is closed, which takes it back as well: it may hang, or lead to a server that is no longer the primary and would answer
 * all that follows with the same fault.
 */
const finish = async <T>(client: pg.PoolClient, work: () => Promise<T>): Promise<T> => {
  let broken: Error | undefined
  try {
    return await work()
  } catch (error) {
    const fault = databaseFault(error)
    if (isUnavailable(fault)) broken = fault
    else
      await client.query('ROLLBACK').catch((rollback: Error) => {
        broken = rollback
      })
    throw fault
  } finally {
    client.release(broken)
  }
}

/** As `Promise.all`, but it waits for all of them also when one fails, and then tells of the first. */
const allOf = async <T extends readonly unknown[]>(
  work: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> => {
  await Promise.allSettled(work)
  return Promise.all(work)
}

const tooLate = (): never => {
  throw new Error('a statement came after the first wait of work that asks everything at once')
}

/** Applies what is missing of the migrations, one process at a time. */
export const migratePostgres = async (url: string): Promise<string[]> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query("SELECT pg_advisory_lock(hashtext('mason.migrate'))")
    return await migrate({
      run: async (text) => void (await client.query(text)),
      query: async (text, values) => (await client.query(text, values as unknown[])).rows,
    })
  } finally {
    await client.end()
  }
}
