import type { Database } from '../infra/database/database.ts'
import { createMasterKeys } from '../infra/secrets/master-keys.ts'
import { seedRegistry } from '../models/registry/registry-seed.ts'
import { findResponseFormats } from './find-early.ts'

/**
 * Creates beforehand what every start ensures: the built-in rows of the registry. The build stores the result in its seed
 * image; a start still updates an older one. @public scripts/make-dump.mjs
 */
export const seedDatabase = async (database: Database): Promise<void> => {
  await seedRegistry({
    database,
    masterKeys: createMasterKeys(null),
    openai: null,
    formats: (await findResponseFormats()).builtIn,
  })
}
