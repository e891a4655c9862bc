import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/infra/database/database.ts'
import { createMemories } from '../../src/infra/memory/for-run.ts'
import { ensureBusiness } from '../../src/infra/runs/admit.ts'
import { deleteSession } from '../../src/infra/sessions/delete.ts'
import { type Backend, openBackend, unique } from '../support/backend.ts'
import { hashOnly } from '../support/memory.ts'
import { never } from '../support/models.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }

let backend: Backend
let database: Database
beforeAll(async () => {
  backend = await openBackend()
  database = await backend.openDatabase()
  await Promise.all(['a', 'b'].map((tenant) => ensureBusiness(database, tenant)))
})
afterAll(async () => {
  await database?.close()
  await backend?.drop()
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
  const memories = createMemories(
    { database, embedder: hashOnly, log },
    { tenant, user_id },
    { session_id, run_id: unique('r') },
  )
  const found = await memories.recall('Let us go on from where we left off', 8, never())
  return found.map(({ id, kind }) => `${kind} ${id}`)
}

test('a new session recalls the talk it goes back to: of the same user, and while it is there', async () => {
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
