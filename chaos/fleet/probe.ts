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
