// backends: either
// asserts: invariants

import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { describe, expect } from 'vitest'
import { test } from '../../support/integration-test.ts'
import { claim, submitTo, until } from '../../support/runs.ts'

const lock = `hashtext('mason.claim')`

/** Polls from another process until the run is running and the lock of claims is free; fails after 90 s. */
const seenFromElsewhere = `
  const client = new pg.Client({ connectionString: process.argv[1], options: '-c search_path=mason' })
  await client.connect()
  const until = Date.now() + 90000
  for (;;) {
    const { rows } = await client.query("SELECT status, pg_try_advisory_lock(${lock}) AS free FROM runs")
    if (rows[0].status === 'running' && rows[0].free) process.exit(0)
    if (Date.now() > until) throw new Error(JSON.stringify(rows))
  }`

// embedded there is one process only
describe.skipIf(process.env.MASON_TEST_BACKEND !== 'served')('a claim that has to wait its turn', () => {
  test('succeeds and lets others claim while its own process is frozen', async ({ backend, database }) => {
    const config = backend.config.database
    const url = config.kind === 'postgres' ? config.url : ''
    await submitTo(database, 'a')
    const other = new pg.Client({ connectionString: url, options: '-c search_path=mason' })
    await other.connect()
    try {
      await other.query(`BEGIN; SELECT FROM businesses WHERE tenant = 'a' FOR NO KEY UPDATE`)
      await other.query(`SELECT pg_advisory_lock(${lock})`)
      const claiming = claim(database)
      await until('the claim to wait', async () => {
        const { rows } = await database.query(
          // other tests use this server too
          `SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
           WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()`,
        )
        return rows.length > 0
      })
      const released = other.query(`COMMIT; SELECT pg_advisory_unlock(${lock})`)
      // from here on this process does not turn: what was sent has to be enough
      const script = `import pg from '${import.meta.resolve('pg')}'\n${seenFromElsewhere}`
      execFileSync(process.execPath, ['--input-type=module', '-e', script, url], {
        cwd: fileURLToPath(new URL('.', import.meta.url)),
        timeout: 90_000,
      })
      await released
      expect(await claiming).toMatchObject({ tenant: 'a', epoch: 1 })
    } finally {
      await other.end()
    }
  })
})
