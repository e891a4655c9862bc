import { MasonError } from '../../state/errors.ts'
import type { Log } from '../../state/ports/log.ts'
import type { ServerDatabase } from '../config/config.ts'
import type { Database, ProcessDatabases, ServerSchema } from './database.ts'
import { describeUnreachable, isDatabaseUnavailable } from './database-errors.ts'
import { listLogins, loginRoles, type ProcessLogin, sharesLogin, superuserWarning } from './login-roles.ts'
import { type AppliedMigration, findMigrationGap } from './migrations.ts'
import { migratePostgres, openPostgresDatabase } from './postgres.ts'

/** Opens the pools of a process: of each part under its own login where the settings have one. */
export const openServerDatabases = async (
  config: ServerDatabase,
  options: { schema: ServerSchema; max: number; onError: (error: Error) => void; log: Log },
): Promise<ProcessDatabases> => {
  const { url, migrateUrl } = config
  const { schema, max, onError, log } = options
  if (schema === 'migrate') await migratePostgres(migrateUrl ?? url, listLogins(config))
  const opened = listLogins(config).map(({ setting, url: from }) => ({
    setting: setting as string,
    url: from,
    database: openPostgresDatabase({ url: from, max, onError, roles: loginRoles[setting] }),
  }))
  if (sharesLogin(config))
    opened.push({ setting: 'DATABASE_URL', url, database: openPostgresDatabase({ url, max, onError }) })
  const find = (setting: ProcessLogin['setting']): Database =>
    (opened.find((one) => one.setting === setting) ?? opened.at(-1))?.database as Database
  const close = async (): Promise<void> => {
    await Promise.all(opened.map(({ database }) => database.close()))
  }
  try {
    if (schema !== 'unchecked')
      for (const each of opened) {
        await checkSchema(each)
        await warnAboutSuperuser(each.database, log)
      }
    return { api: find('MASON_API_DATABASE_URL'), worker: find('MASON_WORKER_DATABASE_URL'), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** The codes of a database without Mason's tables or roles, or whose roles are not this login's. */
const unpreparedCodes: readonly unknown[] = ['42P01', '3F000', '42704', '22023', '42501']

/** Throws `invalid_settings` where this database is older or newer than the migrations of this version. */
const checkSchema = async ({
  database,
  url,
  setting,
}: {
  database: Database
  url: string
  setting: string
}): Promise<void> => {
  const applied = await database
    .query<AppliedMigration>('SELECT name, checksum FROM migrations')
    .catch((error: unknown) => {
      if (unpreparedCodes.includes((error as { code?: unknown }).code)) return null
      const cause = isDatabaseUnavailable(error) ? error.cause : error
      const { problem, remedy } = describeUnreachable(url, cause, setting)
      throw new MasonError('database_unavailable', problem, { remedy, cause: error })
    })
  const gap = await findMigrationGap(applied?.rows ?? [])
  if (gap) throw new MasonError('invalid_settings', gap.problem, { remedy: gap.remedy })
}

/** Whether row-level security does not bind the login of these connections. */
const isSuperuser = async (sql: Pick<Database, 'query'>): Promise<boolean> => {
  const { rows } = await sql.query<{ strong: boolean }>(
    'SELECT rolsuper OR rolbypassrls AS strong FROM pg_roles WHERE rolname = session_user',
  )
  return rows[0]?.strong === true
}

const warnAboutSuperuser = async (database: Database, log: Log): Promise<void> => {
  const { problem, remedy } = superuserWarning
  if (await isSuperuser(database)) log.warn({ remedy }, problem)
}
