import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { firstOf } from '../fleet/audit.ts'
import { complaintsOf, openFleet } from '../fleet/members.ts'
import { quantile } from '../fleet/quantile.ts'
import { openServers } from '../fleet/servers.ts'
import { seededShare } from '../seeded-choice.ts'
import type { Figures, Findings, SuiteOptions } from '../suite.ts'
import { deliverRun, deliverSocket, openDelivery, type RunDelivery } from './deliver.ts'
import { bodies } from './families/bodies.ts'
import { businesses } from './families/businesses.ts'
import { files } from './families/files.ts'
import { memory } from './families/memory.ts'
import { patterns } from './families/patterns.ts'
import { prompts } from './families/prompts.ts'
import { queue } from './families/queue.ts'
import { settings } from './families/settings.ts'
import { vendors } from './families/vendors.ts'
import {
  countOf,
  type Family,
  families,
  type HttpInput,
  type Input,
  type JobInput,
  type RunInput,
  type SocketInput,
  type Target,
} from './input.ts'
import { deliverJobs } from './jobs.ts'
import { openHostileVendors, readVictim, setStage, startVendors } from './stage.ts'
import { bystandersWhile, cpuSecondsOf, limits, p95, watchProcesses } from './watch.ts'

const generators: Record<Family, (target: Target) => Input[] | Promise<Input[]>> = {
  businesses,
  bodies,
  vendors,
  files,
  patterns,
  prompts,
  memory,
  queue,
  settings,
}

/** Below this scale what waits for long time limits is left out; below the next one all that waits, and the families attack at once. */
const wholeScale = 0.5
const sliceScale = 0.05
const socketMsOf = (scale: number): number =>
  scale < sliceScale ? 0 : scale < wholeScale ? 50_000 : Number.POSITIVE_INFINITY
const calmMsOf = (scale: number): number => Math.min(20_000, Math.max(1000, scale * 60_000))
/** It ends by then; a tenth of it takes a minute and a half on a quiet machine of two cores. */
const longestMs = 40 * 60_000
const lanesOf = { http: 6, run: 8 }

