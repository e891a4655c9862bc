import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { seedDatabase } from '../../src/app/seed-database.ts'
import { openEmbeddedDatabase } from '../../src/infra/database/embedded.ts'

/** Makes the database once, with all that a start makes sure of; each test file loads a copy, which is quicker. */
export default async (project: TestProject) => {
  if (!process.env.TEST_DATABASE_URL || !process.env.TEST_REDIS_URL)
    console.log(
      'integration tests run on the embedded database only; set TEST_DATABASE_URL and TEST_REDIS_URL to run them on servers too',
    )
  const folder = await mkdtemp(join(tmpdir(), 'mason-test-'))
  const database = await openEmbeddedDatabase({})
  await seedDatabase(database)
  await database.pglite.exec('RESET ROLE; CHECKPOINT')
  const dump = await database.pglite.dumpDataDir('none')
  await database.close()
  const path = join(folder, 'database.tar')
  await writeFile(path, Buffer.from(await dump.arrayBuffer()))
  project.provide('template', path)
  return () => rm(folder, { recursive: true, force: true })
}
