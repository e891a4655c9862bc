import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './support/build.ts'
import { latencies, round } from './support/statistics.ts'

/**
 * `npx tsx bench/simulate.ts [FILE]`: arrivals, workers and commit groups as a queueing model. Its costs are the processor times
 * that `headline` measured at 16 clients, by docs/performance/figures.md or by a file with what that case printed. It is checked by
 * what it was not given: the time of a run of one client, and the runs a second of sixteen. See docs/scale.md.
 */

type Setup = {
  /** `alone`: of PostgreSQL; else of all. */
  cores: number
  alone: boolean
  workers: number
  syncMs: number
  /** Claims exclude each other, as those of several businesses do. */
  isOrdered: boolean
  /** So many clients with one run at a time, or so many runs a second, at random. */
  load: { clients: number } | { perSecond: number }
}
const actions = 8
/** Of the worker's time, what learning takes once the run has ended. */
const learning = 0.17
/** Of what a statement costs PostgreSQL, the part that one for many rows costs once (docs/decisions/0127). */
const shared = 0.75
const maxRows = 64
/** Milliseconds of a message from process to process. */
const hop = 0.1

const file = process.argv[2] ?? join(root, 'docs/performance/figures.md')
const [, text] = readFileSync(file, 'utf8').split('headline')
const read = (figure: string): number => Number(text?.match(`Mason[ |]+${figure}[ |]+([0-9.]+)`)?.[1])
const cpu = (name: string): number => read(`${name} CPU ms each`)

const simulate = async ({ cores, alone, workers, syncMs, isOrdered, load }: Setup, runs: number) => {
  let now = 0
  let databaseMs = 0
  let seed = 4711
  const events: { at: number; go: () => void }[] = []
  const sleep = (ms: number): Promise<void> =>
    new Promise((go) => {
      const at = now + ms
      events.splice(events.findLastIndex((event) => event.at > at) + 1, 0, { at, go })
    })
  const openCores = (count: number) => {
    const waiting: (() => void)[] = []
    let free = count
    return async (ms: number): Promise<void> => {
      if (free === 0) await new Promise<void>((go) => waiting.push(go))
      else free--
      await sleep(ms)
      const next = waiting.shift()
      if (next) next()
      else free++
    }
  }
  /** One after the other: the thread of a process, or claims. */
  const openLine = (last = Promise.resolve()) => {
    return async (work: () => Promise<void>): Promise<void> => {
      last = last.then(work)
      await last
    }
  }
  /** Takes what has arrived together while the one before was under way. */
  const openGroup = (max: number, work: (size: number) => Promise<void>) => {
    const waiting: (() => void)[] = []
    const line = openLine()
    return (): Promise<void> => {
      const done = new Promise<void>((go) => waiting.push(go))
      void line(async () => {
        const group = waiting.splice(0, max)
        if (group.length > 0) await work(group.length)
        for (const go of group) go()
      })
      return done
    }
  }
  const database = openCores(cores)
  const others = alone ? openCores(Number.POSITIVE_INFINITY) : database
  const sync = openGroup(Number.POSITIVE_INFINITY, () => sleep(syncMs))
  const commit = async (rows = 1): Promise<void> => {
    const ms = (cpu('PostgreSQL') / (actions + 3)) * (shared + (1 - shared) * rows)
    databaseMs += ms
    await sleep(hop)
    await database(ms)
    await sync()
    await sleep(hop)
  }
  const openProcess = (line = openLine()) => ({
    work: (ms: number) => line(() => others(ms)),
    append: openGroup(maxRows, commit),
  })
  const pairs = Array.from({ length: workers }, () => ({ api: openProcess(), worker: openProcess() }))
  const claims = openLine()
  const times: number[] = []
  const run = async (n: number): Promise<void> => {
    const since = now
    const { api, worker } = pairs[n % workers] as (typeof pairs)[0]
    await others(cpu('client') / 2)
    await api.work(cpu('API') / 2)
    await api.append()
    await others(cpu('Redis'))
    const step = (cpu('worker') * (1 - learning)) / (actions + 1)
    await worker.work(step)
    await (isOrdered ? claims(commit) : commit())
    for (let action = 0; action < actions; action++) {
      await worker.work(step)
      await worker.append()
    }
    await api.work(cpu('API') / 2)
    await others(cpu('client') / 2)
    times.push(now - since)
    void worker.work(cpu('worker') * learning).then(worker.append)
  }
  let begun = 0
  const arrive = async (): Promise<void> => {
    while (begun < runs) {
      const running = run(begun++)
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
      await ('clients' in load ? running : sleep((-Math.log(1 - seed / 2 ** 32) * 1000) / load.perSecond))
    }
  }
  for (let client = 0; client < ('clients' in load ? load.clients : 1); client++) void arrive()
  await new Promise(setImmediate)
  for (let next = events.pop(); next; next = events.pop()) {
    now = next.at
    next.go()
    // all that waits for it goes on before the clock does
    await new Promise(setImmediate)
  }
  return { perSecond: (runs / now) * 1000, ...latencies(times), databaseCores: databaseMs / now }
}

/** One machine for all; below, PostgreSQL on 8 cores with a disk that syncs in 1 ms, and workers that are half busy. */
const here = { cores: 2, alone: false, workers: 1, syncMs: 0.5, isOrdered: false }
const one = await simulate({ ...here, load: { clients: 1 } }, 200)
const sixteen = await simulate({ ...here, load: { clients: 16 } }, 800)
console.log(`one client: ${round(one['ms p50'])} ms p50, measured ${round(read('ms p50'))}`)
console.log(`16 clients: ${round(sixteen.perSecond)} runs/s, measured ${round(read('runs/s of 16'))}`)

const rows: object[] = []
for (const perSecond of [1, 10, 100, 300, 1000])
  for (const isOrdered of [false, true]) {
    const workers = Math.max(2, Math.ceil((perSecond * cpu('worker')) / 500))
    const setup = { cores: 8, alone: true, workers, syncMs: 1, isOrdered, load: { perSecond } }
    rows.push({ offered: perSecond, isOrdered, workers, ...(await simulate(setup, 300 + perSecond * 3)) })
  }
console.table(rows)
