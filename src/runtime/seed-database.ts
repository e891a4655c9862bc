import type { Database } from '../infra/database/database.ts'
import type { EmbeddedDatabase } from '../infra/database/embedded.ts'
import { migrateBullmq } from '../infra/queue/embedded.ts'
import { createMasterKeys } from '../infra/secrets/master-keys.ts'
import { builtInFormats } from '../models/formats/built-in/built-in-formats.ts'
import { seedRegistry } from '../models/registry/registry-seed.ts'

/**
 * Creates beforehand what every start ensures: the tables of the queue and the built-in rows of the registry. The build
 * stores the result in its seed image; a start still updates an older one. @public scripts/make-dump.mjs
 */
export const seedDatabase = async (database: EmbeddedDatabase): Promise<void> => {
  await migrateBullmq(database.pglite, '')
  await seedBuiltInRegistry(database)
}

/** The part that also applies to a database server: the built-in rows of the registry. */
export const seedBuiltInRegistry = async (database: Database): Promise<void> => {
  await seedRegistry({
    database,
    masterKeys: createMasterKeys(null),
    openai: null,
    formats: builtInFormats(),
  })
}
