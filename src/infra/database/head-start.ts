import { builtInFormats } from '../formats/built-in.ts'
import { checkFormat } from '../formats/check.ts'
import { migrateBullmq } from '../queue/pglite-pool.ts'
import { seedRegistry } from '../registry/seed.ts'
import { createMasterKeys } from '../secrets/master-keys.ts'
import type { Database } from './database.ts'
import type { EmbeddedDatabase } from './embedded.ts'

/**
 * Does beforehand what every start makes sure of: the queue's tables and the rows of the registry that Mason brings. The
 * build keeps it in its dump. A start still brings up to date what an older build made. @public scripts/make-dump.mjs
 */
export const giveHeadStart = async (database: EmbeddedDatabase): Promise<void> => {
  await migrateBullmq(database.pglite, '')
  await seedBuiltIn(database)
}

/** The part of it that a database server can have as well. */
export const seedBuiltIn = async (database: Database): Promise<void> => {
  const formats = { builtIn: builtInFormats(), check: checkFormat }
  await seedRegistry({ database, masterKeys: createMasterKeys(null), openai: null, formats })
}
