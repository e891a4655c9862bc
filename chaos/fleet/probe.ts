import pg from 'pg'

/** Loaded before the program of every process of a fleet: tells over IPC what the process holds, when it is asked. */

export type Probe = {
  heap_mb: number
  external_mb: number
  rss_mb: number
  /** What keeps the event loop alive, by kind. */
  handles: Record<string, number>
  /** Queries sent to the database since the start. */
  queries: number
  /** The longest that one turn of the event loop took since the last probe; `cpu`: of that, what the process computed. */
  turn_ms: { wall: number; cpu: number }
}

export type ProbeRequest = { probe: number; collect: boolean }
export type ProbeReply = { probe: number; found: Probe }

let queries = 0
const send = pg.Client.prototype.query as (...args: unknown[]) => unknown
Object.assign(pg.Client.prototype, {
  query(this: pg.Client, ...args: unknown[]) {
    queries++
    return send.apply(this, args)
  },
})

const tickMs = 20
let longest = { wall: 0, cpu: 0 }
let last = { at: performance.now(), cpu: process.cpuUsage() }
setInterval(() => {
  const used = process.cpuUsage(last.cpu)
  const wall = performance.now() - last.at - tickMs
  // a machine that gives the process no time is no error of the process
  const turn = { wall: Math.round(wall), cpu: Math.round(Math.min(wall, (used.user + used.system) / 1000)) }
  if (turn.cpu > longest.cpu || (turn.cpu === longest.cpu && turn.wall > longest.wall)) longest = turn
  last = { at: performance.now(), cpu: process.cpuUsage() }
}, tickMs).unref()

const takeLongest = (): Probe['turn_ms'] => {
  const found = longest
  longest = { wall: 0, cpu: 0 }
  return found
}

const megabytes = (bytes: number): number => Math.round(bytes / 1024 / 10.24) / 100

const look = (): Probe => {
  const { heapUsed, external, rss } = process.memoryUsage()
  const handles: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) handles[kind] = (handles[kind] ?? 0) + 1
  return {
    heap_mb: megabytes(heapUsed),
    external_mb: megabytes(external),
    rss_mb: megabytes(rss),
    handles,
    queries,
    turn_ms: takeLongest(),
  }
}

process.on('message', (request: Partial<ProbeRequest>) => {
  if (request.probe === undefined) return
  if (request.collect) globalThis.gc?.()
  process.send?.({ probe: request.probe, found: look() } satisfies ProbeReply)
})
// the parent process is gone
process.once('disconnect', () => process.exit(1))
process.channel?.unref()
