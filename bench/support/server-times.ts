import { readdirSync } from 'node:fs'
import { Redis } from 'ioredis'
import { connect } from './database.ts'
import type { Place } from './place.ts'
import { cpuMs, parentOf } from './processes.ts'

/** Milliseconds of processor time of a process and its children, those that have ended too. */
const familyCpuMs = (pid: number): number => {
  const children = readdirSync('/proc').flatMap((name) => {
    try {
      return /^\d+$/.test(name) && parentOf(Number(name)) === pid ? [cpuMs(Number(name))] : []
    } catch {
      return [] // it has just ended
    }
  })
  return children.reduce((all, ms) => all + ms, cpuMs(pid, { endedChildren: true }))
}

/** What the servers have taken so far: processor time in milliseconds, commits of the measured database, and syncs of the WAL. */
export type ServerTimes = { PostgreSQL: number; Redis: number; commits: number; syncs: number }

/** Reads what the servers of a place take. The statistics of the database may be a second behind. */
export const watchServers = async (place: Place) => {
  const client = await connect(place)
  const one = async <Row>(text: string): Promise<Row> => (await client.query(text)).rows[0] as Row
  const { pid: backend } = await one<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const postmaster = parentOf(backend)
  const redis = new Redis(place.redisUrl)
  const redisPid = Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1])
  redis.disconnect()
  /** Our own statements are no part of it. */
  let own = 0
  return {
    async read(): Promise<ServerTimes> {
      const { commits, syncs } = await one<{ commits: string; syncs: string }>(
        `SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits,
           (SELECT to_json(w)->>'wal_sync' FROM pg_stat_wal w) AS syncs`,
      )
      const times = { PostgreSQL: familyCpuMs(postmaster), Redis: familyCpuMs(redisPid) }
      return { ...times, commits: Number(commits) - own++, syncs: Number(syncs) }
    },
    /** Waits until all ended runs are learned from. */
    async untilLearned(): Promise<void> {
      for (;;) {
        own++
        const { left } = await one<{ left: number }>(
          'SELECT count(*)::int AS left FROM distillations WHERE failed_at IS NULL',
        )
        if (left === 0) return
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    },
    close: () => client.end(),
  }
}
