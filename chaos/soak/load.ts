import { setTimeout as pause } from 'node:timers/promises'
import type { HttpClient } from '../fleet/http-client.ts'
import { promptOf, type Step } from '../fleet/job.ts'
import type { QueueClient } from '../fleet/queue-client.ts'
import type { Random } from '../fleet/random.ts'

export type SoakLoad = Disposable & {
  accepted: Set<string>
  /** Of runs that were waited for: when they were submitted, in ms since the start, and how long they took. */
  latencies: { at: number; ms: number }[]
  failures: string[]
  /** Jobs that were due and not submitted, for the load was more than half by then. */
  leftOut: number
  /** Submits no more; resolves with how many were under way then, once all are answered. */
  stop(): Promise<number>
}

/** How many of a hundred jobs come in and are followed in this way. */
const mix = [
  ['wait', 50],
  ['follow', 20],
  ['poll', 10],
  ['queue', 10],
  ['effect', 7],
  ['ask', 3],
] as const
type Way = (typeof mix)[number][0]

const drawWay = (random: Random): Way => {
  let left = random.below(100)
  for (const [way, share] of mix) {
    if (left < share) return way
    left -= share
  }
  return 'wait'
}

/** With more than this under way the machine has other work to do as well: jobs are then left out, and counted. */
const mostUnderWay = 48

/**
 * Sessions that end after some turns and are followed by new ones, so that what one costs stays the same: most after
 * six turns, some after forty.
 */
const createSessions = (random: Random) => {
  const fresh = (at: number) => ({ id: `soak-${at}`, turnsLeft: at % 4 === 0 ? 40 : 6 })
  let made = 0
  const open = Array.from({ length: 24 }, () => fresh(made++))
  return (): string => {
    const at = random.below(open.length)
    const session = open[at] ?? fresh(made++)
    if (--session.turnsLeft === 0) open[at] = fresh(made++)
    return session.id
  }
}

/** An open loop: a job every so often, whatever became of those before. */
export const startSoakLoad = (
  http: HttpClient,
  queue: QueueClient,
  { perSecond, random }: { perSecond: number; random: Random },
): SoakLoad => {
  const accepted = new Set<string>()
  const failures: string[] = []
  const latencies: SoakLoad['latencies'] = []
  const open = new Set<Promise<void>>()
  const over = new AbortController()
  const nextSession = createSessions(random)
  const since = performance.now()
  let count = 0

  const submit = async (name: string, way: Way, session: object): Promise<void> => {
    const steps: Step[] = [way === 'effect' ? 'write' : way === 'ask' ? 'ask' : 'calculate']
    const body = { prompt: promptOf(name, steps), user_id: 'soak', ...session }
    const at = performance.now()
    if (way === 'queue') {
      await queue.add(name, body)
      accepted.add(name)
      return
    }
    const waits = way === 'wait' || way === 'effect' || way === 'ask'
    const { status, body: run } = await http.post(waits ? '/v1/runs/wait' : '/v1/runs', body, {
      'idempotency-key': name,
    })
    if (status !== 200 && status !== 202) throw new Error(`it was answered ${status}: ${JSON.stringify(run)}`)
    accepted.add(name)
    const events = `/v1/runs/${run.id}/events`
    const toItsEnd = async (): Promise<void> => {
      if (!(await http.follow(events, (event) => event === 'done'))) throw new Error('its stream had no done')
    }
    if (way === 'wait') latencies.push({ at: at - since, ms: performance.now() - at })
    if (way === 'follow') await toItsEnd()
    if (way === 'poll')
      while ((await http.get(`/v1/runs/${run.id}`)).body.status !== 'completed') await pause(200)
    if (way === 'ask') {
      const input = { request_id: run.input_request?.id, answer: 'yes' }
      const answered = await http.post(`/v1/runs/${run.id}/input`, input)
      if (answered.status !== 202) throw new Error(`its answer was answered ${answered.status}`)
      await toItsEnd()
    }
  }

  const start = (name: string): void => {
    const session = random.below(10) < 4 ? { session_id: nextSession() } : {}
    const one = submit(name, drawWay(random), session).catch(
      (error: unknown) => void failures.push(`${name}: ${String(error).slice(0, 300)}`),
    )
    open.add(one)
    void one.finally(() => open.delete(one))
  }
  const run = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const due = ((performance.now() - since) / 1000) * perSecond
      for (; count < due; count++)
        if (open.size < mostUnderWay) start(`job${count}`)
        else load.leftOut++
      await pause(10)
    }
  }
  const load: SoakLoad = {
    accepted,
    latencies,
    failures,
    leftOut: 0,
    async stop() {
      over.abort()
      await running
      const underWay = open.size
      await Promise.all(open)
      return underWay
    },
    [Symbol.dispose]: () => over.abort(),
  }
  const running = run()
  return load
}
