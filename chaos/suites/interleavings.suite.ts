import { randomBytes } from 'node:crypto'
import { migratePostgres, openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { dropDatabase, runAsAdmin, urlOf } from '../../test/support/setup-served.ts'
import { playMany } from '../interleavings/campaign.ts'
import type { Suite } from '../suite.ts'

const sequences = 5000

const suite: Suite = {
  about:
    'workers, clients, relay and reconciler interleaved statement by statement on Postgres, with lost answers, ended leases and deaths: after each step the database is what a model of the protocol allows',
  async run({ seed, scale, say, signal }) {
    const name = `mason_interleavings_${randomBytes(6).toString('hex')}`
    await runAsAdmin(`CREATE DATABASE ${name}`)
    try {
      await migratePostgres(urlOf(name))
      const database = openPostgresDatabase({ url: urlOf(name), max: 2 })
      try {
        const wanted = Math.max(1, Math.round(sequences * scale))
        const every = Math.max(1, Math.round(wanted / 10))
        const {
          violation,
          sequences: played,
          seen,
        } = await playMany(database, {
          ...{ seed, sequences: wanted, signal },
          onPlayed: (count) => count % every === 0 && say(`${count} of ${wanted} sequences`),
        })
        return { figures: { sequences: played, ...seen }, failures: violation === null ? [] : [violation] }
      } finally {
        await database.close()
      }
    } finally {
      await dropDatabase(name)
    }
  },
}

export default suite
