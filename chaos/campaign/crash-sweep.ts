import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { openSharedServers } from '../failures/servers.ts'
import type { Findings, SuiteOptions } from '../suite.ts'
import { keepApiUp } from './api.ts'
import { openClients } from './clients.ts'
import { writes } from './crash-points.ts'
import { describeFailures } from './failure-report.ts'
import { planOf } from './plan.ts'
import { Progress } from './progress.ts'
import { choosePoints, points, sweepPoints } from './sweep.ts'
import { judge } from './verdict.ts'
import { Witness } from './witness.ts'
import { openWorld } from './world.ts'

const mayDrainMs = 120_000

/** A queue job whose worker died comes again after about a minute. */
const untilRejected = async (witness: Witness, count: number, signal: AbortSignal): Promise<void> => {
  while ((await witness.query('SELECT FROM rejected_jobs')).length < count)
    await pause(200, undefined, { signal })
}

/** The chosen crash points; then what the database and the ledger say of the runs that went through them. */
export const runSweep = async ({ seed, scale, say, signal }: SuiteOptions): Promise<Findings> => {
  await using world = await openWorld(seed, openSharedServers)
  const witness = new Witness(world.servers.postgres.url)
  const stop = new AbortController()
  const both = AbortSignal.any([signal, stop.signal])
  setMaxListeners(0, both)
  const clients = openClients(world, witness, planOf(seed, 0), new Progress(), both)
  try {
    const api = keepApiUp(world, both, 2 ** 30)
    const swept = await sweepPoints(world, witness, clients, seed, choosePoints(seed, scale), say, both)
    const survivors = [world.startWorker(), world.startWorker()]
    const ids = [...clients.book.accepted.values()].map(({ run_id }) => run_id)
    const isDrained = await Promise.race([
      Promise.all([clients.untilEnded(ids), untilRejected(witness, swept.rejected, both)]).then(() => true),
      pause(mayDrainMs, false, { ref: false }),
    ])
    for (const worker of survivors) worker.kill('SIGTERM')
    await Promise.all(survivors.map(({ exited }) => exited))
    api.stop()
    const verdict = await judge(witness, world.ledger.file, clients.book, world.held, swept)
    if (!isDrained)
      verdict.faults.push({ about: 'the end', what: `lost: not drained in ${mayDrainMs / 1000} s` })
    const unswept = Object.keys(writes).filter((write) => !points.some((point) => point.write === write))
    const failures = [
      ...unswept.map((write) => `no point of the sweep is at the write ${write}`),
      ...swept.failures,
      ...describeFailures(world, verdict.faults),
    ]
    if (failures.length > 0) world.keep()
    return {
      figures: {
        'durable writes': Object.keys(writes).length,
        'points at which a worker died': swept.reached,
        'runs accepted': clients.book.accepted.size,
        ended: verdict.counts.statuses,
        actions: verdict.counts.actions,
        effects: verdict.counts.effects,
        faults: verdict.faults.length,
      },
      failures,
    }
  } finally {
    stop.abort(new Error('the sweep is over'))
    clients.close()
    await witness.close()
  }
}
