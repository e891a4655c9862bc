import { type Environment, readConfig } from '../infra/config.ts'
import { databaseText } from './banner.ts'
import { exitCodes } from './failure.ts'

/** `mason migrate`: applies what is missing and says what that was. Gives the exit code. */
export const migrate = async (env: Environment): Promise<number> => {
  const config = readConfig(env, { role: 'migrate' })
  const where = databaseText(config)
  if (config.database.kind === 'postgres') {
    const { migratePostgres } = await import('../infra/database/postgres.ts')
    const applied = await migratePostgres(config.database.url)
    for (const name of applied) process.stdout.write(`applied ${name}\n`)
    process.stdout.write(`${where}: ${applied.length === 0 ? 'nothing was missing' : 'up to date'}\n`)
    return exitCodes.done
  }
  const { openDatabase } = await import('../infra/database/open.ts')
  const { createLog } = await import('./log.ts')
  const database = await openDatabase(config, createLog(config.logLevel))
  await database.close()
  process.stdout.write(`${where}: up to date (every start sees to that)\n`)
  return exitCodes.done
}
