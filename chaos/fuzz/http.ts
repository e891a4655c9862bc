import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { openDeadline } from '../../src/state/deadline.ts'
import type { ServedMason } from './mason.ts'
import { operationsOf } from './operations.ts'
import { exchange } from './raw-exchange.ts'
import { type FuzzRequest, requestsTo, shapedRequestsTo } from './requests.ts'
import { findViolation } from './verdict.ts'

/** What both halves of the suite are given. */
export type FuzzOptions = {
  mason: ServedMason
  seed: number
  count: number
  say(line: string): void
  signal: AbortSignal
}
export type FuzzFindings = { figures: Record<string, number>; failures: string[] }

/** Of so many requests one is of 10 MB or more, and one is a valid one that has to be served as ever. */
const hugeEvery = 250
const validEvery = 50
const batch = 500
const lanes = 8

const good = { prompt: 'What is 2 + 2?', user_id: 'u1' }
/** What the smallest valid bodies leave out, so that there is more to spoil. */
const fuller = {
  '/v1/runs': {
    ...good,
    session_id: 's1',
    files: [{ name: 'a.txt', type: 'text/plain', content_base64: 'aGk=' }],
    output: { style: 'short' },
    limits: { max_steps: 9 },
    priority: 3,
    delay_ms: 1,
    metadata: { a: [1] },
  },
  '/v1/runs/wait': { ...good, limits: { timeout_ms: 2000 } },
}

/** Sends `count` malformed requests to every operation of the API, valid ones in between, and judges each answer. */
export const fuzzHttp = async ({ mason, seed, count, say, signal }: FuzzOptions): Promise<FuzzFindings> => {
  const call = async (path: string, init: RequestInit = {}) => {
    using deadline = openDeadline(30_000, signal)
    return await fetch(`http://127.0.0.1:${mason.port}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${mason.token}`, 'content-type': 'application/json' },
      signal: deadline.signal,
    })
  }
  const document = (await (await call('/openapi.json')).json()) as Record<string, unknown>
  const operations = operationsOf(document, fuller)
  const own = operations.filter(({ isOpenAi }) => !isOpenAi)
  const submit = async (): Promise<{ id: string; session_id: string }> => {
    const reply = await call('/v1/runs', { method: 'POST', body: JSON.stringify(good) })
    if (reply.status !== 202)
      throw new Error(`a valid request in between got ${reply.status}: ${await reply.text()}`)
    return (await reply.json()) as { id: string; session_id: string }
  }
  const known = await submit()
  const accepted: string[] = []
  const failures: string[] = []
  const statuses = new Map<string, number>()
  const ids = { token: mason.token, ids: [known.id, known.session_id, 'u1', 'a'.repeat(64)] }

  const one = async (request: FuzzRequest, at: number): Promise<void> => {
    const exchanged = await exchange(mason.port, request, signal)
    const fault = findViolation(request, exchanged)
    const status = exchanged.kind === 'reply' ? `${String(exchanged.reply.status)[0]}xx` : exchanged.kind
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if (fault !== null) failures.push(`request ${at}, ${request.what}: ${fault}`)
    if (at % validEvery === 0) accepted.push((await submit()).id)
  }
  for (let from = 0; from < count; from += batch) {
    const numRuns = Math.min(batch, count - from)
    const either = fc.oneof(requestsTo(own, ids), shapedRequestsTo(operations, ids, document))
    const small = fc.sample(either, { seed: seed + from, numRuns })
    const huge = fc.sample(requestsTo(own, ids, true), {
      seed: seed + from,
      numRuns: Math.ceil(numRuns / hugeEvery),
    })
    const queue = small.map(
      (request, n) => [(n % hugeEvery === hugeEvery - 1 && huge.pop()) || request, from + n] as const,
    )
    await Promise.all(
      Array.from({ length: lanes }, async () => {
        for (let next = queue.shift(); next; next = queue.shift()) await one(...next)
      }),
    )
    say(`${from + numRuns} requests`)
  }
  for (const id of accepted) {
    const fault = await unfinished(async () => (await call(`/v1/runs/${id}`)).json(), signal)
    if (fault) failures.push(`run ${id}, submitted in between, ${fault}`)
  }
  return {
    figures: {
      requests: count,
      operations: operations.length,
      'valid runs in between': accepted.length,
      ...Object.fromEntries([...statuses].sort().map(([status, n]) => [`answers ${status}`, n])),
    },
    failures,
  }
}

/** Null once the run is completed; what it is after half a minute, otherwise. */
const unfinished = async (look: () => Promise<unknown>, signal: AbortSignal): Promise<string | null> => {
  const until = performance.now() + 30_000
  for (;;) {
    const { status } = (await look()) as { status: string }
    if (status === 'completed') return null
    if (status === 'failed' || status === 'cancelled' || performance.now() > until) return `is ${status}`
    await pause(100, undefined, { signal })
  }
}
