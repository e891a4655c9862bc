import type { Figures } from '../case.ts'
import { openConnection } from './http-connection.ts'
import type { Place } from './place.ts'
import { cpuMs, type Started } from './processes.ts'
import { latencies } from './statistics.ts'

/** Processes that answer together: where, and the id of each by its name. */
export type Served = { port: number; pids: Record<string, number> }

/** An API process and a worker process. */
export const startServed = async (place: Place, { rounds = 1 } = {}): Promise<Served> => {
  const worker = await place.processes.start('worker-process', { config: place.config, rounds })
  const { port, pids } = await startApi(place)
  return { port, pids: { ...pids, worker: worker.pid } }
}

export const startApi = async ({ processes, config }: Place): Promise<Served> =>
  servedBy(await processes.start('api-process', { config }))

export const servedBy = ({ pid, report: { port, pids = { API: pid } } }: Started): Served => {
  if (port === undefined) throw new Error('the API reported no port')
  return { port, pids }
}

/** One request and what must be said of its answer. */
export type Load = {
  path: string
  body(n: number): string
  fits(answer: { status: number; body: string }): boolean
}

/** So many clients, each with a connection of its own, send so many requests between them, one after the other each. */
export const sendLoad = async (
  { port, pids }: Served,
  { path, body, fits }: Load,
  { clients, requests }: { clients: number; requests: number },
): Promise<{ perSecond: number; ms: number[]; cpu: Figures }> => {
  const connections = await Promise.all(Array.from({ length: clients }, () => openConnection(port)))
  const ms: number[] = []
  let sent = 0
  const before = Object.entries(pids).map(([name, pid]) => ({ name, pid, ms: cpuMs(pid) }))
  const since = performance.now()
  await Promise.all(
    connections.map(async (connection) => {
      while (sent < requests) {
        const begun = performance.now()
        const answer = await connection.post(path, body(sent++))
        if (!fits(answer)) throw new Error(`answered ${answer.status}: ${answer.body.slice(0, 500)}`)
        ms.push(performance.now() - begun)
      }
    }),
  )
  const seconds = (performance.now() - since) / 1000
  for (const connection of connections) connection.close()
  const cpu = before.map(
    ({ name, pid, ms }) => [`${name} CPU ms each`, (cpuMs(pid) - ms) / requests] as const,
  )
  return { perSecond: requests / seconds, ms, cpu: Object.fromEntries(cpu) }
}

/** The same load by one client for the latencies, then by sixteen for the throughput; a warm-up before. */
export const oneAndSixteen = async (served: Served, load: Load, count: (full: number) => number) => {
  await sendLoad(served, load, { clients: 16, requests: count(200) })
  const one = await sendLoad(served, load, { clients: 1, requests: count(500) })
  const sixteen = await sendLoad(served, load, { clients: 16, requests: count(1500) })
  return { ...latencies(one.ms), 'runs/s of 16': sixteen.perSecond, ...sixteen.cpu }
}
