import { afterAll, beforeAll, expect, test } from 'vitest'
import { seedDatabase } from '../../src/app/seed-database.ts'
import { builtInFormats } from '../../src/features/response-formats/built-in/built-in-formats.ts'
import { type EmbeddedDatabase, openEmbeddedDatabase } from '../../src/infra/database/embedded.ts'
import { readRegistryRows } from '../../src/models/registry/registry-rows.ts'

let database: EmbeddedDatabase
/** Statements and transactions of the registry. */
let statements = 0

beforeAll(async () => {
  database = await openEmbeddedDatabase({})
  await seedDatabase(database)
})
afterAll(() => database?.close())

const seed = async (): Promise<number> => {
  statements = 0
  await seedDatabase({
    ...database,
    query: (text, values) => {
      statements++
      return database.query(text, values)
    },
    transaction: (work) => {
      statements++
      return database.transaction(work)
    },
  })
  return statements
}

test('a start on the seed image costs the registry one statement', async () => {
  expect(await seed()).toBe(1)
})

test('a format of an older build is updated at the start', async () => {
  const [first] = builtInFormats()
  const definition = async () =>
    (await readRegistryRows(database)).formats.find(({ name }) => name === first?.name)?.definition
  const now = await definition()
  await database.query(
    `UPDATE response_formats SET definition = '{"paths":{"text":"old"}}' WHERE name = $1`,
    [first?.name],
  )
  expect(await definition()).not.toEqual(now)
  expect(await seed()).toBeGreaterThan(1)
  expect(await definition()).toEqual(now)
})
