import {
  type Admission,
  type AdmissionRequest,
  admitCandidate,
  admitRuns,
  type Fence,
  findEarlierAdmission,
  submitRoute,
  toAdmissionRequest,
} from '../../engine/runs/admission.ts'
import type { JobAdmissions } from '../../engine/runs/business-runs.ts'
import type { Database } from '../../infra/database/database.ts'
import { isLockTimeout } from '../../infra/database/database-errors.ts'
import { groupBy } from '../../infra/lib/group-by.ts'
import type { JobOutcome } from '../../infra/queue/job-outcome.ts'
import type { IntakeJob } from '../../infra/queue/jobs.ts'
import { isMasonError, type MasonError, passesSoon, toMasonError } from '../../state/errors.ts'
import type { Clock } from '../../state/ports/clock.ts'
import type { Log } from '../../state/ports/log.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import { parseExactJson } from '../../state/text/exact-json.ts'
import {
  advanceSession,
  claimDueSessions,
  type DueSession,
  holdJobs,
  listExpiredJobs,
  maxDueOfBusiness,
  readHeldJobs,
} from './held-jobs.ts'
import { type InvalidJob, readJob, rejectJob, toJobErrors, type ValidJob } from './intake.ts'
import { createFence, endsTerm, LeaseLostError } from './intake-lease.ts'
import { createLostJobs, isPassing, type RecoveryQueue } from './lost-jobs.ts'

/** An unexpected error may pass: after so many tries the job is rejected. */
const maxTries = 5

type IntakeOptions = {
  database: Database
  clock: Clock
  log: Log
  /** With which jobs must be signed; empty: they need not be. */
  queueSecrets: readonly string[]
  of(businessId: string): JobAdmissions
}

/** What a job ends with, with its row in `held_jobs` where it has one; of one that waits, for how long at most. */
export type JobResult = { outcome: JobOutcome; seq: number | null } | { heldUntil: Date }

/** `attempts` counts this one. */
type Attempt = { job: ValidJob; attempts: number }
type Wait = { errors: FieldError[]; afterMs: number; isTry: boolean }
type Verdict =
  | { candidate: AdmissionRequest }
  | { admission: Admission }
  | { errors: FieldError[]; mayPass: boolean }
  | { wait: Wait }

const behind: Verdict = {
  wait: { errors: toJobErrors('an earlier job of its session waits'), afterMs: 0, isTry: false },
}

type KnownJob = {
  job_id: string
  data_hash: string
  errors: FieldError[] | null
  seq: number | null
  outcome: JobOutcome | null
  expires_at: Date
}

/** Refused before, unless it has become a run since or the reason may have passed; or held. */
const knownStatement = `
  WITH job AS MATERIALIZED (SELECT * FROM json_to_recordset($1::json) AS j(id text, hash text))
  SELECT job_id, data_hash, faults AS errors, NULL::bigint AS seq, NULL::json AS outcome, received_at AS expires_at
  FROM job JOIN rejected_jobs ON job_id = id AND data_hash = hash WHERE run_id IS NULL AND NOT may_pass
  UNION ALL SELECT job_id, data_hash, NULL, seq, outcome, expires_at FROM job JOIN held_jobs ON job_id = id AND data_hash = hash`

const heldSessionsStatement = `
  SELECT session_id FROM json_array_elements_text($2::json) AS s(session_id)
  WHERE EXISTS (SELECT FROM held_jobs h WHERE h.tenant = $1 AND h.session_id = s.session_id AND h.outcome IS NULL)`

const listFieldErrors = ({ detail, message, remedy }: MasonError): FieldError[] =>
  (detail as { errors?: FieldError[] } | undefined)?.errors ??
  toJobErrors([message, remedy].filter(Boolean).join('; '))

/**
 * The intake of the public queue, for its leader. The id of a job is its idempotency key. Jobs are admitted in the order of their
 * list; one that must wait for a passing refusal is held, and so are those of its session that come after it. A job that cannot be
 * admitted goes to `rejected_jobs` with its errors, and stays refused when it comes again. A call that throws
 * (`LeaseLostError`, `database_unavailable`) may have admitted some; repeated, it admits none twice.
 */
