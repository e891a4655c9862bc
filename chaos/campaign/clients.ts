import { setTimeout as pause } from 'node:timers/promises'
import { type Answer, type HttpClient, openHttpClient } from '../fleet/http-client.ts'
import { answerTo, type Job, promptOf, type Session } from './job.ts'
import type { Plan } from './plan.ts'
import type { Progress } from './progress.ts'
import type { Witness } from './witness.ts'
import type { World } from './world.ts'

/** A run whose 202 a client has seen. */
export type Accepted = {
  job: Job
  session: string
  run_id: string
  /** Its cancellation was asked for, and not refused because it had ended. */
  isCancelled: boolean
  /** It was made to look like one that keeps killing its workers. */
  isGivenUp: boolean
}

/** Everything the clients were promised, and what they received that cannot be. */
export type ClientRecord = { accepted: Map<string, Accepted>; faults: string[] }

const answerMs = 15_000
/** Longer than a worker is ever frozen: what it was about to send has arrived by then, or never will. */
const operatorWaitsMs = 6000

/** Clients of the HTTP API that submit every session of a plan, cancel, submit again and answer what is asked. */
/** What is posted for a job, and what its queue job holds. */
export const bodyOf = (session_id: string, job: Job) => ({
  prompt: promptOf(job),
  user_id: 'u1',
  session_id,
  ...(job.priority !== undefined && { priority: job.priority }),
})

export type Clients = ReturnType<typeof openClients>

