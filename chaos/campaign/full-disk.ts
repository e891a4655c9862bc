import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { PostgresServer } from '../failures/postgres-server.ts'
import { openServers } from '../failures/servers.ts'
import { diskMissing, mountSmallDisk } from '../failures/small-disk.ts'
import type { Findings, SuiteOptions } from '../suite.ts'
import { keepApiUp } from './api.ts'
import { openClients } from './clients.ts'
import { describeFailures } from './failure-report.ts'
import { fillEmbedded } from './full-embedded.ts'
import { planOf } from './plan.ts'
import { Progress } from './progress.ts'
import { judge } from './verdict.ts'
import { Witness } from './witness.ts'
import { openWorld } from './world.ts'

const megabytes = 192
const mayDrainMs = 120_000

/** How often the server found no space, as its log has it. */
const complaintsOf = (postgres: PostgresServer): number =>
  postgres.log.split('\n').filter((line) => line.includes('No space left on device')).length

/** The disk of the database, embedded and then served, is full while runs are at work and others come in; then there is space again. */
export const runFullDisk = async ({ seed, scale, say, signal }: SuiteOptions): Promise<Findings> => {
  if (diskMissing !== null) return { figures: {}, failures: [diskMissing] }
  const embedded = await fillEmbedded(signal)
  say(`embedded: ${embedded.accepted} runs accepted, ${embedded.failures.length} faults`)
  await using disk = await mountSmallDisk(megabytes)
  await using world = await openWorld(seed, () => openServers(disk.path))
  const { postgres } = world.servers
  const witness = new Witness(postgres.url)
  const progress = new Progress()
  const stop = new AbortController()
  const both = AbortSignal.any([signal, stop.signal])
  setMaxListeners(0, both)
  // as many fillings as there are faults; runs come in as they end
  const plan = { ...planOf(seed, Math.max(0.02, scale / 10)), submittedBy: () => progress.ended + 30 }
  const clients = openClients(world, witness, plan, progress, both)
  try {
    const api = keepApiUp(world, both, 2 ** 30)
    const workers = [world.startWorker(), world.startWorker()]
    const played = clients.playAll()
    const fillings = Math.max(2, Math.round(10 * scale))
    const failures = [...embedded.failures]
    let crashes = 0
    for (let nth = 0; nth < fillings; nth++) {
      const enough = ((nth + 0.2) * plan.runs) / fillings
      await progress.until(({ ended }) => ended >= enough, both)
      await disk.fill()
      say(`full after ${progress.ended} runs`)
      const before = complaintsOf(postgres)
      // until it was met, and then for a while
      for (let waited = 0; waited < 200 && complaintsOf(postgres) === before; waited++) await pause(100)
      await pause(2000)
      const hasCrashed = !(await postgres.isUp)
      await disk.free()
      if (hasCrashed) {
        crashes++
        await postgres.start()
      }
      say(`space again${hasCrashed ? '; Postgres had given up and was started again' : ''}`)
    }
    const isDrained = await Promise.race([played.then(() => true), pause(mayDrainMs, false, { ref: false })])
    for (const worker of workers) worker.kill('SIGTERM')
    const exits = await Promise.all(workers.map(({ exited }) => exited))
    api.stop()
    const verdict = await judge(witness, world.ledger.file, clients.book, world.held)
    if (!isDrained)
      verdict.faults.push({ about: 'the end', what: `lost: not drained in ${mayDrainMs / 1000} s` })
    for (const { code } of exits)
      if (code !== 0) verdict.faults.push({ about: 'the end', what: `a worker ended with ${code}` })
    if (complaintsOf(postgres) === 0) failures.push('Postgres never met its full disk')
    failures.push(...describeFailures(world, verdict.faults))
    if (failures.length > 0) world.keep()
    return {
      figures: {
        'runs on an embedded database whose disk was full': embedded.accepted,
        'times the disk of Postgres was full': fillings,
        'Postgres gave up': crashes,
        'runs accepted': clients.book.accepted.size,
        ended: verdict.counts.statuses,
        actions: verdict.counts.actions,
        'statements that met it': complaintsOf(postgres),
        faults: verdict.faults.length,
      },
      failures,
    }
  } finally {
    stop.abort(new Error('it is over'))
    clients.close()
    await witness.close()
  }
}