export const createIntake = ({ database, clock, log, queueSecrets, of }: IntakeOptions) => {
  const toVerdict = (error: unknown, { job, attempts }: Attempt): Verdict => {
    if (endsTerm(error)) throw error
    const isLocked = isLockTimeout(error)
    const passes = isLocked || isMasonError(error, 'too_many_requests') || passesSoon(error)
    const errors = isLocked
      ? toJobErrors('another transaction keeps its session locked')
      : listFieldErrors(toMasonError(error))
    if (!passes && (isMasonError(error) || attempts >= maxTries))
      return { errors, mayPass: isMasonError(error, 'budget_exhausted') }
    if (!passes)
      log.error({ error: String(error), job_id: job.id, attempts }, 'a queue job failed and will be retried')
    const afterMs = Math.min(1000 * 2 ** Math.max(0, attempts - 1), 30_000)
    return { wait: { errors, afterMs, isTry: !passes } }
  }

  const judge = async (attempt: Attempt): Promise<Verdict> => {
    const { id, business, request } = attempt.job
    const key = { route: submitRoute, key: id }
    try {
      return { candidate: await toAdmissionRequest(request, key, await of(business).check(request)) }
    } catch (refusal) {
      if (endsTerm(refusal)) throw refusal
      try {
        const admission = await findEarlierAdmission(database, business, request, key)
        return admission ? { admission } : toVerdict(refusal, attempt)
      } catch (conflict) {
        return toVerdict(conflict, attempt)
      }
    }
  }

  /** One commit for all; where the database refuses one of them, they go one by one in their order. */
  const admitCandidates = async (
    business: string,
    candidates: readonly (Attempt & { candidate: AdmissionRequest })[],
    fence: Fence,
  ): Promise<Verdict[]> => {
    const alone = async (one: Attempt & { candidate: AdmissionRequest }): Promise<Verdict> => {
      try {
        return { admission: await admitCandidate(database, business, one.candidate, fence) }
      } catch (error) {
        return toVerdict(error, one)
      }
    }
    try {
      const rows = candidates.map(({ candidate }) => candidate)
      const results = await admitRuns(database, business, rows, fence)
      return candidates.map((one, at) => {
        const result = results[at]
        return result && 'run' in result ? { admission: result } : toVerdict(result, one)
      })
    } catch (error) {
      if (endsTerm(error)) throw error
      const waiting = new Set<string>()
      const verdicts: Verdict[] = []
      for (const one of candidates) {
        const verdict = waiting.has(one.job.session) ? behind : await alone(one)
        if ('wait' in verdict) waiting.add(one.job.session)
        verdicts.push(verdict)
      }
      return verdicts
    }
  }

  /** Admits jobs of one business, which were judged, in their order; none after one of its session that waits. */
  const admitJudged = async (
    business: string,
    judged: readonly (Attempt & { verdict: Verdict })[],
    fence: Fence,
  ): Promise<Verdict[]> => {
    const waiting = new Set<string>()
    const verdicts = judged.map(({ job, verdict }) => {
      const must = 'candidate' in verdict && waiting.has(job.session) ? behind : verdict
      if ('wait' in must) waiting.add(job.session)
      return must
    })
    const candidates = judged.flatMap(({ job, attempts }, at) => {
      const verdict = verdicts[at]
      return verdict && 'candidate' in verdict ? [{ job, attempts, at, ...verdict }] : []
    })
    if (candidates.length === 0) return verdicts
    const admitted = await admitCandidates(business, candidates, fence)
    for (const [nth, { at, job }] of candidates.entries()) {
      const verdict = admitted[nth] as Verdict
      verdicts[at] = verdict
      if ('admission' in verdict) of(business).announce(verdict.admission, job.request)
    }
    return verdicts
  }

  const reject = async (
    job: Pick<InvalidJob, 'id' | 'json' | 'hash' | 'business'>,
    errors: FieldError[],
    mayPass = false,
  ): Promise<JobOutcome> => {
    await rejectJob(database, job, errors, mayPass)
    log.warn({ job_id: job.id }, 'a queue job was rejected; GET /admin/v1/rejected-jobs has its errors')
    return { errors }
  }

  const lostJobs = createLostJobs({ database, clock, secrets: queueSecrets, rejectJob: reject })

  /** The outcome of a verdict that is one. */
  const settle = async (job: ValidJob, verdict: Verdict): Promise<JobOutcome> => {
    if ('admission' in verdict) {
      const { id: run_id, status } = verdict.admission.run
      return { run_id, status }
    }
    if ('errors' in verdict) return reject(job, verdict.errors, verdict.mayPass)
    throw new Error(`the job "${job.id}" was not decided`)
  }

  const findHeldSessions = async (business: string, jobs: readonly ValidJob[]): Promise<Set<string>> => {
    const sessions = jobs.flatMap(({ request }) => request.session_id ?? [])
    if (sessions.length === 0) return new Set()
    const { rows } = await database.query<{ session_id: string }>(heldSessionsStatement, [
      business,
      JSON.stringify(sessions),
    ])
    return new Set(rows.map(({ session_id }) => session_id))
  }

  const admitOfBusiness = async (
    business: string,
    jobs: readonly ValidJob[],
    epoch: number,
  ): Promise<Map<ValidJob, JobResult>> => {
    const heldSessions = await findHeldSessions(business, jobs)
    // a job behind another one spends no budget yet
    const judged = await Promise.all(
      jobs.map(async (job) => ({
        job,
        attempts: 1,
        verdict: heldSessions.has(job.session) ? behind : await judge({ job, attempts: 1 }),
      })),
    )
    const verdicts = await admitJudged(business, judged, createFence(epoch, null))
    const toHold = jobs.flatMap((job, at) => {
      const verdict = verdicts[at] as Verdict
      if (!('wait' in verdict)) return []
      const { errors, afterMs, isTry } = verdict.wait
      const { session: session_id, id: job_id, json: data, hash: data_hash } = job
      return [{ session_id, job_id, data, data_hash, errors, attempts: Number(isTry), after_ms: afterMs }]
    })
    const held = toHold.length > 0 ? await holdJobs(database, business, epoch, toHold) : null
    const results = new Map<ValidJob, JobResult>()
    for (const [at, job] of jobs.entries()) {
      const verdict = verdicts[at] as Verdict
      if (!('wait' in verdict)) {
        results.set(job, { outcome: await settle(job, verdict), seq: null })
        continue
      }
      const heldUntil = held?.get(job.id)
      if (!heldUntil) throw new LeaseLostError(epoch)
      results.set(job, { heldUntil })
    }
    return results
  }

  const findKnown = async (
    jobs: readonly (ValidJob | InvalidJob)[],
  ): Promise<(job: ValidJob | InvalidJob) => JobResult | null> => {
    const { rows } = await database.query<KnownJob>(knownStatement, [
      JSON.stringify(jobs.map(({ id, hash }) => ({ id, hash }))),
    ])
    return ({ id, hash }) => {
      const row = rows.find(({ job_id, data_hash }) => job_id === id && data_hash === hash)
      if (!row) return null
      const { errors, outcome, seq } = row
      if (errors) return { outcome: { errors }, seq: null }
      return outcome ? { outcome, seq } : { heldUntil: row.expires_at }
    }
  }

  /** Admits jobs in this order. Returns what became of each. */
  const admit = async (jobs: readonly IntakeJob[], epoch: number): Promise<JobResult[]> => {
    const read: (ValidJob | InvalidJob)[] = []
    for (const job of jobs) read.push(await readJob(job, queueSecrets, clock.now()))
    const toKnown = await findKnown(read)
    const results = new Map<ValidJob | InvalidJob, JobResult>()
    const fresh: ValidJob[] = []
    for (const job of read) {
      const known = toKnown(job)
      if (known) results.set(job, known)
      else if ('errors' in job) results.set(job, { outcome: await reject(job, job.errors), seq: null })
      else fresh.push(job)
    }
    const admitted = await Promise.all(
      [...groupBy(fresh, ({ business }) => business)].map(([business, group]) =>
        admitOfBusiness(business, group, epoch),
      ),
    )
    for (const [job, result] of admitted.flatMap((group) => [...group])) results.set(job, result)
    return read.map((job) => results.get(job) as JobResult)
  }

  /** The held jobs of a session that is due, in their order, until one must wait. Returns how many ended. */
  const tryHeldJobs = async (due: DueSession, epoch: number): Promise<number> => {
    const found = await readHeldJobs(database, due)
    // where a worker was lost with several, only the first: it is to blame, or the next try is another's
    const rows = due.attempts > 1 ? found.slice(0, 1) : found
    const advance = async (done: { seq: number; outcome: JobOutcome }[], wait: Wait | null) => {
      await advanceSession(database, epoch, due, done, wait)
      return done.length
    }
    const [first] = rows
    if (!first)
      return advance([], { errors: toJobErrors('its session is full'), afterMs: 1000, isTry: false })
    if (due.attempts > maxTries) {
      const job = { id: first.job_id, json: first.data, hash: first.data_hash, business: due.tenant }
      return advance([{ seq: first.seq, outcome: await lostJobs.reject(job, maxTries) }], null)
    }
    const judged: (Attempt & { verdict: Verdict; seq: number })[] = []
    for (const { seq, job_id, data, attempts } of rows) {
      // its signature was checked when it came
      const job = await readJob({ id: job_id, name: 'run', data: parseExactJson(data) }, [], clock.now())
      if ('errors' in job) {
        // by the rules of a newer version; after others it is tried when it is the first
        if (judged.length > 0) break
        return advance([{ seq, outcome: await reject(job, job.errors) }], null)
      }
      const verdict = await judge({ job, attempts })
      judged.push({ job, attempts, verdict, seq })
      if ('wait' in verdict) break
    }
    const verdicts = await admitJudged(due.tenant, judged, createFence(epoch, first.seq))
    const done: { seq: number; outcome: JobOutcome }[] = []
    for (const [at, { job, seq }] of judged.entries()) {
      const verdict = verdicts[at] as Verdict
      if ('wait' in verdict) return advance(done, verdict.wait)
      done.push({ seq, outcome: await settle(job, verdict) })
    }
    return advance(done, null)
  }

  const rejectExpired = async (epoch: number): Promise<void> => {
    for (const row of await listExpiredJobs(database)) {
      const errors = row.errors.map(({ pointer, detail }) => ({
        pointer,
        detail: `the job waited longer than its business lets runs wait in the queue: ${detail}`,
      }))
      const job = { id: row.job_id, json: row.data, hash: row.data_hash, business: row.tenant }
      const outcome = await reject(job, errors, true)
      await advanceSession(database, epoch, row, [{ seq: row.seq, outcome }], null)
    }
  }

  return {
    admit,
    /** Admits a job alone that another leader had taken. Null: Redis has lost it. */
    recover: (id: string, queue: RecoveryQueue, epoch: number): Promise<JobResult | null> =>
      lostJobs.recover(id, queue, async (job) => (await admit([job], epoch))[0] ?? null),
    /** Tries held jobs that are due, and rejects those whose time is over. True: more are due, and some have ended. */
    async release(epoch: number): Promise<boolean> {
      await lostJobs.takeBack()
      const tryOne = (due: DueSession): Promise<number> =>
        tryHeldJobs(due, epoch).catch(async (error: unknown) => {
          if (isPassing(error)) await lostJobs.uncountHeld(due.seq)
          if (endsTerm(error)) throw error
          log.error({ error: String(error), ...due }, 'held jobs could not be tried and will be retried')
          return 0
        })
      const ended = await Promise.all((await claimDueSessions(database, epoch)).map(tryOne))
      await rejectExpired(epoch)
      return ended.length >= maxDueOfBusiness && ended.some((some) => some > 0)
    },
  }
}

/** See `createIntake`. */
export type Intake = ReturnType<typeof createIntake>
