import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config, ServerDatabase } from '../../../infra/config/config.ts'
import type { Database } from '../../../infra/database/database.ts'
import { describeUnreachable } from '../../../infra/database/database-errors.ts'
import { listLogins, sharesLogin, superuserWarning } from '../../../infra/database/login-roles.ts'
import type { AppliedMigration } from '../../../infra/database/migration.ts'
import {
  checkVectorVersion,
  enableVectorRemedy,
  findMigrationGap,
  findRemovedFeatures,
  type VectorFacts,
  vectorColumns,
} from '../../../infra/database/migrations.ts'
import { openDatabase } from '../../../infra/database/open-database.ts'
import { silentLog } from '../../../infra/lib/silent-log.ts'
import { stripCredentials } from '../../../infra/lib/strip-credentials.ts'
import { isMasonError } from '../../../state/errors.ts'
import { type DoctorCheck, type DoctorFinding, fail, type LoadedFeatures, pass } from './check.ts'

/** Whether the database is reachable and migrated. */
export const checkDatabase: DoctorCheck = async (config, signal, { migrations }) => {
  const { database } = config
  if (database.kind === 'postgres')
    return (
      await Promise.all(listDatabaseLogins(database).map((login) => checkPostgres(login, signal, migrations)))
    ).flat()
  return database.kind === 'embedded'
    ? checkEmbedded(config, database.dataDir, migrations)
    : [pass('in memory')]
}

/** Whether there is a database to read; an embedded one is created at the first start. */
export const hasDatabase = ({ database }: Config): boolean =>
  database.kind !== 'embedded' || existsSync(join(database.dataDir, 'pgdata'))

const checkEmbedded = async (
  config: Config,
  dataDir: string,
  migrations: LoadedFeatures['migrations'],
): Promise<DoctorFinding[]> => {
  if (!hasDatabase(config)) return [pass(`embedded; the first start creates it in ${dataDir}`)]
  try {
    const database = await openDatabase(config, silentLog, { migrations })
    const { rows } = await database
      .query<AppliedMigration>('SELECT name, checksum FROM migrations')
      .finally(() => database.close())
    return [
      pass(`embedded in ${dataDir}, opens and is up to date`),
      ...(await findRemovedFeatures(rows, migrations)).map(toRemovedFinding),
    ]
  } catch (error) {
    if (isMasonError(error, 'data_dir_locked')) return [pass(`embedded; ${error.message}`)]
    const problem = `embedded in ${dataDir}, does not open: ${(error as Error).message}`
    return [fail(problem, `restore ${dataDir} from a backup, or move it away to start with a new database`)]
  }
}

const connectTimeoutMs = 3_000

type DatabaseFacts = VectorFacts & {
  version: string
  me: string
  is_superuser: boolean
  owns: boolean
  has_migrations: boolean
  missing_roles: string[]
}

const factsQuery = `SELECT current_setting('server_version') AS version, current_user AS me,
  (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) AS is_superuser,
  EXISTS (SELECT FROM pg_shdepend JOIN pg_roles r ON r.oid = refobjid
    WHERE refclassid = 'pg_authid'::regclass AND deptype = 'o' AND rolname = current_user) AS owns,
  ${vectorColumns},
  EXISTS (SELECT FROM pg_class c WHERE c.relname = 'migrations' AND c.relnamespace = to_regnamespace('mason')) AS has_migrations,
  ARRAY(SELECT role FROM unnest($1::text[]) AS role
    WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role AND pg_has_role(current_user, oid, 'MEMBER'))) AS missing_roles`

/** One login of the settings, and the roles that it needs. */
type Login = { setting: string; url: string; roles: readonly string[] }

const listDatabaseLogins = (database: ServerDatabase): Login[] => {
  const own = listLogins(database).map(({ setting, url, roles }) => ({
    setting,
    url,
    roles: Object.values(roles),
  }))
  return sharesLogin(database)
    ? [...own, { setting: 'DATABASE_URL', url: database.url, roles: ['mason_worker', 'mason_api'] }]
    : own
}

const checkPostgres = async (
  { setting, url, roles }: Login,
  signal: AbortSignal,
  migrations: LoadedFeatures['migrations'],
): Promise<DoctorFinding[]> => {
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
    const { rows } = await client.query<DatabaseFacts>(factsQuery, [roles])
    const facts = rows[0] as DatabaseFacts
    const readApplied = async () => {
      if (!facts.has_migrations || facts.missing_roles.length > 0) return []
      await client.query(`SET ROLE ${roles[0]}`)
      return (await client.query<AppliedMigration>('SELECT name, checksum FROM mason.migrations')).rows
    }
    const applied = await readApplied().catch((error: unknown) => {
      if ((error as { code?: unknown }).code === '42501') return []
      throw error
    })
    return [
      pass(`PostgreSQL ${facts.version.split(' ')[0]} at ${stripCredentials(url)} as ${facts.me}`),
      toVectorFinding(facts),
      ...(await toMigrationFindings(applied, facts, migrations)),
      ...listLoginFindings(setting, facts),
    ]
  } catch (error) {
    const { problem, remedy } = describeUnreachable(url, error, setting)
    return [fail(problem, remedy)]
  } finally {
    await client.end().catch(() => {})
  }
}

/** What of the login is weaker than it could be. */
const listLoginFindings = (setting: string, { is_superuser, owns, me }: DatabaseFacts): DoctorFinding[] => {
  if (is_superuser) return [pass(`${setting}: ${superuserWarning.problem}`, superuserWarning.remedy)]
  return setting === 'DATABASE_URL'
    ? [
        pass(
          'API and workers share the login of DATABASE_URL, which owns the tables and can become either',
          'set MASON_API_DATABASE_URL and MASON_WORKER_DATABASE_URL, keep this login for MASON_MIGRATE_URL, and run `mason migrate`',
        ),
      ]
    : [
        owns
          ? pass(
              `${me} of ${setting} owns tables or a database`,
              'run `mason migrate`, which says what to change',
            )
          : pass(`${me} of ${setting} owns nothing`),
      ]
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
  applied: readonly AppliedMigration[],
  { has_migrations, missing_roles, me }: DatabaseFacts,
  migrations: LoadedFeatures['migrations'],
): Promise<DoctorFinding[]> => {
  if (has_migrations && missing_roles.length > 0)
    return [
      fail(
        `${me} is not a member of ${missing_roles.join(' and ')}`,
        `run \`mason migrate\`, or as a superuser: GRANT ${missing_roles.join(', ')} TO ${me}`,
      ),
    ]
  const gap = await findMigrationGap(applied, migrations)
  if (gap) return [fail(gap.problem, gap.remedy)]
  return [
    pass(`${applied.length} of ${applied.length} migrations applied`),
    ...(await findRemovedFeatures(applied, migrations)).map(toRemovedFinding),
  ]
}

const toRemovedFinding = (id: string): DoctorFinding =>
  pass(
    `the database has the tables of the feature "${id}", which this build does not have`,
    'put the feature back, or drop its triggers, functions and tables, and then its rows of migrations',
  )

/** Calls `read` with the database, without migrating a server; null where another process has locked its folder. */
export const withUnmigratedDatabase = async <Result>(
  config: Config,
  read: (database: Database) => Promise<Result>,
  migrations?: LoadedFeatures['migrations'],
): Promise<Result | null> => {
  const opened = openDatabase(config, silentLog, { schema: 'unchecked', migrations })
  const database = await opened.catch((error: unknown) => {
    if (isMasonError(error, 'data_dir_locked')) return null
    throw error
  })
  try {
    return database && (await read(database))
  } finally {
    await database?.close()
  }
}
