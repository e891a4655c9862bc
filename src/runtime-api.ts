import type { Graph } from './graph/build.ts'
import type { Businesses } from './infra/admin/businesses.ts'
import type { Tokens } from './infra/admin/tokens.ts'
import type { Users } from './infra/admin/users.ts'
import type { MemoriesApi } from './infra/memory/api.ts'
import type { CallCounts } from './infra/models/call/counts.ts'
import type { ModelService } from './infra/models/call-ports.ts'
import type { RegistryAdmin } from './infra/registry/admin.ts'
import type { SpanCounts } from './infra/telemetry/open.ts'
import type { Models } from './state/ports.ts'
import type { UsageReports } from './state/registry/usage.ts'
import type { RunRequest } from './state/run-request.ts'
import type { Page, RunEvent, RunStatus, RunView, SessionView } from './state/run-view.ts'
import type { Json, RuntimeState } from './state/runtime-state.ts'
import type { Entry } from './state/trace.ts'

/** Everything that can be done with runs, on behalf of one business. Errors are MasonError; its code says which. */
export type BusinessApi = {
  /** Durable once it resolves, also while the queue is down. `invalid_request` (detail.errors), `idempotency_conflict`, `session_of_another_user`, `too_many_requests` (detail.retry_after_s). `entry`: the way it came, for its trace. */
  submit(
    request: RunRequest,
    key?: string,
    entry?: Entry,
  ): Promise<{ run: { id: string; session_id: string; turn: number; status: RunStatus }; replayed: boolean }>
  /** Resolves once the run is completed, failed, cancelled or waits for input. One that was admitted just now can be given as `submit` gave it. */
  wait(run: string | { id: string; session_id: string }, signal: AbortSignal): Promise<RunView>
  /** Whether there is such a run or session; costs the same however long it is. */
  exists(source: { run_id: string } | { session_id: string }): Promise<boolean>
  /** Null when the business has no such run. */
  run(runId: string): Promise<RunView | null>
  runs(filter: {
    user_id?: string
    session_id?: string
    status?: RunStatus
    limit: number
    cursor?: string
  }): Promise<Page<RunView>>
  /** The state up to the run's turn; large results inlined unless `inline` is false. Null: no such run. */
  state(runId: string, inline: boolean): Promise<RuntimeState | null>
  blob(runId: string, sha256: string): Promise<Uint8Array | null>
  /** `run_ended` for completed or failed ones; repeating it is fine. */
  cancel(runId: string, reason: string | undefined): Promise<RunView>
  /** `invalid_request` when the answer does not fit the schema, `input_answered`, `not_found`. */
  answer(runId: string, requestId: string, answer: Json): Promise<RunView>
  /** What is remembered of its users. */
  memories: MemoriesApi
  session(sessionId: string): Promise<SessionView | null>
  sessions(filter: { user_id?: string; limit: number; cursor?: string }): Promise<Page<SessionView>>
  /** Ends its runs and deletes everything of it, with files and memories that nothing else has. False: no such session. */
  deleteSession(sessionId: string): Promise<boolean>
  /**
   * A new session holding everything up to this action; the run of the action is cut there. Null: no such session.
   * `invalid_request`: no such action; `in_use`: its run has not ended.
   */
  fork(sessionId: string, actionId: number): Promise<SessionView | null>
  /**
   * Events of one run (ends with `done`) or of a whole session (does not end by itself), after action `after`
   * (0: from the start): current snapshots first, then the missed actions, then live. Each action exactly once.
   */
  events(
    source: { run_id: string } | { session_id: string },
    after: number,
    signal: AbortSignal,
  ): AsyncIterable<RunEvent>
}

/** What this process asked of models since it began, and how its keys stand now. */
export type ModelStats = ReturnType<CallCounts['read']> & {
  /** By vendor: keys that could serve now, and whether those are too few. */
  pools: { vendor: string; healthy: number; isLow: boolean }[]
}

export type Health = {
  ok: boolean
  checks: Record<string, { ok: true; ms: number } | { ok: false; error: string }>
}

/** One open runtime: the composition of database, queue, models and graph. */
export type Runtime = {
  of(businessId: string): BusinessApi
  /** Who a bearer token is, or null. `admin`: the admin token. */
  authenticate(token: string): Promise<{ business_id: string; roles: string[] } | null>
  /** What admins manage, of all businesses. */
  admin: {
    businesses: Businesses
    tokens: Tokens
    users: Users
    registry: RegistryAdmin
    usage: UsageReports
  }
  health(): Promise<Health>
  /** Counters for /metrics. */
  stats(): Promise<{
    queued: number
    running: number
    input_required: number
    workers: number
    outbox: number
  }>
  graph: Graph
  /** As the default business has them. */
  models: Models
  /** All models of the registry, on behalf of anyone. */
  modelService: ModelService
  modelStats(): ModelStats
  /** Null while nothing is traced. */
  spanCounts(): SpanCounts | null
  /** Starts claiming and working on runs in this process, with what belongs to it (relay, reconciler, intake). */
  startWorker(options?: { concurrency?: number }): Promise<void>
  /** Starts learning from ended runs in this process; a worker does so by itself. */
  startMemoryWork(): void
  /** Hands running runs back and lets go of everything; at most `timeoutMs`. */
  close(timeoutMs?: number): Promise<void>
}
