import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Case, Figures, Variant } from '../case.ts'
import { startPeer } from '../support/peer.ts'
import type { Place } from '../support/place.ts'
import { type Load, type Served, sendLoad, servedBy, startServed } from '../support/served.ts'
import { watchServers } from '../support/server-times.ts'
import { latencies } from '../support/statistics.ts'

const run: Load = {
  path: '/v1/runs/wait',
  body: (n) => JSON.stringify({ prompt: `hello number ${n % 20}`, user_id: `user-${n % 100}` }),
  fits: ({ status, body }) => status === 200 && body.includes('"finish_reason":"answered"'),
}
const peerRun: Load = {
  path: '/runs/wait',
  body: () => '{}',
  fits: ({ status, body }) => status === 200 && body.includes('"node":"end"'),
}

/** The actions of such a run of Mason, of which a peer takes as many steps. */
const nodes = [
  'load-session',
  'user-context',
  'planner',
  'calculate',
  'reflection',
  'planner',
  'answer',
  'end',
]

type Measured = { ms: number[]; perSecond: number; each: Figures }

/** A run counts when it has ended and is learned from; times and commits are of all until then. */
const measure = async (
  place: Place,
  served: Served,
  load: Load,
  { clients, requests }: { clients: number; requests: number },
): Promise<Measured> => {
  const servers = await watchServers(place)
  const [before, client, since] = [await servers.read(), process.cpuUsage(), performance.now()]
  const { ms, cpu } = await sendLoad(served, load, { clients, requests })
  await servers.untilLearned()
  const seconds = (performance.now() - since) / 1000
  const { user, system } = process.cpuUsage(client)
  const after = await servers.read()
  await servers.close()
  const times = {
    ...cpu,
    'client CPU ms each': (user + system) / 1000 / requests,
    'PostgreSQL CPU ms each': (after.PostgreSQL - before.PostgreSQL) / requests,
    'Redis CPU ms each': (after.Redis - before.Redis) / requests,
  }
  return {
    ms,
    perSecond: requests / seconds,
    each: {
      ...times,
      'all CPU ms each': Object.values(times).reduce((all, one) => all + one, 0),
      'commits each': (after.commits - before.commits) / requests,
      'syncs each': (after.syncs - before.syncs) / requests,
    },
  }
}

/** By one client, by sixteen, and by 64; a warm-up before. `more` starts what 64 clients get in addition. */
const oneToSixtyFour = async (
  place: Place,
  served: Served,
  load: Load,
  more: () => Promise<Served> = async () => served,
): Promise<Figures> => {
  await sendLoad(served, load, { clients: 16, requests: place.count(100) })
  const one = await measure(place, served, load, { clients: 1, requests: place.count(200) })
  const sixteen = await measure(place, served, load, { clients: 16, requests: place.count(800) })
  const all = await measure(place, await more(), load, { clients: 64, requests: place.count(1200) })
  return {
    ...latencies(one.ms),
    'runs/s of 16': sixteen.perSecond,
    'runs/s of 64': all.perSecond,
    ...sixteen.each,
  }
}

/** One worker process, and a second one for 64 clients. */
const mason: Variant = async (place) => {
  const served = await startServed(place)
  return oneToSixtyFour(place, served, run, async () => {
    const { pid } = await place.processes.start('worker-process', { config: place.config })
    return { ...served, pids: { ...served.pids, 'second worker': pid } }
  })
}

/** A Rust server with a log of its own, and a service of its SDK over HTTP/2. */
const restate: Variant = async (place) => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-bench-peer-'))
  try {
    return await oneToSixtyFour(
      place,
      servedBy(await startPeer(place, 'restate', { folder, nodes })),
      peerRun,
    )
  } finally {
    await place.processes.end()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** In process with its HTTP server, on the same PostgreSQL. */
const dbos: Variant = async (place) =>
  oneToSixtyFour(
    place,
    servedBy(await startPeer(place, 'dbos', { databaseUrl: place.databaseUrl, nodes })),
    peerRun,
  )

const headline: Case = {
  about:
    'no-op runs of eight actions over HTTP, finished and learned from, by 1, 16 and 64 clients, with the processor time of all that take part',
  ours: { Mason: mason },
  beside: { Restate: restate, DBOS: dbos },
}

export default headline
