import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Queue } from 'bullmq'
import type { Database } from '../../src/infra/database/database.ts'
import type { Backend } from '../../test/support/backend.ts'
import { openOwnServers, serversMissing } from '../../test/support/processes.ts'
import { type Child, startChild } from '../child.ts'
import { seededPick, seededShare } from '../seeded-choice.ts'
import type { Findings, SuiteOptions } from '../suite.ts'

const script = fileURLToPath(new URL('./worker-process.ts', import.meta.url))
const jobsPerSession = 5
const fleets = [1, 2, 4]
/** Longer than the lease of the intake, so that another one leads meanwhile. */
const frozenMs = 4500
const patienceMs = 120_000

type Worker = Child<{ event: 'ready' }>
type Disruption = 'kill' | 'freeze'
type Totals = {
  swapped: number
  lost: number
  doubled: number
  kills: number
  freezes: number
  terms: number
}

/**
 * Sessions of five queue jobs, sent in rounds, while workers are killed and frozen. The runs are not executed: their order of
 * admission is what counts.
 */
export const turns = async ({ seed, scale, say, signal }: SuiteOptions): Promise<Findings> => {
  if (serversMissing !== null) throw new Error(serversMissing)
  const share = (full: number): number => Math.ceil((full * scale) / fleets.length)
  const figures: Record<string, number | string> = { sessions: 0, jobs: 0 }
  const totals: Totals = { swapped: 0, lost: 0, doubled: 0, kills: 0, freezes: 0, terms: 0 }
  const failures: string[] = []
  for (const size of fleets) {
    signal.throwIfAborted()
    const sessions = share(1000)
    const disruptions = [
      ...Array<Disruption>(share(50)).fill('kill'),
      ...Array<Disruption>(share(20)).fill('freeze'),
    ]
    const startedAt = performance.now()
    const found = await turnsOf({ size, sessions, disruptions, seed, signal })
    for (const name of Object.keys(totals) as (keyof Totals)[]) totals[name] += found[name]
    figures.sessions = Number(figures.sessions) + sessions
    figures.jobs = Number(figures.jobs) + sessions * jobsPerSession
    const words = `${found.swapped} swapped, ${found.lost} lost, ${found.doubled} doubled`
    const s = Math.round((performance.now() - startedAt) / 1000)
    say(
      `${size} workers, ${sessions} sessions, ${disruptions.length} disruptions, ${found.terms} leaders: ${words} (${s} s)`,
    )
    if (found.swapped + found.lost + found.doubled > 0)
      failures.push(`with ${size} workers: ${[words, ...found.refused].join('; ')}`)
  }
  return { figures: { ...figures, ...totals }, failures }
}

type Scene = {
  size: number
  sessions: number
  disruptions: readonly Disruption[]
  seed: number
  signal: AbortSignal
}

const turnsOf = async (scene: Scene): Promise<Totals & { refused: string[] }> => {
  const backend = await openOwnServers()
  const database = await backend.openDatabase()
  const fleet = openFleet(backend)
  const queue = new Queue('mason-runs', {
    connection: { url: backend.config.redisUrl ?? '' },
    prefix: backend.config.queuePrefix,
  })
  try {
    await Promise.all(Array.from({ length: scene.size }, () => fleet.add()))
    await sendUnderDisruptions(scene, fleet, queue, database)
    await untilEmpty(queue, scene.signal)
    return { ...(await judge(database, scene.sessions)), ...countDisruptions(scene.disruptions) }
  } finally {
    await fleet.end()
    await queue.close()
    await database.close()
    await backend.drop()
  }
}

/** The jobs in rounds, a share of them before each disruption; the rest of the time is the workers'. */
const sendUnderDisruptions = async (
  { sessions, disruptions, seed, size, signal }: Scene,
  fleet: ReturnType<typeof openFleet>,
  queue: Queue,
  database: Database,
): Promise<void> => {
  const jobs = Array.from({ length: sessions * jobsPerSession }, (_, at) =>
    toJob(at % sessions, Math.floor(at / sessions) + 1),
  )
  const ordered = disruptions
    .map((disruption, at) => ({ disruption, place: seededShare(seed, size, at) }))
    .sort((a, b) => a.place - b.place)
  const perDisruption = Math.ceil(jobs.length / ordered.length)
  for (const [at, { disruption }] of ordered.entries()) {
    const more = jobs.splice(0, perDisruption)
    const half = Math.ceil(more.length / 2)
    await queue.addBulk(more.slice(0, half))
    // two of three meet the leader, while it takes and admits them
    const isLeader = at % 3 > 0
    const other = seededPick(fleet.workers(), seed, size, at, 'who')
    const leader = isLeader ? await findLeader(database, fleet.workers(), signal) : other
    await pause(seededShare(seed, size, at, 'when') * (at % 2 > 0 ? 150 : 1500), undefined, { signal })
    const replace = fleet.strike(disruption, leader)
    await queue.addBulk(more.slice(half))
    await replace
  }
}

