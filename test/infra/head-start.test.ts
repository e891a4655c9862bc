import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EmbeddedDatabase, openEmbedded } from '../../src/infra/database/embedded.ts'
import { giveHeadStart, seedBuiltIn } from '../../src/infra/database/head-start.ts'
import { builtInFormats } from '../../src/infra/formats/built-in.ts'
import { migrateBullmq } from '../../src/infra/queue/pglite-pool.ts'
import { readRows } from '../../src/infra/registry/rows.ts'

let database: EmbeddedDatabase
/** Statements and transactions of the registry. */
let statements = 0

beforeAll(async () => {
  database = await openEmbedded({})
  await giveHeadStart(database)
})
afterAll(() => database?.close())

const seed = async (): Promise<number> => {
  statements = 0
  await seedBuiltIn({
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

test('a start on it costs the registry one statement and makes nothing of the queue', async () => {
  expect(await seed()).toBe(1)
  const versions = 'SELECT version, xmin::text FROM bullmq.migration ORDER BY version'
  const before = (await database.pglite.query(versions)).rows
  await migrateBullmq(database.pglite, '')
  expect(before.length).toBeGreaterThan(0)
  expect((await database.pglite.query(versions)).rows).toEqual(before)
})

test('what an older build made of a format is brought up to date at the start', async () => {
  const [first] = builtInFormats()
  const definition = async () =>
    (await readRows(database)).formats.find(({ name }) => name === first?.name)?.definition
  const now = await definition()
  await database.query(
    `UPDATE response_formats SET definition = '{"paths":{"text":"old"}}' WHERE name = $1`,
    [first?.name],
  )
  expect(await definition()).not.toEqual(now)
  expect(await seed()).toBeGreaterThan(1)
  expect(await definition()).toEqual(now)
})