export const openClients = (
  world: World,
  witness: Witness,
  plan: Plan,
  progress: Progress,
  signal: AbortSignal,
) => {
  const book: ClientRecord = { accepted: new Map(), faults: [] }
  const http: HttpClient = openHttpClient(world.apiUrl)
  const ended = new Map<string, () => void>()

  /** Until it is answered: the API may be down, or without its database. The same key makes that safe. */
  const post = async (path: string, body: unknown, key?: string): Promise<Answer> => {
    for (;;) {
      signal.throwIfAborted()
      const headers = key === undefined ? {} : { 'idempotency-key': key }
      const answer = await Promise.race([
        http.post(path, body, headers).catch(() => null),
        pause(answerMs, null, { signal }),
      ])
      if (answer && answer.status < 500 && answer.status !== 429) return answer
      await pause(200, undefined, { signal })
    }
  }

  const submit = async (session: Session, job: Job): Promise<Accepted> => {
    const body = bodyOf(session.id, job)
    const { status, body: said } = await post('/v1/runs', body, job.name)
    const run_id = String(said.id)
    if (status !== 202 && status !== 200)
      throw new Error(`job ${job.name} was refused with ${status}: ${JSON.stringify(said)}`)
    const earlier = book.accepted.get(job.name)
    if (earlier && earlier.run_id !== run_id)
      book.faults.push(`doubled: job ${job.name} became ${earlier.run_id} and ${run_id}`)
    const accepted = earlier ?? { job, session: session.id, run_id, isCancelled: false, isGivenUp: false }
    book.accepted.set(job.name, accepted)
    return accepted
  }

  const cancel = async (accepted: Accepted): Promise<void> => {
    const { status } = await post(`/v1/runs/${accepted.run_id}/cancel`, { reason: 'no longer wanted' })
    if (status === 202) accepted.isCancelled = true
    else if (status !== 409)
      book.faults.push(`run ${accepted.run_id}: cancelling was answered with ${status}`)
  }

  const play = async (session: Session): Promise<void> => {
    const beside: Promise<unknown>[] = []
    for (const job of session.jobs) {
      await progress.until(({ submitted, kills }) => submitted < plan.submittedBy(kills), signal)
      progress.count('submitted')
      const accepted = await submit(session, job)
      const over = new Promise<void>((resolve) => ended.set(accepted.run_id, resolve))
      if (job.cancelAfterMs !== null)
        beside.push(pause(job.cancelAfterMs, undefined, { signal }).then(() => cancel(accepted)))
      if (job.isRepeated) beside.push(pause(500, undefined, { signal }).then(() => submit(session, job)))
      if (session.pipelined) beside.push(over)
      else await over
    }
    await Promise.all(beside)
  }

  /** Looks which runs have ended; tells those who wait for them. */
  const lookForEnds = async (): Promise<void> => {
    if (ended.size === 0) return
    const rows = await witness.query<{ run_id: string }>(
      `SELECT run_id FROM runs WHERE run_id = ANY($1) AND status IN ('completed', 'failed', 'cancelled')`,
      [[...ended.keys()]],
    )
    for (const { run_id } of rows) {
      ended.get(run_id)?.()
      ended.delete(run_id)
      progress.count('ended')
    }
  }

  const answer = async (runId: string, request_id: string, said: string): Promise<void> => {
    const { status } = await post(`/v1/runs/${runId}/input`, { request_id, answer: said })
    // 409: an earlier try counted; its answer was lost
    if (status !== 202 && status !== 409)
      book.faults.push(`run ${runId}: the answer ${said} was refused with ${status}`)
  }

  const settle = async (runId: string, effect: string, took_place: boolean): Promise<void> => {
    const { status } = await post(`/admin/v1/effects/${effect}/resolve`, { took_place })
    if (status !== 200 && status !== 409)
      book.faults.push(`run ${runId}: settling its side effect ${effect} was refused with ${status}`)
  }

  /** `question` is null where the run waits for an operator, and `request_id` then its side effect. */
  type Asked = { run_id: string; request_id: string; question: string | null; age_ms: number }
  const answering = new Set<string>()
  const answerOne = async ({ run_id, request_id, question }: Asked): Promise<void> => {
    if (question === null) await settle(run_id, request_id, await world.hasDone(request_id))
    else await answer(run_id, request_id, answerTo(question))
  }
  const answerQuestions = async (): Promise<void> => {
    const open = await witness.query<Asked>(
      `SELECT i.run_id, i.request_id, i.question #>> '{}' AS question, 0 AS age_ms
       FROM input_requests i JOIN runs r USING (tenant, run_id)
       WHERE i.answered_at IS NULL AND r.status = 'input_required'
       UNION ALL SELECT w.run_id, w.ref_id, NULL, extract(epoch FROM clock_timestamp() - w.created_at) * 1000
       FROM waits w JOIN runs r USING (tenant, run_id)
       WHERE w.done_at IS NULL AND w.kind = 'effect' AND r.status IN ('waiting', 'input_required')`,
    )
    for (const asked of open) {
      if (answering.has(asked.request_id)) continue
      if (asked.question === null && Number(asked.age_ms) < operatorWaitsMs) continue
      answering.add(asked.request_id)
      void answerOne(asked)
        .catch(
          (error: unknown) => void book.faults.push(`run ${asked.run_id}: no answer got through: ${error}`),
        )
        .finally(() => answering.delete(asked.request_id))
    }
  }

  const watch = async (over: AbortSignal): Promise<void> => {
    while (!over.aborted) {
      await lookForEnds()
      await answerQuestions()
      await pause(250, undefined, { signal: over }).catch(() => {})
    }
  }

  /** `work`, which ends by what the watch sees; the watch ends by itself only when it fails. */
  const whileWatched = async (work: Promise<unknown>): Promise<void> => {
    const over = new AbortController()
    const watching = watch(AbortSignal.any([over.signal, signal]))
    try {
      await Promise.race([work, watching.then(() => Promise.reject(signal.reason))])
    } finally {
      over.abort()
      await watching.catch(() => {})
    }
  }

  return {
    book,
    submit,
    cancel,
    settle,
    /** Answers what is asked until these runs have ended. */
    async untilEnded(runIds: readonly string[]): Promise<void> {
      const all = runIds.map((id) => new Promise<void>((resolve) => ended.set(id, resolve)))
      await whileWatched(Promise.all(all))
    },
    close: () => http[Symbol.dispose](),
    /** Submits all sessions, a few at a time; resolves when every run has ended. */
    async playAll(atOnce = 40): Promise<void> {
      const waiting = [...plan.sessions]
      const next = async (): Promise<void> => {
        for (let session = waiting.shift(); session; session = waiting.shift()) await play(session)
      }
      await whileWatched(Promise.all(Array.from({ length: atOnce }, () => next())))
    },
  }
}
