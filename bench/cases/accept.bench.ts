import type { Case, Variant } from '../case.ts'
import { query } from '../support/database.ts'
import { startOwnRedis } from '../support/own-redis.ts'
import { rawAdmissions } from '../support/raw-admit.ts'
import { type Load, sendLoad, startApi } from '../support/served.ts'
import { latencies } from '../support/statistics.ts'

const clients = 32
const requests = 8000
const request = '{"prompt":"hello","user_id":"u1"}'
const submit: Load = { path: '/v1/runs', body: () => request, fits: ({ status }) => status === 202 }

/** No worker takes anything off: what is measured is the acceptance alone, each run durable before its 202. */
const accept =
  (redis: 'up' | 'down'): Variant =>
  async (place) => {
    await query(
      place,
      `INSERT INTO businesses (tenant, max_queued) VALUES ('default', 1000000)
       ON CONFLICT (tenant) DO UPDATE SET max_queued = 1000000`,
    )
    const own = await startOwnRedis(place.processes)
    const served = await startApi({ ...place, config: { ...place.config, redisUrl: own.url } })
    const early = place.count(requests / 5)
    const measured = place.count(requests)
    await sendLoad(served, submit, { clients, requests: early })
    if (redis === 'down') await own.kill()
    const { perSecond, ms, cpu } = await sendLoad(served, submit, { clients, requests: measured })
    const [row] = await query<{ runs: number }>(place, 'SELECT count(*)::int AS runs FROM runs')
    if (row?.runs !== early + measured)
      throw new Error(`${early + measured} were accepted, ${row?.runs} are stored`)
    return { 'POST/s': perSecond, ...latencies(ms), ...cpu }
  }

const acceptCase: Case = {
  about: 'durable accepts a second by 32 clients, Redis up and killed, against one bare statement',
  ours: { 'Redis up': accept('up'), 'Redis down': accept('down') },
  beside: {
    '10 connections, one admission a commit': async (place) => ({
      'POST/s': await rawAdmissions(place, request, { connections: 10, count: place.count(requests) }),
    }),
  },
}

export default acceptCase
