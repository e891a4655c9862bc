import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describeSchema } from '../src/infra/database/describe-schema.ts'
import type { MigrationTarget } from '../src/infra/database/migration.ts'
import { migratePglite, startPglite, toMigrationTarget } from '../src/infra/database/pglite.ts'

/** Where the database is shown as its migrations make it. */
export const schemaPath = fileURLToPath(new URL('../migrations/schema.sql', import.meta.url))

/** The text of `schemaPath`, of a migrated database. */
export const renderSchema = async (target: MigrationTarget): Promise<string> => {
  const objects = await describeSchema(target)
  return `-- The database after all migrations: npm run schema\n\n${objects.map(({ sql }) => sql).join('\n')}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const pglite = await startPglite({})
  await migratePglite(pglite)
  writeFileSync(schemaPath, await renderSchema(toMigrationTarget(pglite)))
  await pglite.close()
}
