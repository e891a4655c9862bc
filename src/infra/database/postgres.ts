import pg from 'pg'
import { MasonError, toSettingsError } from '../../state/errors.ts'
import type { Sql, SqlValues } from '../../state/ports/sql.ts'
import { type Database, runStatements, type ScopeOptions, toBusinessScopeSql } from './database.ts'
import {
  describeUnreachable,
  isDatabaseUnavailable,
  toDatabaseError,
  translateErrors,
} from './database-errors.ts'
import type { ProcessLogin } from './login-roles.ts'
import type { Migration, MigrationTarget } from './migration.ts'
import { applyMigrations, insufficientPrivilege } from './migrations.ts'
import { createBinding } from './named-parameters.ts'
import { ensureLogins } from './process-logins.ts'

const int8 = 20
const typeParsers = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
} as pg.CustomTypesConfig

/** Every statement text is fixed, so each gets a name and is planned once per connection. */
const createStatementNames = (): ((text: string) => string) => {
  const names = new Map<string, string>()
  return (text) => {
    const name = names.get(text) ?? `mason_${names.size}`
    names.set(text, name)
    return name
  }
}

/** The database roles of a login: `plain` across businesses, `business` for one of them. */
export type LoginRoles = { plain: string; business: string }

/** The roles of a login that is all processes: that of DATABASE_URL. */
const sharedRoles: LoginRoles = { plain: 'mason_worker', business: 'mason_api' }

/** Opens two pools of `max` connections each, at their first statement. A statement may take 30 s, its response 35 s. */
export const openPostgresDatabase = (options: {
  url: string
  max?: number
  roles?: LoginRoles | undefined
  onError?: (error: Error) => void
}): Database => {
  const { roles = sharedRoles, onError = () => {} } = options
  const openPool = (role: string): pg.Pool => {
    const pool = new pg.Pool({
      connectionString: options.url,
      max: options.max ?? 10,
      connectionTimeoutMillis: 5000,
      // a server that went silent is given up after this
      query_timeout: 35_000,
      keepAlive: true,
      types: typeParsers,
      // statements may follow each other without waiting for results
      pipeline: true,
      options: `-c search_path=mason,public -c role=${role} -c statement_timeout=30000 -c idle_in_transaction_session_timeout=30000 -c jit=off`,
    })
    pool.on('error', onError)
    // a checked-out client that loses its backend emits too; without a listener the process would exit
    pool.on('connect', (client) => void client.on('error', onError))
    return pool
  }
  const pool = openPool(roles.plain)
  // its connections only ever have this role, and see no rows until a business is set
  const businessPool = openPool(roles.business)
  const toStatementName = createStatementNames()
  const bind = createBinding()
  const toSql = (client: pg.Pool | pg.PoolClient): Pick<Database, 'query'> => ({
    async query<Row>(text: string, values?: SqlValues, { timeoutMs }: { timeoutMs?: number } = {}) {
      const statement: pg.QueryConfig & { query_timeout?: number } = bind(text, values)
      statement.name = toStatementName(statement.text)
      if (timeoutMs) statement.query_timeout = timeoutMs
      const { rows } = await translateErrors(client.query(statement))
      return { rows: rows as Row[] }
    },
  })
  const runScoped = async <T>(
    from: pg.Pool,
    begin: string,
    work: (sql: Sql) => Promise<T>,
    scope?: ScopeOptions,
  ): Promise<T> => {
    const client = await translateErrors(from.connect())
    return runAndRelease(client, async () => {
      const { stream } = client.connection
      stream.cork()
      // not awaited: if it failed, the following statements would fail too
      const beginning = client.query(begin)
      const working = runStatements(toSql(client), work, scope)
      const committed = scope?.pipelined ? client.query('COMMIT') : undefined
      stream.uncork()
      const [result] = await awaitAll([working, beginning, committed])
      if (!committed) await client.query('COMMIT')
      return result
    })
  }
  return {
    kind: 'postgres',
    ...toSql(pool),
    transaction: (work, scope) => runScoped(pool, 'BEGIN', work, scope),
    asBusiness: (businessId, work, scope) =>
      runScoped(businessPool, `BEGIN; ${toBusinessScopeSql(businessId, roles.business, scope)}`, work, scope),
    close: async () => void (await Promise.all([pool.end(), businessPool.end()])),
  }
}

/**
 * Releases the connection, after an error with a rollback. Where the server failed, the connection is closed, which rolls
 * back too: it may hang, or lead to a former primary that would answer every later statement with the same error.
 */
const runAndRelease = async <T>(client: pg.PoolClient, work: () => Promise<T>): Promise<T> => {
  let broken: Error | undefined
  try {
    return await work()
  } catch (error) {
    const databaseError = toDatabaseError(error)
    if (isDatabaseUnavailable(databaseError)) broken = databaseError
    else
      await client.query('ROLLBACK').catch((rollback: Error) => {
        broken = rollback
      })
    throw databaseError
  } finally {
    client.release(broken)
  }
}

/** Like `Promise.all`, but waits for all promises before it throws the first error. */
const awaitAll = async <T extends readonly unknown[]>(
  work: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> => {
  await Promise.allSettled(work)
  return Promise.all(work)
}

/**
 * Applies those of `migrations` (absent: of this package) that are missing and returns their names. Then creates `logins` and gives
 * the tables to their owner role. An advisory lock admits one process at a time.
 */
export const migratePostgres = async (
  url: string,
  logins: readonly ProcessLogin[] = [],
  migrations?: readonly Migration[],
): Promise<string[]> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 })
  client.on('error', () => {})
  await client.connect().catch((error: unknown) => {
    const { problem, remedy } = describeUnreachable(url, error)
    throw new MasonError('database_unavailable', problem, { remedy, cause: error })
  })
  try {
    await client.query("SELECT pg_advisory_lock(hashtext('mason.migrate'))")
    const target: MigrationTarget = {
      run: async (text) => void (await client.query(text)),
      query: async (text, values) => (await client.query(text, values as unknown[])).rows,
    }
    const applied = await applyMigrations(target, migrations).catch((error: unknown) => {
      const { code, message } = error as { code?: unknown; message: string }
      if (code !== insufficientPrivilege) throw error
      throw toSettingsError(
        `${client.user} may not create the tables: ${message}`,
        `let it own the database: ALTER DATABASE ${client.database} OWNER TO ${client.user}`,
        error,
      )
    })
    if (logins.length > 0) await ensureLogins(target, logins)
    return applied
  } finally {
    await client.end()
  }
}
