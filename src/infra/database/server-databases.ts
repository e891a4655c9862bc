import { MasonError, toSettingsError } from '../../state/errors.ts'
import type { Log } from '../../state/ports/log.ts'
import type { ServerDatabase } from '../config/config.ts'
import { type Database, hasRow, type ProcessDatabases, type ServerSchema } from './database.ts'
import { describeUnreachable, isDatabaseUnavailable } from './database-errors.ts'
import { listLogins, loginRoles, sharesLogin, superuserWarning } from './login-roles.ts'
import type { AppliedMigration, Migration } from './migration.ts'
import { findMigrationGap } from './migrations.ts'
import { migratePostgres, openPostgresDatabase } from './postgres.ts'

/** Opens the pools of a process: of each part under its own login where the settings have one. */
export const openServerDatabases = async (
  config: ServerDatabase,
  options: {
    schema: ServerSchema
    migrations?: readonly Migration[] | undefined
    max: number
    onError: (error: Error) => void
    log: Log
  },
): Promise<ProcessDatabases> => {
  const { url, migrateUrl } = config
  const { schema, migrations, max, onError, log } = options
  if (schema === 'migrate') await migratePostgres(migrateUrl ?? url, listLogins(config), migrations)
  const shared = sharesLogin(config) ? [{ setting: 'DATABASE_URL', url, roles: undefined }] : []
  const opened = [...listLogins(config), ...shared].map((login) => ({
    ...login,
    database: openPostgresDatabase({ url: login.url, max, onError, roles: login.roles }),
  }))
  const find = (part: keyof typeof loginRoles): Database =>
    (opened.find(({ roles }) => roles === loginRoles[part]) ?? opened.at(-1))?.database as Database
  const close = async (): Promise<void> => {
    await Promise.all(opened.map(({ database }) => database.close()))
  }
  try {
    if (schema !== 'unchecked')
      for (const each of opened) {
        await checkSchema(each, migrations)
        if (each.roles === loginRoles.payments) await checkPaymentLogin(each.database, each.setting)
        else await warnAboutSuperuser(each.database, log)
      }
    const payments = config.paymentUrl === undefined ? null : find('payments')
    return { api: find('api'), worker: find('worker'), payments, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** The codes of a database without Mason's tables or roles, or whose roles are not this login's. */
const unpreparedCodes: readonly unknown[] = ['42P01', '3F000', '42704', '22023', '42501']

/** Throws `invalid_settings` where this database is older or newer than the migrations of this version. */
const checkSchema = async (
  { database, url, setting }: { database: Database; url: string; setting: string },
  migrations: readonly Migration[] | undefined,
): Promise<void> => {
  const applied = await database
    .query<AppliedMigration>('SELECT name, checksum FROM migrations')
    .catch((error: unknown) => {
      if (unpreparedCodes.includes((error as { code?: unknown }).code)) return null
      const cause = isDatabaseUnavailable(error) ? error.cause : error
      const { problem, remedy } = describeUnreachable(url, cause, setting)
      throw new MasonError('database_unavailable', problem, { remedy, cause: error })
    })
  const gap = await findMigrationGap(applied?.rows ?? [], migrations)
  if (gap) throw toSettingsError(gap.problem, gap.remedy)
}

/** Finds a login that row-level security does not bind. */
const superuserStatement =
  'SELECT 1 AS there FROM pg_roles WHERE rolname = session_user AND (rolsuper OR rolbypassrls)'

type PaymentLoginFacts = { me: string; strong: boolean; others: string[]; intruders: string[] }

/** Superusers, and the user that migrates and so owns the tables, are members of what they like. */
const paymentLoginStatement = `SELECT r.rolname::text AS me, r.rolsuper OR r.rolbypassrls AS strong,
  ARRAY(SELECT o.rolname::text FROM pg_roles o WHERE o.oid <> r.oid AND o.rolname <> 'mason_payments'
    AND pg_has_role(r.oid, o.oid, 'MEMBER') ORDER BY 1) AS others,
  ARRAY(SELECT o.rolname::text FROM pg_roles o, unnest(ARRAY['mason_worker', 'mason_business', 'mason_admin', 'mason_api']) AS role
    WHERE o.oid <> r.oid AND NOT o.rolsuper AND o.rolcanlogin AND pg_has_role(o.oid, 'mason_payments', 'MEMBER')
    AND pg_has_role(o.oid, role, 'MEMBER')
    AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'mason_owner' AND pg_has_role(o.oid, oid, 'MEMBER'))
    GROUP BY o.rolname ORDER BY 1) AS intruders
  FROM pg_roles r WHERE r.rolname = session_user`

/** Throws `invalid_settings` where the executor's login is not its own alone: then a worker could do what it may. */
export const checkPaymentLogin = async (sql: Pick<Database, 'query'>, setting: string): Promise<void> => {
  const { rows } = await sql.query<PaymentLoginFacts>(paymentLoginStatement)
  const { me, strong, others, intruders } = rows[0] as PaymentLoginFacts
  const refuse = (problem: string, remedy: string): never => {
    throw toSettingsError(`${setting} names "${me}", ${problem}`, remedy)
  }
  const another = 'set it to another name, and run `mason migrate`, which creates that login'
  if (strong) refuse('which row-level security does not bind', another)
  if (others.length > 0) refuse(`which can become ${others.join(', ')}`, another)
  const [intruder] = intruders
  if (intruder !== undefined)
    refuse(
      `but "${intruder}", a login of API or workers, can become the executor too`,
      `run as a superuser: REVOKE mason_payments FROM "${intruder}"`,
    )
}

const warnAboutSuperuser = async (database: Database, log: Log): Promise<void> => {
  const { problem, remedy } = superuserWarning
  if (await hasRow(database, superuserStatement, [])) log.warn({ remedy }, problem)
}
