import { readdirSync, readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { connect } from './database.ts'
import type { Place } from './place.ts'

const readStat = (pid: number): number[] => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
}
const parentOf = (pid: number): number => readStat(pid)[1] ?? 0

/** Milliseconds of processor time of a process and its children, those that have ended too. */
const familyCpuMs = (pid: number): number => {
  const sum = (one: number, from: number, until: number): number =>
    readStat(one)
      .slice(from, until)
      .reduce((all, ticks) => all + ticks * 10, 0)
  const children = readdirSync('/proc').flatMap((name) => {
    try {
      return /^\d+$/.test(name) && parentOf(Number(name)) === pid ? [sum(Number(name), 11, 13)] : []
    } catch {
      return [] // it has just ended
    }
  })
  return children.reduce((all, ms) => all + ms, sum(pid, 11, 15))
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
