import { setTimeout as pause } from 'node:timers/promises'
import type { HttpClient } from '../fleet/http-client.ts'
import { promptOf, type Step } from '../fleet/job.ts'
import type { QueueClient } from '../fleet/queue-client.ts'
import type { Random } from '../fleet/random.ts'

/** What clients do while processes come and go, and what they saw of it. */
export type Load = Disposable & {
  /** Names of the jobs that were accepted. */
  accepted: Set<string>
  /** Requests sent again, with the same key, since the API was away or about to be. */
  retried: number
  failures: string[]
  /** Submits no more; resolves once every client has its answer. */
  stop(): Promise<void>
}

/** Most are short; some have a call or a model under way for longer than any process may take to leave. */
const kindsOf = (slowMs: number): readonly [Step[], ...Step[][]] => [
  ['calculate'],
  ['calculate'],
  ['calculate'],
  ['calculate', 'calculate'],
  ['write'],
  ['write', 'calculate'],
  ['think~3000'],
  ['look~3000', 'write'],
  [`think~${slowMs}`],
  [`look~${slowMs}`, 'calculate'],
]

/** How a job comes in. */
const doors = ['submit', 'submit', 'submit', 'wait', 'wait', 'queue', 'queue'] as const
const sessionsAtOnce = 12
const turnsEach = 4

/** A steady load of `perSecond` jobs, over HTTP with an Idempotency-Key that is kept over retries, and the queue. */
export const startLoad = (
  http: HttpClient,
  queue: QueueClient,
  options: { perSecond: number; slowMs: number; random: Random },
): Load => {
  const { perSecond, random } = options
  const kinds = kindsOf(options.slowMs)
  const accepted = new Set<string>()
  const failures: string[] = []
  const open = new Set<Promise<void>>()
  const over = new AbortController()
  const abandon = new AbortController()
  const abandoned = abandon.signal
  let count = 0

  const bodyOf = (name: string): { prompt: string; user_id: string; session_id?: string } => {
    const prompt = promptOf(name, random.pick(kinds))
    // a session of its own, or one of a dozen that each get four turns and are then followed by a new one
    if (random.below(3) > 0) return { prompt, user_id: 'rolling' }
    const generation = Math.floor(count / (3 * sessionsAtOnce * turnsEach))
    return { prompt, user_id: 'rolling', session_id: `shared-${generation}-${random.below(sessionsAtOnce)}` }
  }

  const submit = async (name: string, door: (typeof doors)[number]): Promise<void> => {
    const body = bodyOf(name)
    if (door === 'queue') {
      await queue.add(name, body)
      accepted.add(name)
      return
    }
    const path = door === 'wait' ? '/v1/runs/wait' : '/v1/runs'
    while (!abandoned.aborted) {
      const answer = await http.post(path, body, { 'idempotency-key': name }).catch(() => null)
      if (answer?.status === 200 || answer?.status === 202) {
        accepted.add(name)
        if (door === 'wait' && answer.body.answer !== `Done: ${name}.`)
          failures.push(`who waited for ${name} was given ${JSON.stringify(answer.body).slice(0, 300)}`)
        return
      }
      if (answer !== null && answer.status !== 503) {
        failures.push(`${name} was answered ${answer.status}: ${JSON.stringify(answer.body).slice(0, 300)}`)
        return
      }
      load.retried++
      await pause(100)
    }
  }

  const load: Load = {
    accepted,
    retried: 0,
    failures,
    async stop() {
      over.abort()
      await running
      await Promise.all(open)
    },
    [Symbol.dispose]() {
      over.abort()
      abandon.abort()
    },
  }
  const run = async (): Promise<void> => {
    const since = performance.now()
    while (!over.signal.aborted) {
      const due = ((performance.now() - since) / 1000) * perSecond
      for (; count < due; count++) {
        const name = `job${count}`
        const one = submit(name, random.pick(doors)).catch(
          (error: unknown) => void failures.push(`${name}: ${error}`),
        )
        open.add(one)
        void one.finally(() => open.delete(one))
      }
      await pause(20)
    }
  }
  const running = run()
  return load
}
