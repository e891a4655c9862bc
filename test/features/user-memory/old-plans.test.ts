// backends: either

import { expect, test } from 'vitest'
import { ensureBusiness } from '../../../src/accounts/businesses.ts'
import { listInputRequests } from '../../../src/engine/runs/input-queries.ts'
import { claimDistillations } from '../../../src/features/user-memory/store/distillation-queue.ts'
import { toStaleStatement } from '../../../src/features/user-memory/store/reembed.ts'
import { memoryIndex } from '../../../src/features/user-memory/store/search.ts'
import type { Sql } from '../../../src/state/ports/sql.ts'
import { openBackend } from '../../support/backend.ts'
import { readByOldPlans } from '../../support/old-plans.ts'

const business = 'default'
const rows = 2000

/** Each session is of another user and has one run, which asked a question, is to be learned from and left a memory. */
const fill = (sql: Sql) =>
  sql.query(
    `WITH n AS (SELECT n::text FROM generate_series(1, ${rows}) n),
     s AS (INSERT INTO sessions (tenant, session_id, user_id) SELECT $1, n, n FROM n RETURNING session_id),
     r AS (INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at)
       SELECT $1, session_id, session_id, 1, 'completed', clock_timestamp() FROM s RETURNING run_id),
     q AS (INSERT INTO run_requests (tenant, run_id, user_id, request, metadata) SELECT $1, run_id, run_id, '{}', '{}' FROM r),
     i AS (INSERT INTO input_requests (tenant, request_id, run_id, plan_seq, call_index, question, schema, options, expires_at)
       SELECT $1, run_id, run_id, 1, 0, '"Which?"', '{}', '[]', clock_timestamp() FROM r),
     m AS (INSERT INTO memories (tenant, user_id, memory_id, kind, content, origin, trusted, words)
       SELECT $1, run_id, run_id, 'fact', 'a river', 'user', true, 'river' FROM r)
     INSERT INTO distillations (tenant, run_id) SELECT $1, run_id FROM r`,
    [business],
  )

test.each<[string, (sql: Sql) => Promise<unknown>, table: string[]]>([
  [
    'the list of questions',
    (sql) => listInputRequests(sql, business, { limit: 5 }),
    ['runs', 'run_requests'],
  ],
  [
    'the claim of runs to learn from',
    (sql) => claimDistillations(sql, 60_000, () => []),
    ['runs', 'sessions'],
  ],
  [
    'the search for memories without a vector',
    (sql) => sql.query(toStaleStatement(memoryIndex, 'memory_id, space'), ['space', '[]']),
    ['memories'],
  ],
])(
  '%s reads what it lists alone, also by a plan from when there was nothing',
  async (_name, work, tables) => {
    const backend = await openBackend()
    const own = await backend.openDatabase()
    try {
      await ensureBusiness(own, business)
      await own.transaction(async (sql) => {
        await sql.query('RESET ROLE')
        const reads = await readByOldPlans(sql, work, () => fill(sql))
        for (const table of tables) expect(reads[table], table).toBeLessThan(rows / 10)
      })
    } finally {
      await own.close()
      await backend.drop()
    }
  },
)
