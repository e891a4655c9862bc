import { listLogins } from '../../src/infra/database/login-roles.ts'
import { migratePostgres } from '../../src/infra/database/postgres.ts'

/** The logins of processes on a database at this address, which migrating creates; without passwords, as the test servers ask for none. */
export const loginsOf = (database: string): { apiUrl: string; workerUrl: string } => ({
  apiUrl: urlAs('mason_test_api', database),
  workerUrl: urlAs('mason_test_worker', database),
})

/** The login of the executor of payments, which the other processes never have. */
export const paymentUrlOf = (database: string): string => urlAs('mason_test_payments', database)

const urlAs = (login: string, database: string): string => {
  const url = new URL(database)
  url.username = login
  return url.href
}

/** The settings of a database at this address: a login for the API, one for workers, and the owner's to migrate. */
export const databaseSettings = (database: string) => {
  const { apiUrl, workerUrl } = loginsOf(database)
  return { MASON_API_DATABASE_URL: apiUrl, MASON_WORKER_DATABASE_URL: workerUrl, MASON_MIGRATE_URL: database }
}

/** Migrates a database at this address and creates its logins, the executor's too. */
export const migrateServed = (database: string): Promise<string[]> =>
  migratePostgres(database, listLogins({ ...loginsOf(database), paymentUrl: paymentUrlOf(database) }))
