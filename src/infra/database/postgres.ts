import pg from 'pg'
import type { Sql } from '../../state/ports.ts'
import { businessScope, type Database } from './database.ts'
import { databaseFault } from './faults.ts'
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
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.max ?? 10,
    connectionTimeoutMillis: 5000,
    // a server that vanished without a word is given up after this
    query_timeout: 35_000,
    keepAlive: true,
    types,
    options:
      '-c search_path=mason,public -c role=mason_worker -c statement_timeout=30000 -c idle_in_transaction_session_timeout=30000',
  })
  pool.on('error', onError)
  // a checked-out client that loses its backend emits too; without a listener the process would exit
  pool.on('connect', (client) => void client.on('error', onError))
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
  const within = async <T>(begin: string, work: (sql: Sql) => Promise<T>): Promise<T> => {
    const client = await pool.connect().catch((error: unknown) => {
      throw databaseFault(error)
    })
    let broken: Error | undefined
    try {
      await client.query(begin)
      const result = await work(sqlOf(client))
      await client.query('COMMIT')
      return result
    } catch (error) {
      await client.query('ROLLBACK').catch((rollback: Error) => {
        broken = rollback
      })
      throw databaseFault(error)
    } finally {
      client.release(broken)
    }
  }
  return {
    kind: 'postgres',
    ...sqlOf(pool),
    transaction: (work) => within('BEGIN', work),
    asBusiness: (businessId, work) => within(`BEGIN; ${businessScope(businessId)}`, work),
    close: () => pool.end(),
  }
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