/** Attacks a served Mason with every input, while another business works; `only`: these families. */
export const attack = async (
  { seed, scale, say, signal: stopped }: SuiteOptions,
  only: readonly Family[] = families,
): Promise<Findings> => {
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(longestMs)])
  await using servers = await openServers()
  await using outside = await startVendors()
  const adminToken = randomBytes(24).toString('hex')
  await using fleet = openFleet(servers, '', outside.modelUrl, {
    MASON_AUTH: 'required',
    MASON_ADMIN_TOKEN: adminToken,
  })
  const api = await fleet.startApi({ heapMb: limits.heapMb })
  const members = [api, ...(await Promise.all([fleet.startWorker(), fleet.startWorker()]))]
  const { target, call, bystander } = await setStage(api.url, adminToken, outside)
  await using database = {
    sql: await openPostgresDatabase({ url: servers.databaseUrl, max: 2 }),
    [Symbol.asyncDispose]: () => database.sql.close(),
  }
  using delivery = openDelivery(target)
  const isLearning = async (user: string): Promise<boolean> => {
    const { rows } = await database.sql.query(
      `SELECT FROM distillations d JOIN runs r USING (tenant, run_id) JOIN sessions s USING (tenant, session_id)
       WHERE s.user_id = $1 AND d.failed_at IS NULL LIMIT 1`,
      [user],
    )
    return rows.length > 0
  }
  while (await isLearning(target.victim.user)) await pause(200, undefined, { signal })
  const before = await readVictim(call, target)
  const warm = await bystandersWhile(call, bystander, 'warm', pause(calmMsOf(scale) / 2))
  const calm = await bystandersWhile(call, bystander, 'calm', pause(calmMsOf(scale)))
  say(`alone, the bystander's p95 is ${p95(calm.ms)} ms`)

  const failures = [...warm.failures, ...calm.failures]
  const figures: Figures = {}
  const underWay = new Set<string>()
  const watch = watchProcesses(members, () => [...underWay].slice(-12).join(' | ').slice(0, 600))
  const runs: RunDelivery = {
    call,
    controlUrl: outside.controlUrl,
    token: target.tokens.mallory,
    isLearning,
  }
  const deliver = async (input: HttpInput | RunInput | SocketInput): Promise<string[]> => {
    const judged =
      input.kind === 'http'
        ? [await delivery.http(input)]
        : input.kind === 'run'
          ? await deliverRun(runs, input)
          : [await deliverSocket(target, input, signal)]
    const names = input.kind === 'run' ? input.parts.map(({ name }) => name) : [input.name]
    return judged.flatMap((fault, at) => (fault === null ? [] : [`${names[at]}: ${fault}`]))
  }
  const inLanes = async (
    inputs: readonly (HttpInput | RunInput | SocketInput)[],
    lanes: number,
  ): Promise<string[]> => {
    const waiting = [...inputs]
    const found: string[] = []
    await Promise.all(
      Array.from({ length: lanes }, async () => {
        for (let input = waiting.shift(); input && !signal.aborted; input = waiting.shift()) {
          underWay.add(input.name)
          found.push(...(await deliver(input)))
          underWay.delete(input.name)
        }
      }),
    )
    return found
  }
  const meanwhile: number[] = []
  const campaign = async (): Promise<void> => {
    const late: Promise<void>[] = []
    const attackWith = async (family: Family): Promise<void> => {
      const since = performance.now()
      const runsBefore = meanwhile.length
      const inputs = slice(await generators[family](target), scale, seed)
      const of = <Kind extends Input['kind']>(kind: Kind) =>
        inputs.filter((input): input is Extract<Input, { kind: Kind }> => input.kind === kind)
      const keep = (found: readonly string[]): void => {
        figures[`${family}: did not hold`] = Number(figures[`${family}: did not hold`] ?? 0) + found.length
        failures.push(...firstOf(found, 40).map((one) => `${family}: ${one}`))
      }
      const answers = [...of('http'), ...of('run')].flatMap(({ answer }) => answer ?? [])
      await openHostileVendors(call, target, new Set(answers))
      const sockets = of('socket')
      figures[`${family}: inputs`] = inputs.reduce((sum, input) => sum + countOf(input), 0)
      if (sockets.length > 0) late.push(inLanes(sockets, sockets.length).then(keep))
      const [http, run, jobs] = await Promise.all([
        inLanes(of('http'), lanesOf.http),
        inLanes(of('run'), lanesOf.run),
        deliverJobs(
          { redisUrl: servers.redisUrl, database: database.sql, seed, signal },
          of('job') as JobInput[],
        ),
      ])
      keep([...http, ...run, ...jobs])
      figures[`${family}: bystander's p95, ms`] = p95(meanwhile.slice(runsBefore))
      say(
        `${family}: ${figures[`${family}: inputs`]} inputs in ${Math.round((performance.now() - since) / 1000)} s, ${figures[`${family}: did not hold`]} did not hold`,
      )
    }
    if (scale < sliceScale) await Promise.all(only.map(attackWith))
    else for (const family of only) await attackWith(family)
    await Promise.all(late)
  }
  const processes: [name: string, pid: number][] = [
    ...members.map(({ name, pid }): [string, number] => [name, pid]),
    ...[process.pid, ...outside.pids].map((pid): [string, number] => ['attackers', pid]),
  ]
  const cpuOf = (): number[] => processes.map(([, pid]) => cpuSecondsOf(pid))
  const cpuBefore = cpuOf()
  const hit = await bystandersWhile(call, bystander, 'hit', campaign(), meanwhile)
  const cpu: Record<string, number> = {}
  if (watch.ends.length === 0)
    for (const [at, after] of cpuOf().entries()) {
      const name = processes[at]?.[0] ?? ''
      cpu[name] = (cpu[name] ?? 0) + after - (cpuBefore[at] ?? 0)
    }
  failures.push(...firstOf(hit.failures), ...firstOf(await watch.stop()))
  for (const member of members) {
    // an error of the database's own in a loop that retries: some input is stored that a statement cannot read
    const unread = complaintsOf(member, 'warn').filter((line) => line.includes('"error: '))
    failures.push(...firstOf([...complaintsOf(member, 'error'), ...unread]))
  }
  if (signal.aborted) failures.push(`it was stopped: ${String(signal.reason)}`)
  const ratio = p95(hit.ms) / p95(calm.ms)
  // the few runs of a slice say little
  if (scale >= wholeScale && ratio > limits.p95Ratio)
    failures.push(`the bystander's p95 is ${ratio.toFixed(2)} times that alone`)
  const apiMb = watch.ends.length > 0 ? 0 : api.peakRssMb()
  if (apiMb > limits.apiMb)
    failures.push(`the API had ${apiMb} MB; at its largest: ${watch.largest[api.name]?.while}`)
  if ((await readVictim(call, target)) !== before) failures.push('what the victim has is not what it was')
  const { caught } = (await (await fetch(`${outside.hostileUrl}/count`)).json()) as { caught: number }
  if (caught > 0) failures.push(`${caught} requests went to an address of this machine`)
  return {
    figures: {
      inputs: Object.entries(figures).reduce(
        (sum, [name, n]) => sum + (name.endsWith(': inputs') ? Number(n) : 0),
        0,
      ),
      ...figures,
      "bystander's runs alone and meanwhile": `${calm.ms.length}, ${hit.ms.length}`,
      'their p50 alone and meanwhile, ms': `${quantile(calm.ms, 0.5)}, ${quantile(hit.ms, 0.5)}`,
      'their p95 alone and meanwhile, ms': `${p95(calm.ms)}, ${p95(hit.ms)}`,
      [`ratio of the p95 (at most ${limits.p95Ratio})`]: ratio.toFixed(2),
      'their longest meanwhile, ms': quantile(hit.ms, 1),
      ...Object.fromEntries(
        Object.entries(watch.longest).map(([name, { cpu, wall }]) => [
          `${name}: longest turn of the event loop, ms (at most ${limits.turnMs}; by the clock)`,
          `${cpu} (${wall})`,
        ]),
      ),
      'processor time, s': Object.entries(cpu)
        .map(([name, seconds]) => `${name} ${Math.round(seconds)}`)
        .join(', '),
      [`API peak RSS, MB (at most ${limits.apiMb})`]: apiMb,
      ...Object.fromEntries(
        Object.entries(watch.largest).map(([name, { rss_mb, heap_mb, external_mb }]) => [
          `${name}: largest RSS seen, MB (heap, external)`,
          `${rss_mb} (${heap_mb}, ${external_mb})`,
        ]),
      ),
      'workers peak RSS, MB':
        watch.ends.length > 0
          ? 0
          : members
              .slice(1)
              .map((member) => member.peakRssMb())
              .join(', '),
      'processes that died': watch.ends.length,
    },
    failures,
  }
}

const fewest = 5

/** A part of the inputs that its seed alone decides, and a few of each family at least. */
const slice = (inputs: readonly Input[], scale: number, seed: number): Input[] => {
  if (scale >= 1) return [...inputs]
  const some = inputs.filter(
    (input) =>
      seededShare(seed, input.name) < scale &&
      !(input.kind === 'socket' && input.withinMs > socketMsOf(scale)),
  )
  return some.length >= fewest ? some : inputs.slice(0, fewest)
}
