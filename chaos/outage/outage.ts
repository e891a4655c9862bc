import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { freePort } from '../../examples/free-port.ts'
import { type Child, startChild } from '../child.ts'
import { audit, drained, firstOf, openWitness } from '../fleet/audit.ts'
import { openHttpClient } from '../fleet/http-client.ts'
import { promptOf, type Step } from '../fleet/job.ts'
import { openFleet } from '../fleet/members.ts'
import { openServers } from '../fleet/servers.ts'
import type { Findings, SuiteOptions } from '../suite.ts'

const script = fileURLToPath(new URL('./vendor-process.ts', import.meta.url))
const workers = 2
const concurrency = 8
const steps: Step[] = ['calculate', 'calculate']
/** How long a run may hold its lease at a stretch while no model is available: its tries, on a busy machine. */
const maxHoldMs = 10_000
/** From the vendor's return to the last end: the longest cooling and back-off, and the work. */
const drainMs = 180_000

type Vendor = Child<{ event: 'ready'; port: number }>

const startVendor = async (port: number): Promise<Vendor> => {
  const vendor: Vendor = startChild(script, { port, delayMs: 200 })
  await vendor.next('ready')
  return vendor
}

/** Kills the only vendor in the middle of many runs, and starts it again later. */
export const outage = async ({ scale, say, signal }: SuiteOptions): Promise<Findings> => {
  const runs = Math.max(20, Math.round(200 * scale))
  const downMs = Math.max(6000, 90_000 * scale)
  await using servers = await openServers()
  const port = await freePort()
  let vendor = await startVendor(port)
  await using _gone = { [Symbol.asyncDispose]: async () => kill(vendor) }
  await using fleet = openFleet(servers, '', `http://127.0.0.1:${port}/v1`)
  const api = await fleet.startApi()
  await Promise.all(Array.from({ length: workers }, () => fleet.startWorker({ concurrency })))
  using http = openHttpClient(api.url)
  const witness = await openWitness(servers.databaseUrl)
  try {
    const accepted = new Set<string>()
    for (let nr = 0; nr < runs; nr++) {
      const name = `job${nr}`
      // some sessions have several turns, which must stay in order
      const session_id = `session-${nr % Math.ceil(runs * 0.8)}`
      const { status } = await http.post('/v1/runs', {
        prompt: promptOf(name, steps),
        user_id: 'u1',
        session_id,
      })
      if (status === 202) accepted.add(name)
    }
    await reached(witness, Math.floor(runs / 4), signal)
    await kill(vendor)
    const downAt = performance.now()
    const before = await countEnded(witness)
    say(`the vendor is gone; ${before.completed} of ${runs} runs were completed`)
    const held = await watchLeases(witness, downAt + downMs, signal)
    const during = await countEnded(witness)
    say(`the vendor comes back; ${held.waiting} runs wait`)
    vendor = await startVendor(port)
    const drainedMs = await drained(witness, drainMs, signal)
    const ended = await countEnded(witness)
    const tries = await readTries(witness)
    const audited = await audit(witness, accepted, new Map())
    const failures = [...audited.failures]
    if (accepted.size !== runs) failures.push(`${runs - accepted.size} runs were not accepted`)
    if (ended.completed !== runs) failures.push(`${ended.completed} of ${runs} runs were completed`)
    if (drainedMs === null) failures.push(`runs were left unfinished ${drainMs} ms after the vendor's return`)
    if (held.waiting === 0) failures.push('no run waited, so nothing was tried')
    if (held.maxMs > maxHoldMs)
      failures.push(`a run held its lease for ${held.maxMs} ms while no model was available`)
    if (tries.mostStalls > 1)
      failures.push(`a run had ${tries.mostStalls} claims that counted towards poison`)
    return {
      figures: {
        runs,
        'seconds without a vendor': Math.round(downMs / 1000),
        'completed before': before.completed,
        'completed meanwhile': during.completed - before.completed,
        'waiting when the vendor came back': held.waiting,
        completed: ended.completed,
        failed: ended.failed,
        lost: audited.lost,
        doubled: audited.doubled,
        'runs that waited': tries.runs,
        'times queued again': tries.sum,
        'most times for one run': tries.most,
        'longest hold of a lease meanwhile, ms': held.maxMs,
        'leases held meanwhile, mean': held.mean,
        'from the return to the last end, ms': drainedMs ?? 'never',
      },
      failures: firstOf(failures),
    }
  } finally {
    await witness.end()
  }
}

const kill = async (vendor: Vendor): Promise<void> => {
  vendor.signal('SIGKILL')
  await vendor.ended
}

type Ended = { completed: number; failed: number }

const countEnded = async (witness: pg.Client): Promise<Ended> => {
  const { rows } = await witness.query<Ended>(
    `SELECT count(*) FILTER (WHERE status = 'completed')::int AS completed,
       count(*) FILTER (WHERE status = 'failed')::int AS failed FROM runs`,
  )
  return rows[0] ?? { completed: 0, failed: 0 }
}

const reached = async (witness: pg.Client, count: number, signal: AbortSignal): Promise<void> => {
  while ((await countEnded(witness)).completed < count) await pause(50, undefined, { signal })
}

type LeaseRow = { run_id: string; epoch: number; held: boolean; waits: boolean }

/** What runs hold until `untilMs`: the longest time of one claim, their mean count, and how many wait for a model in the end. */
const watchLeases = async (
  witness: pg.Client,
  untilMs: number,
  signal: AbortSignal,
): Promise<{ maxMs: number; mean: number; waiting: number }> => {
  const since = new Map<string, number>()
  const [counts, found] = [[] as number[], { maxMs: 0, waiting: 0 }]
  while (performance.now() < untilMs) {
    const now = performance.now()
    const { rows } = await witness.query<LeaseRow>(
      `SELECT r.run_id, r.epoch, r.lease_until > clock_timestamp() AS held, o.seq = r.next_seq AND r.status = 'queued' AS waits
       FROM runs r LEFT JOIN run_outages o USING (tenant, run_id) WHERE r.status IN ('queued', 'running')`,
    )
    const held = rows.filter((row) => row.held)
    for (const { run_id, epoch } of held) {
      const from = since.get(`${run_id} ${epoch}`) ?? now
      since.set(`${run_id} ${epoch}`, from)
      found.maxMs = Math.max(found.maxMs, Math.round(now - from))
    }
    found.waiting = rows.filter(({ waits }) => waits).length
    counts.push(held.length)
    await pause(250, undefined, { signal })
  }
  const mean = counts.reduce((sum, count) => sum + count, 0) / Math.max(1, counts.length)
  return { ...found, mean: Math.round(mean * 10) / 10 }
}

/** How often runs were queued again, and the most claims of one that still count towards poison. */
const readTries = async (
  witness: pg.Client,
): Promise<{ runs: number; sum: number; most: number; mostStalls: number }> => {
  const { rows } = await witness.query<{ runs: number; sum: number; most: number; mostStalls: number }>(
    `SELECT count(*)::int AS runs, COALESCE(sum(tries), 0)::int AS sum, COALESCE(max(tries), 0)::int AS most,
       (SELECT COALESCE(max(stalls), 0)::int FROM runs) AS "mostStalls" FROM run_outages`,
  )
  return rows[0] ?? { runs: 0, sum: 0, most: 0, mostStalls: 0 }
}
