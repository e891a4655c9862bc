import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../infra/config/config.ts'
import type { Database } from '../../infra/database/database.ts'
import { describeUnreachable } from '../../infra/database/database-errors.ts'
import {
  checkVectorVersion,
  enableVectorRemedy,
  readMigrations,
  type VectorFacts,
  vectorColumns,
} from '../../infra/database/migrations.ts'
import { openDatabase } from '../../infra/database/open-database.ts'
import { silentLog } from '../../infra/lib/silent-log.ts'
import { stripCredentials } from '../../infra/lib/strip-credentials.ts'
import { isMasonError } from '../../state/errors.ts'
import { type DoctorCheck, type DoctorFinding, fail, pass } from './check.ts'

/** Whether the database is reachable and migrated. */
export const checkDatabase: DoctorCheck = async (config, signal) => {
  const { database } = config
  if (database.kind === 'postgres') return checkPostgres(database.url, signal)
  return [database.kind === 'embedded' ? await checkEmbedded(config, database.dataDir) : pass('in memory')]
}

/** Whether there is a database to read; an embedded one is created at the first start. */
export const hasDatabase = ({ database }: Config): boolean =>
  database.kind !== 'embedded' || existsSync(join(database.dataDir, 'pgdata'))

const checkEmbedded = async (config: Config, dataDir: string): Promise<DoctorFinding> => {
  if (!hasDatabase(config)) return pass(`embedded; the first start creates it in ${dataDir}`)
  try {
    await (await openDatabase(config, silentLog)).close()
    return pass(`embedded in ${dataDir}, opens and is up to date`)
  } catch (error) {
    if (isMasonError(error, 'data_dir_locked')) return pass(`embedded; ${error.message}`)
    return fail(
      `embedded in ${dataDir}, does not open: ${(error as Error).message}`,
      `restore ${dataDir} from a backup, or move it away to start with a new database`,
    )
  }
}

const connectTimeoutMs = 3_000

type DatabaseFacts = VectorFacts & {
  version: string
  me: string
  has_migrations: boolean
  missing_roles: string[]
}

const factsQuery = `SELECT current_setting('server_version') AS version, current_user AS me,
  ${vectorColumns},
  to_regclass('mason.migrations') IS NOT NULL AS has_migrations,
  ARRAY(SELECT role FROM unnest(ARRAY['mason_api', 'mason_worker']) AS role
    WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role AND pg_has_role(current_user, oid, 'MEMBER'))) AS missing_roles`

const checkPostgres = async (url: string, signal: AbortSignal): Promise<DoctorFinding[]> => {
  const { default: pg } = await import('pg')
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: connectTimeoutMs,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    signal.throwIfAborted()
    const { rows } = await client.query<DatabaseFacts>(factsQuery)
    const facts = rows[0] as DatabaseFacts
    const applied = facts.has_migrations
      ? (await client.query<{ name: string }>('SELECT name FROM mason.migrations')).rows.map(
          ({ name }) => name,
        )
      : []
    return [
      pass(`PostgreSQL ${facts.version.split(' ')[0]} at ${stripCredentials(url)} as ${facts.me}`),
      toVectorFinding(facts),
      ...(await toMigrationFindings(applied, facts)),
    ]
  } catch (error) {
    const { problem, remedy } = describeUnreachable(url, error)
    return [fail(problem, remedy)]
  } finally {
    await client.end().catch(() => {})
  }
}

const toVectorFinding = (facts: VectorFacts): DoctorFinding => {
  const problem = checkVectorVersion(facts)
  if (problem) return { ok: false, ...problem }
  if (facts.vector !== null) return pass(`pgvector ${facts.vector}`)
  return fail(
    `pgvector ${facts.vector_available} is installed but not enabled in this database`,
    enableVectorRemedy,
  )
}

const toMigrationFindings = async (
  applied: readonly string[],
  { missing_roles, me }: DatabaseFacts,
): Promise<DoctorFinding[]> => {
  const names = (await readMigrations()).map(({ name }) => name)
  const missing = names.filter((name) => !applied.includes(name))
  if (missing.length > 0)
    return [fail(`migrations are missing: ${missing.join(', ')}`, 'run `mason migrate`')]
  const migrated = pass(`${names.length} of ${names.length} migrations applied`)
  if (missing_roles.length === 0) return [migrated, pass('roles mason_api and mason_worker')]
  return [
    migrated,
    fail(
      `${me} is not a member of ${missing_roles.join(' and ')}`,
      `run as a superuser: GRANT ${missing_roles.join(', ')} TO ${me}`,
    ),
  ]
}

/** Calls `read` with the database, without migrating a server; null where another process has locked its folder. */
export const withUnmigratedDatabase = async <Result>(
  config: Config,
  read: (database: Database) => Promise<Result>,
): Promise<Result | null> => {
  const database = await openDatabase(config, silentLog, { migrate: false }).catch((error: unknown) => {
    if (isMasonError(error, 'data_dir_locked')) return null
    throw error
  })
  try {
    return database && (await read(database))
  } finally {
    await database?.close()
  }
}
