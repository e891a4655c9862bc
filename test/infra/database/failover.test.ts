// backends: either
// asserts: invariants

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../../src/infra/database/database.ts'
import { openPostgresDatabase } from '../../../src/infra/database/postgres.ts'
import { type Backend, openBackend } from '../../support/backend.ts'
import { codeOf } from '../../support/runs.ts'

/** A failover that leaves the connections standing: the server they lead to takes no writes any more. */
describe.runIf(process.env.MASON_TEST_BACKEND === 'served')('a server that is no longer the primary', () => {
  let backend: Backend
  let database: Database

  beforeAll(async () => {
    backend = await openBackend()
    const { database: settings } = backend.config
    if (settings.kind !== 'postgres') throw new Error('this needs a server')
    database = openPostgresDatabase({ url: settings.url, max: 1 })
  })
  afterAll(async () => {
    await database?.close()
    await backend?.drop()
  })

  const demote = 'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY'
  const add = (name: string) => [`INSERT INTO businesses (tenant) VALUES ('${name}')`, []] as const
  const write = `INSERT INTO users (tenant, user_id) VALUES ('b', 'u') ON CONFLICT DO NOTHING`

  test.each(['statement', 'transaction', 'transaction at once', 'business'])(
    'is left after one transient error, by a %s',
    async (way) => {
      const ways = {
        statement: () => database.query(...add('plain')),
        transaction: () => database.transaction((sql) => sql.query(...add('several'))),
        'transaction at once': () =>
          database.transaction((sql) => sql.query(...add('at once')), { pipelined: true }),
        business: () => database.asBusiness('b', (sql) => sql.query(write)),
      }
      await database.query(`INSERT INTO businesses (tenant) VALUES ('b') ON CONFLICT DO NOTHING`)
      if (way === 'business') await database.asBusiness('b', (sql) => sql.query(demote))
      else await database.transaction((sql) => sql.query(demote))
      const work = ways[way as keyof typeof ways]
      expect(await codeOf(work())).toBe('database_unavailable')
      expect(await codeOf(work())).toBe('no error')
    },
  )
})
