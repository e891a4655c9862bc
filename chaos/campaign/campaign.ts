import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { Findings, SuiteOptions } from '../suite.ts'
import { keepApiUp } from './api.ts'
import { openClients } from './clients.ts'
import { describeFailures } from './failure-report.ts'
import { injectFaults } from './fault-injection.ts'
import { planOf } from './plan.ts'
import { Progress } from './progress.ts'
import { judge } from './verdict.ts'
import { Witness } from './witness.ts'
import { harassWorkers } from './workers.ts'
import { openWorld } from './world.ts'

const mayDrainMs = 170_000
/** After that the runs are counted as lost. */
const patienceMs = 180_000

/** Runs under kills, freezes and broken servers; then what the database and the ledger say of them. */
export const runCampaign = async ({ seed, scale, say, signal }: SuiteOptions): Promise<Findings> => {
  const plan = planOf(seed, scale)
  say(`${plan.runs} runs in ${plan.sessions.length} sessions, ${plan.kills} kills, ${plan.stops} freezes`)
  await using world = await openWorld(seed)
  const witness = new Witness(world.servers.postgres.url)
  const progress = new Progress()
  const failing = new AbortController()
  setMaxListeners(0, signal, failing.signal)
  const both = AbortSignal.any([signal, failing.signal])
  setMaxListeners(0, both)
  const stopTalking = report(progress, say)
  const since = performance.now()
  try {
    const api = keepApiUp(world, both)
    const clients = openClients(world, witness, plan, progress, both)
    const played = clients.playAll()
    played.catch((error: unknown) => failing.abort(error))
    const [faults] = await Promise.all([
      injectFaults(world, plan, progress, say, both),
      harassWorkers(world, witness, plan, progress, both),
    ]).catch((error: unknown) => {
      failing.abort(error)
      throw error
    })
    const harassedMs = performance.now() - since
    say('the last fault is over; draining')
    const survivors = [world.startWorker(), world.startWorker(), world.startWorker()]
    const drainedMs = await drain(played)
    for (const worker of survivors) worker.kill('SIGTERM')
    const exits = await Promise.all(survivors.map(({ exited }) => exited))
    api.stop()
    say('judging')
    const verdict = await judge(witness, world.ledger.file, clients.book, world.held)
    const found = [...verdict.faults]
    if (drainedMs === null || drainedMs > mayDrainMs)
      found.push({ about: 'the end', what: `lost: not drained within ${mayDrainMs / 1000} s` })
    for (const { code } of exits)
      if (code !== 0) found.push({ about: 'the end', what: `a worker that was stopped ended with ${code}` })
    const count = (what: RegExp): number => found.filter((fault) => what.test(fault.what)).length
    if (found.length > 0) world.keep()
    return {
      figures: {
        'runs accepted': clients.book.accepted.size,
        ended: verdict.counts.statuses,
        'actions, each compared with what was held': verdict.counts.actions,
        'SIGKILL of a worker': progress.kills,
        'SIGSTOP past the lease': progress.stops,
        'wrong clocks': plan.canSkew
          ? 'every third worker, 45 s ahead or behind'
          : 'none: faketime is not installed',
        'Redis faults': listed(faults, 'redis '),
        'Postgres faults': listed(faults, 'postgres '),
        'kills of the API': api.kills(),
        'states compared': verdict.counts.compared,
        effects: verdict.counts.effects,
        'questions to people': verdict.counts.people,
        lost: count(/^lost/),
        'doubled actions': count(/^doubled(?! effect)/),
        'doubled effects': count(/^doubled effect/),
        'minutes under faults': Math.round(harassedMs / 6000) / 10,
        'drained after the last fault':
          drainedMs === null ? 'never' : `${Math.round(drainedMs / 100) / 10} s`,
      },
      failures: [
        ...(plan.canSkew ? [] : ['faketime is missing: .ci/services.sh install']),
        ...describeFailures(world, found),
      ],
    }
  } catch (error) {
    world.keep()
    say(`broken off: ${error instanceof Error ? error.stack : error}; logs in ${world.folder}`)
    throw error
  } finally {
    failing.abort(new Error('the campaign is over'))
    stopTalking()
    await witness.close()
  }
}

/** Milliseconds until the last run has ended; null when that takes too long. */
const drain = async (played: Promise<void>): Promise<number | null> => {
  const since = performance.now()
  const late = pause(patienceMs, 'late' as const, { ref: false })
  return (await Promise.race([played, late])) === 'late' ? null : performance.now() - since
}

const report = (progress: Progress, say: (line: string) => void): (() => void) => {
  const timer = setInterval(() => {
    const { submitted, ended, kills, stops, refusals } = progress
    say(`${submitted} submitted, ${ended} ended, ${kills} kills, ${stops} freezes, ${refusals} failed starts`)
  }, 10_000)
  return () => clearInterval(timer)
}

const listed = (done: Record<string, number>, prefix: string): string => {
  const those = Object.entries(done).filter(([name]) => name.startsWith(prefix))
  const total = those.reduce((sum, [, count]) => sum + count, 0)
  return `${total}: ${those.map(([name, count]) => `${count} ${name.slice(prefix.length)}`).join(', ')}`
}
