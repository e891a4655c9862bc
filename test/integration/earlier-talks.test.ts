import { expect } from 'vitest'
import { ensureBusiness } from '../../src/accounts/businesses.ts'
import { deleteSession } from '../../src/engine/sessions/delete-session.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { createRunMemories } from '../../src/memory/store/run-memories.ts'
import { unique } from '../support/backend.ts'
import { test } from '../support/integration-test.ts'
import { hashOnly } from '../support/memory.ts'
import { never } from '../support/models.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }

let database: Database
test.beforeAll(async ({ database: d }) => {
  database = d
  await Promise.all(['a', 'b'].map((tenant) => ensureBusiness(database, tenant)))
})

const session = async (tenant: string, user_id: string, summary: string, daysAgo = 0): Promise<string> => {
  const session_id = unique('s')
  await database.query(
    `INSERT INTO sessions (tenant, session_id, user_id, summary, summary_turn, updated_at)
     VALUES ($1, $2, $3, $4, 1, clock_timestamp() - make_interval(days => $5))`,
    [tenant, session_id, user_id, summary, daysAgo],
  )
  return session_id
}
const recalled = async (tenant: string, user_id: string, session_id: string): Promise<string[]> => {
  const memories = createRunMemories(
    { database, embedder: hashOnly, log },
    { business: tenant, user_id },
    { session_id, run_id: unique('r') },
  )
  const found = await memories.recall('Let us go on from where we left off', 8, never())
  return found.map(({ id, kind }) => `${kind} ${id}`)
}

test('a new session recalls the earlier session it refers to, of the same user and while it exists', async () => {
  const earlier = await session('a', 'ann', 'Ann planned a dinner.')
  await session('a', 'bob', 'Bob counted pallets.')
  await session('b', 'ann', 'Another business talked to another Ann.')
  await session('a', 'cleo', 'Long ago.', 40)
  const now = await session('a', 'ann', '')
  expect(await recalled('a', 'ann', now)).toEqual([`episode session ${earlier} 1`])
  expect(await recalled('a', 'dora', await session('a', 'dora', 'Her own talk.'))).toEqual([])
  expect(await recalled('a', 'cleo', await session('a', 'cleo', ''))).toEqual([])
  await deleteSession(database, 'a', earlier)
  expect(await recalled('a', 'ann', now)).toEqual([])
})
