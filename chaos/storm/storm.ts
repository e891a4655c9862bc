import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { audit, drained, firstOf, openWitness } from '../fleet/audit.ts'
import { openHttpClient } from '../fleet/http-client.ts'
import type { Step } from '../fleet/job.ts'
import { complaintsOf, type Member, openFleet } from '../fleet/members.ts'
import { startProvider } from '../fleet/provider.ts'
import { type Random, randomFrom } from '../fleet/random.ts'
import { openServers } from '../fleet/servers.ts'
import type { Findings, SuiteOptions } from '../suite.ts'
import { openClients } from './clients.ts'
import type { FollowTask } from './reader.ts'
import { compareWithLog, type Stream, submitSessions } from './streams.ts'

const dropsEach = 20
/** Long enough for 20 drops each while the runs are at work. */
const stepsOf = (scale: number): Step[] =>
  Array.from({ length: 16 }, (): Step => (scale < 0.5 ? 'think~500' : 'think~2500'))
/** After this, who has not seen the end never will. */
const patienceMsOf = (scale: number): number => (scale < 0.5 ? 120_000 : 1_200_000)
/** What the API may hold more than before, after a storm of any size: garbage of the engine itself, and no more. */
const heapSlackMb = 6

const tasksOf = (streams: readonly Stream[], clients: number, random: Random): FollowTask[] =>
  Array.from({ length: clients }, (_, client) => {
    const stream = streams[client % streams.length]
    if (!stream) throw new Error('there is nothing to follow')
    return { client, ...stream, drops: dropsEach, seed: random.fork(client).below(2 ** 31) }
  })

/** 1,000 clients at scale 1, each dropped 20 times, on runs and sessions that workers elsewhere work on. */
export const storm = async ({ seed, scale, say, signal }: SuiteOptions): Promise<Findings> => {
  const clients = Math.max(10, Math.round(1000 * scale))
  const sessions = Math.max(3, Math.round(30 * scale))
  const random = randomFrom(seed)
  await using servers = await openServers()
  await using provider = await startProvider()
  await using fleet = openFleet(servers, provider.url)
  const api = await fleet.startApi()
  await fleet.startWorker({ concurrency: 50 })
  await using processes = openClients(2)
  using client = openHttpClient(api.url)
  const witness = await openWitness(servers.databaseUrl)
  try {
    const accepted = new Set<string>()
    const rush = async (name: string, count: number, over: number, work: readonly Step[]) => {
      const names = Array.from({ length: over }, (_, at) => `${name}${at}`)
      const streams = await submitSessions(client, names, work, accepted)
      const tasks = tasksOf(streams, count, random)
      const stopped = once(signal, 'abort').then(() => Promise.reject(signal.reason))
      return Promise.race([processes.follow({ url: api.url, tasks, withinMs: patienceMsOf(scale) }), stopped])
    }
    // code that was never run and pools that never were full are no leak
    await rush('warm', Math.min(60, clients), 3, ['think~1000', 'think~1000', 'think~1000'])
    const before = await settled(api)
    say(`${clients} clients on ${sessions * 3} streams, ${dropsEach} drops each`)
    const since = performance.now()
    const followed = await rush('storm', clients, sessions, stepsOf(scale))
    const seconds = (performance.now() - since) / 1000
    const after = await settled(api, before.idleQueries)
    signal.throwIfAborted()
    const failures = await compareWithLog(witness, followed)
    if ((await drained(witness, 10_000, signal)) === null) failures.push('runs were left unfinished')
    failures.push(...(await audit(witness, accepted, provider.effects)).failures)
    failures.push(...leftovers(before, after))
    const sum = (of: (one: (typeof followed)[number]) => number): number =>
      followed.reduce((total, one) => total + of(one), 0)
    const connections = sum((one) => one.connections)
    const fiveHundreds = sum((one) =>
      Object.entries(one.refused).reduce(
        (total, [status, times]) => total + (status >= '500' ? times : 0),
        0,
      ),
    )
    failures.unshift(...complaintsOf(api, 'error'))
    if (sum((one) => one.drops) < clients * dropsEach) failures.push('not every client was dropped 20 times')
    return {
      figures: {
        clients,
        streams: sessions * 3,
        drops: sum((one) => one.drops),
        connections,
        'actions delivered': sum((one) => one.actions),
        gaps: sum((one) => one.gaps),
        repeats: sum((one) => one.repeats),
        'answers 5xx': fiveHundreds,
        'clients that saw the end': followed.filter((one) => one.done).length,
        seconds: Math.round(seconds),
        'connections per second': Math.round(connections / seconds),
        'queries per second of the API': Math.round((after.queries - before.queries) / seconds),
        'API peak RSS, MB': api.peakRssMb(),
        'API heap before and after, MB': `${before.heapMb} → ${after.heapMb}`,
        'API sockets before and after': `${before.sockets} → ${after.sockets}`,
        'API queries in 3 s, idle before and after': `${before.idleQueries} → ${after.idleQueries}`,
      },
      failures: firstOf(failures),
    }
  } finally {
    await witness.end()
  }
}

type Settled = { heapMb: number; sockets: number; queries: number; idleQueries: number }

/** What the API holds without followers; after the storm it is given a while to see that they left. */
const settled = async (api: Member, idleQueries = Number.POSITIVE_INFINITY): Promise<Settled> => {
  const end = performance.now() + 20_000
  for (;;) {
    const one = await api.probe({ collect: true })
    await pause(3_000)
    const two = await api.probe({ collect: true })
    const found = {
      heapMb: two.heap_mb,
      sockets: two.handles.TCPSocketWrap ?? 0,
      queries: two.queries,
      idleQueries: two.queries - one.queries,
    }
    if (found.idleQueries <= idleQueries + lookJitter || performance.now() > end) return found
  }
}

/** The registry and the health of models are looked at each second, which may fall into 3 s once more or less. */
const lookJitter = 2

/** Connections to the database stay in their pool for a while. */
const poolSize = 10

const leftovers = (before: Settled, after: Settled): string[] => {
  const faults: string[] = []
  if (after.heapMb > before.heapMb + heapSlackMb)
    faults.push(`the API holds ${after.heapMb} MB after the storm and held ${before.heapMb} MB before`)
  if (after.sockets > before.sockets + poolSize)
    faults.push(`the API has ${after.sockets} sockets after the storm and had ${before.sockets} before`)
  if (after.idleQueries > before.idleQueries + lookJitter)
    faults.push(
      `with no follower left the API sent ${after.idleQueries} queries in 3 s, and ${before.idleQueries} before the storm`,
    )
  return faults
}
