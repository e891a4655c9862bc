import type { Database } from '../../src/infra/database/database.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { toRoleDatabase } from '../../src/infra/database/role-database.ts'
import type { Backend } from './backend.ts'
import { test } from './integration-test.ts'

/** The database as the executor of payments has it. Embedded it is the session of `database`, under the executor's role. */
const openExecutorDatabase = (backend: Backend, database: Database, max = 10): Database => {
  const { database: settings } = backend.config
  if (settings.kind !== 'postgres') return toRoleDatabase(database, 'mason_payments')
  const url = new URL(process.env.TEST_SUPERUSER_URL ?? '')
  url.pathname = new URL(settings.url).pathname
  return openPostgresDatabase({
    url: url.href,
    max,
    roles: { plain: 'mason_payments', business: 'mason_payments' },
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
