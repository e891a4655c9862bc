import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../../examples/free-port.ts'
import { audit, drained, firstOf, openWitness } from '../fleet/audit.ts'
import { openHttpClient } from '../fleet/http-client.ts'
import { complaintsOf, type Member, openFleet, type ProcessExit } from '../fleet/members.ts'
import { startProvider } from '../fleet/provider.ts'
import { quantile } from '../fleet/quantile.ts'
import { openQueueClient } from '../fleet/queue-client.ts'
import { randomFrom } from '../fleet/random.ts'
import { openServers } from '../fleet/servers.ts'
import type { Findings, SuiteOptions } from '../suite.ts'
import { installLeaseLog, type LeaseLog, readLeaseLog } from './lease-log.ts'
import { startLoad } from './load.ts'

const workers = 3
const exitWithinMs = 60_000
/** A run handed back is free at once; anything near the ten seconds of the reconciler means that no worker was woken. */
const gapWithinMs = 5_000

type Stopped = ProcessExit & { name: string; errors: string[] }

/** Steady load while a process is stopped every 20 s, workers in turn and every fourth time the API. */
export const rolling = async ({ seed, scale, say, signal }: SuiteOptions): Promise<Findings> => {
  const restarts = Math.max(4, Math.round(18 * scale))
  // a slice must end soon, on a busy machine too
  const { everyMs, ...pace } =
    scale < 1
      ? { everyMs: 6_000, perSecond: 5, slowMs: 8_000 }
      : { everyMs: 20_000, perSecond: 8, slowMs: 20_000 }
  await using servers = await openServers()
  await installLeaseLog(servers.databaseUrl)
  await using provider = await startProvider()
  await using fleet = openFleet(servers, provider.url)
  await using queue = openQueueClient(servers.redisUrl)
  const startWorker = () => fleet.startWorker({ concurrency: 32 })
  const port = await freePort()
  let api = await fleet.startApi({ port })
  const crew = await Promise.all(Array.from({ length: workers }, startWorker))
  using http = openHttpClient(api.url)
  const witness = await openWitness(servers.databaseUrl)
  try {
    const since = performance.now()
    using load = startLoad(http, queue, { ...pace, random: randomFrom(seed) })
    const stopped: Stopped[] = []
    let waiting = 0
    for (let restart = 1; restart <= restarts; restart++) {
      await pause(everyMs, undefined, { signal })
      waiting += provider.waiting()
      if (restart % 4 === 0) {
        stopped.push(await stop(api))
        // its port is free again only now; clients try until it is back
        api = await fleet.startApi({ port })
      } else {
        const oldest = crew.shift()
        if (!oldest) throw new Error('there is no worker to stop')
        const [gone, successor] = await Promise.all([stop(oldest), startWorker()])
        stopped.push(gone)
        crew.push(successor)
      }
      const last = stopped.at(-1)
      say(`${restart} of ${restarts}: ${last?.name} exited with ${last?.code} after ${last?.tookMs} ms`)
    }
    const seconds = Math.round((performance.now() - since) / 1000)
    await load.stop()
    const drainedMs = await drained(witness, 60_000, signal)
    const leases = await readLeaseLog(servers.databaseUrl)
    const audited = await audit(witness, load.accepted, provider.effects)
    stopped.push(...(await Promise.all([...crew, api].map(stop))))
    const failures = [...load.failures, ...audited.failures, ...exitFaults(stopped), ...leaseFaults(leases)]
    if (drainedMs === null) failures.push('runs were left unfinished after 60 s')
    return {
      figures: {
        seconds,
        'processes restarted': restarts,
        'of these the API': Math.floor(restarts / 4),
        'jobs accepted': load.accepted.size,
        'requests sent again': load.retried,
        lost: audited.lost,
        doubled: audited.doubled,
        actions: audited.actions,
        'slow calls under way at a SIGTERM, mean': Math.round(waiting / restarts),
        'runs handed back': leases.handedBack,
        'hand-back to claim, ms p50 / p99 / max': [0.5, 0.99, 1]
          .map((share) => quantile(leases.gapsMs, share))
          .join(' / '),
        'leases that had to lapse': leases.lapsed,
        'most claims without an action': leases.mostStalls,
        'SIGTERM to exit, ms p50 / max': [0.5, 1]
          .map((share) =>
            quantile(
              stopped.map(({ tookMs }) => tookMs),
              share,
            ),
          )
          .join(' / '),
        'exit codes': [...new Set(stopped.map(({ code, signal }) => code ?? signal))].join(', '),
        'drained after, ms': drainedMs ?? 'never',
      },
      failures: firstOf(failures),
    }
  } finally {
    await witness.end()
  }
}

/** Stops a process, and keeps what it complained about. */
const stop = async (member: Member): Promise<Stopped> => ({
  ...(await member.stop()),
  name: member.name,
  errors: complaintsOf(member, 'error'),
})

const exitFaults = (stopped: readonly Stopped[]): string[] =>
  stopped.flatMap(({ name, code, signal, tookMs, errors }) => [
    ...(code === 0 ? [] : [`${name} exited with ${code ?? signal}`]),
    ...(tookMs <= exitWithinMs ? [] : [`${name} took ${tookMs} ms to exit`]),
    ...errors,
  ])

const leaseFaults = ({ handedBack, gapsMs, lapsed, mostStalls }: LeaseLog): string[] => {
  const faults: string[] = []
  if (handedBack === 0) faults.push('no run was handed back, so nothing was tried')
  if (gapsMs.length < handedBack)
    faults.push(`${handedBack - gapsMs.length} runs that were handed back were never taken up`)
  // most of them: one may wait for a processor
  const p50 = quantile(gapsMs, 0.5)
  if (p50 > gapWithinMs) faults.push(`runs handed back waited ${p50} ms (p50) to be taken up`)
  if (lapsed > 0) faults.push(`${lapsed} runs were not handed back: their leases had to lapse`)
  if (mostStalls > 1)
    faults.push(`a run was claimed ${mostStalls} times without a new action: a stop was counted against it`)
  return faults
}
