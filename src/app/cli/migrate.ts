import type { Environment } from '../../infra/config/config.ts'
import { loadFeatureSources, readFeatureMigrations } from '../load-feature-sources.ts'
import { readConfig } from '../read-config.ts'
import { describeDatabase } from './banner.ts'
import { exitCodes } from './errors.ts'

/** `mason migrate`: applies missing migrations, creates the logins of the settings, and prints their names. Returns the exit code. */
export const migrateDatabase = async (env: Environment): Promise<number> => {
  const config = readConfig(env, { role: 'migrate' })
  const where = describeDatabase(config)
  const migrations = await readFeatureMigrations(await loadFeatureSources(config.featureFolders))
  if (config.database.kind === 'postgres') {
    const { migratePostgres } = await import('../../infra/database/postgres.ts')
    const { listLogins } = await import('../../infra/database/login-roles.ts')
    const logins = listLogins(config.database)
    const applied = await migratePostgres(config.database.url, logins, migrations)
    for (const name of applied) process.stdout.write(`applied ${name}\n`)
    for (const { setting, url } of logins)
      process.stdout.write(`the login of ${setting} is ready: ${decodeURIComponent(new URL(url).username)}\n`)
    process.stdout.write(`${where}: ${applied.length === 0 ? 'nothing was missing' : 'up to date'}\n`)
    return exitCodes.done
  }
  const { openDatabase } = await import('../../infra/database/open-database.ts')
  const { createLog } = await import('./log.ts')
  const database = await openDatabase(config, createLog(config.logLevel), { migrations })
  await database.close()
  process.stdout.write(`${where}: up to date (every start migrates an embedded database)\n`)
  return exitCodes.done
}
