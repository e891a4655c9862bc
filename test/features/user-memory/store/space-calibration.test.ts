// backends: either
// asserts: invariants

import { expect } from 'vitest'
import { ensureBusiness } from '../../../../src/accounts/businesses.ts'
import { embedTurnBatch } from '../../../../src/features/user-memory/store/embed-turns.ts'
import { calibrateByTurns } from '../../../../src/features/user-memory/store/space-calibration.ts'
import { writeTurns } from '../../../../src/features/user-memory/store/turns.ts'
import { asUser } from '../../../../src/features/user-memory/store/user-scope.ts'
import { silentLog } from '../../../../src/infra/lib/silent-log.ts'
import { test } from '../../../support/integration-test.ts'
import { never } from '../../../support/models.ts'

test('a space is measured by turns of different users once there are, until then by sessions of one', async ({
  database,
}) => {
  await ensureBusiness(database, 'default')
  const space = 'kitchens and gardens v1'
  const embedder = {
    current: () => space,
    offers: () => true,
    embed: async (_: string, texts: readonly string[]) =>
      texts.map((text) => [Number(text.includes('kitchen')), Number(text.includes('garden')), 0.1]),
  }
  const tell = async (user_id: string, subject: string, sessions: number): Promise<number[]> => {
    const owner = { business: 'default', user_id }
    for (let n = 0; n < sessions; n++) {
      const session_id = `${user_id} ${n}`
      await database.query('INSERT INTO sessions (tenant, session_id, user_id) VALUES ($1, $2, $3)', [
        ...['default', session_id, user_id],
      ])
      const prompt = `Sketch shelf number ${n} of my ${subject}, please measure twice`
      await asUser(database, owner, (sql) =>
        writeTurns(sql, owner, [{ session_id, turn: 1, prompt, answer: null, said_at: new Date() }]),
      )
    }
    while ((await embedTurnBatch({ database, embedder, log: silentLog }, never(), new Set())) > 0);
    await calibrateByTurns(database, space)
    const { rows } = await database.query<{ mean: number }>(
      'SELECT round(pair_mean::numeric, 2)::float8 AS mean FROM memory_spaces WHERE space = $1',
      [space],
    )
    return rows.map(({ mean }) => mean)
  }
  expect(await tell('cook', 'kitchen', 34)).toEqual([1.01])
  expect(await tell('gardener', 'garden', 20)).toEqual([0.01])
  expect(await tell('second cook', 'kitchen', 34)).toEqual([0.01])
})