const toJob = (session: number, n: number) => ({
  name: 'run',
  data: { prompt: `${n}`, user_id: 'ann', session_id: `s${session}`, delay_ms: 86_400_000 },
  opts: { jobId: `job-${session}-${n}` },
})

const findLeader = async (
  database: Database,
  workers: readonly Worker[],
  signal: AbortSignal,
): Promise<Worker> => {
  for (const end = performance.now() + patienceMs; performance.now() < end; ) {
    const { rows } = await database.query<{ owner: string }>(
      'SELECT owner FROM intake_lease WHERE lease_until > clock_timestamp()',
    )
    const leader = workers.find(({ pid }) => rows[0]?.owner.startsWith(`worker_${pid}_`))
    if (leader) return leader
    await pause(10, undefined, { signal })
  }
  throw new Error(`no worker leads the intake for ${patienceMs} ms`)
}

const openFleet = (backend: Backend) => {
  const workers = new Set<Worker>()
  const add = async (): Promise<void> => {
    const worker: Worker = startChild(script, backend.config)
    await worker.next('ready')
    workers.add(worker)
  }
  return {
    add,
    workers: () => [...workers],
    async strike(disruption: Disruption, worker: Worker): Promise<void> {
      if (disruption === 'kill') {
        workers.delete(worker)
        worker.signal('SIGKILL')
        await worker.ended
        return add()
      }
      worker.signal('SIGSTOP')
      await pause(frozenMs)
      worker.signal('SIGCONT')
    },
    async end(): Promise<void> {
      for (const worker of workers) worker.signal('SIGKILL')
      await Promise.all([...workers].map(({ ended }) => ended))
    },
  }
}

const untilEmpty = async (queue: Queue, signal: AbortSignal): Promise<void> => {
  const end = performance.now() + patienceMs
  while ((await queue.getJobCountByTypes('wait', 'prioritized', 'active', 'delayed')) > 0) {
    if (performance.now() > end) throw new Error(`jobs are left after ${patienceMs} ms`)
    await pause(100, undefined, { signal })
  }
}

const judge = async (
  database: Database,
  sessions: number,
): Promise<Pick<Totals, 'swapped' | 'lost' | 'doubled' | 'terms'> & { refused: string[] }> => {
  const { rows } = await database.query<{ prompts: string[] }>(
    `SELECT json_agg(q.request->>'prompt' ORDER BY r.turn) AS prompts FROM runs r JOIN run_requests q USING (tenant, run_id)
     GROUP BY r.session_id`,
  )
  const lease = await database.query<{ epoch: number }>('SELECT epoch FROM intake_lease')
  const refused = await database.query<{ job: string }>(
    `SELECT 'the job "' || job_id || '" was refused: ' || (faults->0->>'detail') AS job FROM rejected_jobs LIMIT 3`,
  )
  const sum = (count: (prompts: string[]) => number): number =>
    rows.reduce((total, { prompts }) => total + count(prompts), 0)
  return {
    swapped: sum((prompts) => Number(prompts.join() !== prompts.toSorted().join())),
    lost: sessions * jobsPerSession - sum((prompts) => new Set(prompts).size),
    doubled: sum((prompts) => prompts.length - new Set(prompts).size),
    terms: lease.rows[0]?.epoch ?? 0,
    refused: refused.rows.map(({ job }) => job),
  }
}

const countDisruptions = (disruptions: readonly Disruption[]): Pick<Totals, 'kills' | 'freezes'> => ({
  kills: disruptions.filter((disruption) => disruption === 'kill').length,
  freezes: disruptions.filter((disruption) => disruption === 'freeze').length,
})
