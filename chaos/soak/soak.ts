import { setTimeout as pause } from 'node:timers/promises'
import { audit, drained, firstOf, openWitness } from '../fleet/audit.ts'
import { type HttpClient, openHttpClient } from '../fleet/http-client.ts'
import { promptOf } from '../fleet/job.ts'
import { openFleet } from '../fleet/members.ts'
import { startProvider } from '../fleet/provider.ts'
import { quantile } from '../fleet/quantile.ts'
import { openQueueClient } from '../fleet/queue-client.ts'
import { randomFrom } from '../fleet/random.ts'
import { openServers } from '../fleet/servers.ts'
import { checkStates } from '../fleet/states.ts'
import type { Figures, Findings, SuiteOptions } from '../suite.ts'
import { type SoakLoad, startSoakLoad } from './load.ts'
import { judgedSeries, type Sample, startSampling } from './samples.ts'
import { findGrowth, slopeOf } from './slope.ts'

const clientsAtFullLoad = 16

/** Runs per second that 16 clients get who each ask for the next once they have the last; it also warms everything up. */
const fullThroughput = async (http: HttpClient, forMs: number, accepted: Set<string>): Promise<number> => {
  const since = performance.now()
  let count = 0
  const client = async (): Promise<void> => {
    while (performance.now() - since < forMs) {
      const name = `full${count++}`
      const body = { prompt: promptOf(name, ['calculate']), user_id: 'full' }
      const { status } = await http.post('/v1/runs/wait', body, { 'idempotency-key': name })
      if (status !== 200) throw new Error(`at full load a run was answered ${status}`)
      accepted.add(name)
    }
  }
  await Promise.all(Array.from({ length: clientsAtFullLoad }, client))
  return count / ((performance.now() - since) / 1000)
}

/** An hour (scale 1) at half of what the machine can do. `leakBytes`: what the worker is to forget with every run. */
export const soak = async (
  { seed, scale, say, signal }: SuiteOptions,
  { leakBytes = 0 } = {},
): Promise<Findings & { samples: Sample[] }> => {
  await using servers = await openServers()
  await using provider = await startProvider()
  await using fleet = openFleet(servers, provider.url)
  await using queue = openQueueClient(servers.redisUrl)
  const api = await fleet.startApi()
  const worker = await fleet.startWorker({ concurrency: 16, leakBytes })
  using http = openHttpClient(api.url)
  const witness = await openWitness(servers.databaseUrl)
  const accepted = new Set<string>()
  try {
    const full = await fullThroughput(http, Math.max(15_000, 60_000 * scale), accepted)
    say(`full throughput is ${full.toFixed(1)} runs/s; half of that from now on`)
    using sampling = startSampling(
      [api, worker],
      witness,
      queue,
      Math.min(10_000, Math.max(1_500, 100_000 * scale)),
    )
    using load = startSoakLoad(http, queue, { perSecond: full / 2, random: randomFrom(seed) })
    const soakMs = 3_600_000 * scale
    const since = performance.now()
    while (performance.now() - since < soakMs && load.failures.length === 0) {
      await pause(Math.min(60_000, soakMs / 4), undefined, { signal })
      say(`${Math.round((performance.now() - since) / 1000)} s: ${JSON.stringify(sampling.samples.at(-1))}`)
    }
    await sampling.stop()
    const underWay = await load.stop()
    for (const name of load.accepted) accepted.add(name)
    const drainedMs = await drained(witness, 60_000, signal)
    const audited = await audit(witness, accepted, provider.effects)
    const series = judgedSeries(sampling.samples)
    const failures = [
      ...load.failures,
      ...series.flatMap((one) => findGrowth(one) ?? []),
      ...audited.failures,
      ...(await checkStates(http, witness, 100)),
    ]
    // in a slice others may well load the machine; the hour is worth something only at half load
    if (scale >= 1 && load.leftOut > load.accepted.size / 50)
      failures.push(`${load.leftOut} jobs were left out: this was no steady half load`)
    if (drainedMs === null) failures.push('runs were left unfinished after 60 s')
    for (const member of [worker, api]) {
      const { code, tookMs } = await member.stop()
      if (code !== 0 || tookMs > 15_000)
        failures.push(`${member.name} exited with ${code} after ${tookMs} ms`)
    }
    const figures: Figures = {
      minutes: Math.round(soakMs / 6000) / 10,
      'full throughput, runs/s': full.toFixed(1),
      'load, runs/s': (load.accepted.size / (soakMs / 1000)).toFixed(1),
      runs: audited.runs,
      actions: audited.actions,
      lost: audited.lost,
      doubled: audited.doubled,
      'under way at the end': underWay,
      'left out, the machine being busy': load.leftOut,
      ...latencyFigures(load.latencies, soakMs),
      ...Object.fromEntries(
        series.map(({ name, unit, points }) => {
          const { perHour, error, growth } = slopeOf(points)
          return [
            `slope of ${name.replaceAll('_', ' ')}`,
            `${perHour.toFixed(2)} ± ${error.toFixed(2)} ${unit}/h (${growth.toFixed(2)} in the window)`,
          ]
        }),
      ),
      ...spans(sampling.samples),
    }
    return { figures, failures: firstOf(failures), samples: sampling.samples }
  } finally {
    await witness.end()
  }
}

/** Of the first and the last sixth of the time. */
const latencyFigures = (latencies: SoakLoad['latencies'], soakMs: number): Figures => {
  const of = (from: number, to: number): string => {
    const some = latencies.filter(({ at }) => at >= from && at < to).map(({ ms }) => ms)
    return `${quantile(some, 0.5)} / ${quantile(some, 0.99)}`
  }
  return {
    'submit to result in the first sixth, ms p50 / p99': of(0, soakMs / 6),
    'submit to result in the last sixth, ms p50 / p99': of((soakMs * 5) / 6, soakMs),
  }
}

/** From where to where everything went that was sampled, the first quarter left out. */
const spans = (samples: readonly Sample[]): Figures => {
  const last = samples.at(-1)
  const first = samples.find(({ at_s }) => at_s >= (last?.at_s ?? 0) / 4)
  return Object.fromEntries(
    Object.keys(first ?? {})
      .filter((name) => name !== 'at_s')
      .map((name) => [
        `${name.replaceAll('_', ' ')} after a quarter and at the end`,
        `${first?.[name]} → ${last?.[name]}`,
      ]),
  )
}
