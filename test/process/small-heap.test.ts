// tier: all
import { describe, expect, test } from 'vitest'
import { startMason } from '../../chaos/fuzz/mason.ts'
import { serversMissing } from '../support/processes.ts'
import { onServers } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('a server with a small heap'), () => {
  test('lists 24 runs with 31 MB of metadata each', async () => {
    const mason = await startMason({ NODE_OPTIONS: '--max-old-space-size=200' })
    try {
      await mason.database.query("INSERT INTO businesses (tenant) VALUES ('default') ON CONFLICT DO NOTHING")
      for (const statement of [
        "INSERT INTO sessions (tenant, session_id, user_id, turns) SELECT 'default', 's' || n, 'u1', 1 FROM generate_series(1, 24) n",
        `INSERT INTO runs (tenant, run_id, session_id, turn, status, expires_at)
         SELECT 'default', 'r' || n, 's' || n, 1, 'completed', now() FROM generate_series(1, 24) n`,
      ])
        await mason.database.query(statement)
      // A row a statement: on a loaded machine all of them take longer than a statement may.
      for (let n = 1; n <= 24; n++)
        await mason.database.query(
          `INSERT INTO run_requests (tenant, run_id, user_id, request, metadata)
           VALUES ('default', 'r' || $1, 'u1', '{"prompt":"p","files":[]}', json_build_object('k', repeat('x', 31 * 1024 * 1024)))`,
          [String(n)],
        )
      const answer = await fetch(`http://127.0.0.1:${mason.port}/v1/runs`, {
        headers: { authorization: `Bearer ${mason.token}` },
      })
      const { data } = (await answer.json()) as { data: unknown[] }
      expect(data).toHaveLength(24)
      expect(data).toMatchObject(Array(24).fill({ prompt: 'p', metadata: {}, truncated: ['metadata'] }))
    } finally {
      await mason.stop()
    }
  })
})
