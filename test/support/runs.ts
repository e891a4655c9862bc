import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { ensureBusiness } from '../../src/accounts/businesses.ts'
import {
  type Admission,
  type AdmittedRun,
  admitCandidate,
  type IdempotencyKey,
  toAdmissionRequest,
} from '../../src/engine/runs/admission.ts'
import { type FinalEntry, toAppendRow } from '../../src/engine/runs/append-statements.ts'
import { claimNextRun, type RunClaim, type RunFence } from '../../src/engine/runs/claim.ts'
import { appendAlone } from '../../src/engine/runs/run-log.ts'
import type { BlobContent } from '../../src/files/blobs/blob-content.ts'
import { type Database, queryOne } from '../../src/infra/database/database.ts'
import { newAttemptId } from '../../src/infra/lib/ids.ts'
import { MasonError } from '../../src/state/errors.ts'
import type { LogEntry } from '../../src/state/ports/run-log.ts'
import type { Sql } from '../../src/state/ports/sql.ts'
import type { JobData, RunRequest } from '../../src/state/run-request.ts'
import type { ActionBody } from '../../src/state/runtime-state.ts'
import { noUsage } from '../../src/state/token-usage.ts'
import type { Backend } from './backend.ts'
import { waitedFor } from './clock.ts'
import { openTestRuntime, type TestRuntime } from './test-runtime.ts'

/** Hands for the parts of the spine, without a graph. */

/** Waits for a fact; gives what `look` returns. It looks less often the longer it waits: a look is often a query. */
export const until = async <T>(
  what: string,
  look: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  ms = 90_000,
): Promise<T> => {
  const waited = waitedFor()
  for (let pauseMs = 15; ; pauseMs = Math.min(60, pauseMs * 1.2)) {
    const found = await look()
    if (found) return found
    if (waited(ms)) throw new Error(`waited ${ms} ms in vain: ${what}`)
    await pause(pauseMs)
  }
}

/** A runtime together with the database it stands on. */
export const openWithDatabase = async (
  backend: Backend,
  options: Parameters<typeof openTestRuntime>[1] = {},
): Promise<{ runtime: TestRuntime; database: Database }> => {
  let found: Database | null = null
  const wrap = {
    ...options.wrap,
    database(opened: Database): Database {
      found = options.wrap?.database?.(opened) ?? opened
      return found
    },
  }
  const runtime = await openTestRuntime(backend, { ...options, wrap })
  return { runtime, database: found as unknown as Database }
}

/** Admits one run in a commit of its own. */
export const admitRun = async (
  database: Database,
  business: string,
  request: JobData,
  key?: IdempotencyKey,
): Promise<Admission> => admitCandidate(database, business, await toAdmissionRequest(request, key))

/** Commits one action, or with a `FinalEntry` the last one and the end of its run. */
export const appendAction = (sql: Sql, fence: RunFence, entry: LogEntry | FinalEntry): Promise<void> =>
  appendAlone(sql, toAppendRow(fence, entry))

export const submitTo = async (
  database: Database,
  business: string,
  request: Partial<RunRequest> = {},
): Promise<AdmittedRun> => {
  await ensureBusiness(database, business)
  return (await admitRun(database, business, { prompt: 'hello', user_id: 'u1', ...request })).run
}

export const claim = (database: Database, worker = 'w1', leaseMs = 30_000): Promise<RunClaim | null> =>
  claimNextRun(database, worker, leaseMs)

export const mustClaim = async (database: Database, worker = 'w1', leaseMs = 30_000): Promise<RunClaim> => {
  const claimed = await claim(database, worker, leaseMs)
  if (!claimed) throw new Error('no run was due')
  return claimed
}

/** As if the worker had fallen silent long ago. */
export const endLease = (sql: Sql, runId: string) =>
  sql.query(`UPDATE runs SET lease_until = clock_timestamp() - interval '1 second' WHERE run_id = $1`, [
    runId,
  ])

export const entry = (
  seq: number,
  more: Partial<LogEntry> & { action?: Partial<ActionBody> } = {},
): LogEntry => {
  const { action, ...rest } = more
  const body: ActionBody = {
    node: 'load-session',
    preparation: '',
    summary: `action ${seq}`,
    result: {},
    context: null,
    relevance: 0.5,
    usage: noUsage,
    next: ['planner'],
    ...action,
  }
  return {
    seq,
    attempt_id: newAttemptId(),
    visit: { id: newAttemptId(), ms: seq, prompt_sha256: null },
    body: JSON.stringify(body),
    patch: '{}',
    usage: body.usage,
    worked_ms: seq,
    effect: null,
    ...rest,
  }
}

export type RunRow = {
  status: string
  epoch: number
  next_seq: number | null
  stalls: number
  lease_owner: string | null
  lease_until: Date | null
  total_tokens: number
  worked_ms: number
  run_at: Date
}

export const rowOf = async (sql: Sql, runId: string): Promise<RunRow> => {
  const row = await queryOne<RunRow>(sql, 'SELECT * FROM runs WHERE run_id = $1', [runId])
  if (!row) throw new Error(`there is no run ${runId}`)
  return row
}

/** The bytes of an opened blob. */
export const readContent = async (content: BlobContent | null): Promise<Buffer | null> =>
  content && Buffer.concat(await Readable.from(content.chunks).toArray())

export const count = async (sql: Sql, text: string, values: readonly unknown[] = []): Promise<number> =>
  Number((await queryOne<{ n: number }>(sql, `SELECT count(*)::int AS n FROM ${text}`, values))?.n)

/** Resolves once a statement of another connection waits for a lock; or this one has ended, and has waited for none. */
export const untilBlocked = (database: Database, statement: Promise<unknown>) => {
  let hasEnded = false
  const end = (): void => {
    hasEnded = true
  }
  statement.then(end, end)
  const blocked =
    'pg_locks JOIN pg_stat_activity a USING (pid) WHERE NOT granted AND a.datname = current_database()'
  return until('a statement waits for a lock', async () => hasEnded || (await count(database, blocked)) > 0)
}

/** The time of the database, at least a minute before it begins another day of UTC: what is of today stays so in a test. */
export const nowOf = async (sql: Sql): Promise<Date> => {
  let now = new Date(0)
  await until('the day to be over', async () => {
    now = (await queryOne<{ now: Date }>(sql, 'SELECT clock_timestamp() AS now', []))?.now ?? now
    return new Date(now.getTime() + 60_000).getUTCDate() === now.getUTCDate()
  })
  return now
}

/** The code of the error of a call. */
export const codeOf = async (call: Promise<unknown>): Promise<string> => {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (error === null) return 'no error'
  if (error instanceof MasonError) return error.code
  return String((error as { code?: unknown }).code ?? error)
}

export const unavailable = () => new MasonError('database_unavailable', 'the database could not be reached')
