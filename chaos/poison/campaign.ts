import { setTimeout as pause } from 'node:timers/promises'
import type { BusinessApi } from '../../src/app/api.ts'
import { maxStalls } from '../../src/engine/runs/claim.ts'
import { queryOne } from '../../src/infra/database/database.ts'
import { checkInvariants } from '../../test/support/invariants.ts'
import { noOpModels } from '../../test/support/no-op-models.ts'
import { openOwnServers, serversMissing } from '../../test/support/processes.ts'
import { openTestRuntime } from '../../test/support/test-runtime.ts'
import { quantile } from '../fleet/quantile.ts'
import type { Figures, Findings, SuiteOptions } from '../suite.ts'
import { openPool } from './pool.ts'
import { parkDeadlyJob } from './queue-job.ts'
import { deadlyPrompt, type Way, ways } from './worker.ts'

const workers = 3
/**
 * The claim that brings its plan, five that bring nothing, and the one that gives it up. Each but the last ends in a death, or in a lease
 * that lapsed on a busy machine; so may have one before the plan.
 */
const claims = 1 + maxStalls + 1
const mostDeaths = claims

/** `patienceMs`: for a run to end, whatever the machine is busy with. */
type Times = { leaseMs: number; calmMs: number; patienceMs: number; perSecond: number }
/** The lease that workers have by default, for figures that mean something; a short one for a slice. */
const timesOf = (scale: number): Times =>
  scale >= 0.5
    ? { leaseMs: 30_000, calmMs: 60_000, patienceMs: 900_000, perSecond: 12 }
    : { leaseMs: 2000, calmMs: 4000, patienceMs: 240_000, perSecond: 4 }

/** `perSecond`: neighbours submitted, whatever becomes of them: an open loop. */
type Scene = {
  api: BusinessApi
  failures: string[]
  patienceMs: number
  perSecond: number
  signal: AbortSignal
}

/** Calm and poison in turn, `count` times, each time another way to die, under a steady load of neighbours whose latency is compared. */
export const poisonRuns = async (count: number, { scale, say, signal }: SuiteOptions): Promise<Findings> => {
  const { leaseMs, calmMs, ...pace } = timesOf(scale)
  if (serversMissing !== null) throw new Error(serversMissing)
  const backend = await openOwnServers()
  try {
    const runtime = await openTestRuntime(backend, { models: noOpModels(), worker: false })
    try {
      const config = { ...backend.config, leaseMs }
      await using pool = openPool({ config, concurrency: 4 }, workers, 3 * leaseMs)
      const failures: string[] = []
      const database = await backend.openDatabase()
      await using _closed = { [Symbol.asyncDispose]: () => database.close() }
      /** Every claim raises the epoch by one, and so does giving up. */
      const countClaims = async (runId: string): Promise<number> => {
        const run = await queryOne<{ epoch: number }>(database, 'SELECT epoch FROM runs WHERE run_id = $1', [
          runId,
        ])
        return (run?.epoch ?? 0) - 1
      }
      const scene = { api: runtime.of('default'), failures, ...pace, signal }
      await pool.whole()
      await neighboursWhile(scene, pause(2000)) // warm
      const calm: number[] = []
      const poisoned: number[] = []
      const deathsOf: number[] = []
      const p95Of: Figures = {}
      for (let at = 0; at < count; at++) {
        const way = ways[at % ways.length] ?? 'killed'
        calm.push(...(await neighboursWhile(scene, pause(calmMs))))
        const before = total(pool.deaths)
        const givingUp = giveUp(scene, way)
        const ended = await neighboursWhile(scene, givingUp)
        poisoned.push(...ended)
        await pool.whole()
        const deaths = total(pool.deaths) - before
        deathsOf.push(deaths)
        const made = await countClaims(await givingUp)
        if (made < claims || deaths < 1 || deaths > mostDeaths)
          failures.push(`"${way}" was claimed ${made} times and took down ${deaths} workers`)
        const p95 = quantile(ended, 0.95)
        p95Of[`their p95 while runs are ${way}, ms`] = p95
        say(`${way}: ${deaths} deaths, ${ended.length} neighbours meanwhile, p95 ${p95} ms`)
      }
      const job = await parkDeadlyJob(backend, () => total(pool.deaths), signal)
      if (job.fault) failures.push(job.fault)
      const ratio = quantile(poisoned, 0.95) / quantile(calm, 0.95)
      if (scale >= 1 && ratio > 1.2)
        failures.push(`the neighbours' p95 is ${ratio.toFixed(2)} times that without poison`)
      return {
        figures: {
          'poison runs given up': deathsOf.length,
          'lease, s': leaseMs / 1000,
          'worker deaths for each': [...new Set(deathsOf)].sort().join(', '),
          'worker deaths by how': [...pool.deaths].map(([how, n]) => `${how} ${n}`).join(', '),
          'worker deaths for the poison queue job': job.deaths,
          neighbours: calm.length + poisoned.length,
          'their p50 without poison, ms': quantile(calm, 0.5),
          'their p50 with poison, ms': quantile(poisoned, 0.5),
          'their p95 without poison, ms': quantile(calm, 0.95),
          'their p95 with poison, ms': quantile(poisoned, 0.95),
          ...p95Of,
          'their longest with poison, ms': quantile(poisoned, 1),
          'ratio of the p95': ratio.toFixed(2),
        },
        failures,
      }
    } finally {
      await runtime.close()
    }
  } finally {
    await backend.drop()
  }
}

const total = (counts: Map<string, number>): number => [...counts.values()].reduce((sum, n) => sum + n, 0)

/** Submits a run that takes its workers down, and waits until it is given up; its id. */
const giveUp = async ({ api, failures, patienceMs }: Scene, way: Way): Promise<string> => {
  const { run } = await api.submit({ prompt: deadlyPrompt(way), user_id: 'u1' })
  const view = await api
    .wait(run.id, AbortSignal.timeout(patienceMs))
    .catch((error: unknown) => String(error))
  if (typeof view === 'string') failures.push(`"${way}" is not given up: ${view}`)
  else if (view.status !== 'failed' || view.error?.code !== 'poison')
    failures.push(`"${way}" ended as ${view.status}: ${JSON.stringify(view.error)}`)
  const state = await api.state(run.id, false)
  if (state) checkInvariants(state)
  return run.id
}

/** Submits neighbours at a steady rate until `until` is over; the latency of each, in ms. */
const neighboursWhile = async (scene: Scene, until: Promise<unknown>): Promise<number[]> => {
  let over = false
  const ended = until.finally(() => {
    over = true
  })
  const runs: Promise<number>[] = []
  for (let next = performance.now(); !over; next += 1000 / scene.perSecond) {
    await pause(Math.max(0, next - performance.now()))
    scene.signal.throwIfAborted()
    runs.push(neighbour(scene))
  }
  await ended
  return Promise.all(runs)
}

/** Never rejects: what went wrong is a failure of the campaign. */
const neighbour = async ({ api, failures, patienceMs }: Scene): Promise<number> => {
  const since = performance.now()
  try {
    const { run } = await api.submit({ prompt: 'What is 1 + 1?', user_id: 'u1' })
    const view = await api.wait(run.id, AbortSignal.timeout(patienceMs))
    if (view.status !== 'completed' || view.answer !== 'Done.')
      failures.push(`the neighbour ${run.id} is ${view.status}: ${JSON.stringify(view.error)}`)
  } catch (error) {
    failures.push(`a neighbour is not done: ${String(error)}`)
  }
  return performance.now() - since
}
