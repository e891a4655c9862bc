import type { Database } from '../../src/infra/database/database.ts'
import { loginRoles } from '../../src/infra/database/login-roles.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { toRoleDatabase } from '../../src/infra/database/role-database.ts'
import type { Backend } from './backend.ts'
import { test } from './integration-test.ts'
import { paymentUrlOf } from './served-logins.ts'

/** The database as the executor of payments has it. Embedded it is the session of `database`, under the executor's role. */
const openExecutorDatabase = (backend: Backend, database: Database, max = 10): Database => {
  const { database: settings } = backend.config
  if (settings.kind !== 'postgres') return toRoleDatabase(database, 'mason_payments')
  return openPostgresDatabase({
    url: paymentUrlOf(settings.url),
    max,
    roles: loginRoles.MASON_PAYMENT_DATABASE_URL,
  })
}

/** A test with the database as the executor has it. */
export const paymentTest = test.extend(
  'executor',
  { scope: 'file' },
  async ({ backend, database }, { onCleanup }) => {
    const executor = openExecutorDatabase(backend, database)
    onCleanup(() => executor.close())
    return executor
  },
)
