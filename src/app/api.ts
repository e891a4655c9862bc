import type { Businesses } from '../accounts/businesses.ts'
import type { Operators } from '../accounts/operators.ts'
import type { Tokens } from '../accounts/tokens.ts'
import type { UserAccounts } from '../accounts/users.ts'
import type { BusinessRuns } from '../engine/runs/business-runs.ts'
import type { InputFilter } from '../engine/runs/input-queries.ts'
import type { RunFilter } from '../engine/runs/run-queries.ts'
import type { UnknownEffects } from '../engine/runs/unknown-effects.ts'
import type { ActionFilter } from '../engine/sessions/action-queries.ts'
import type { MemoriesApi } from '../engine/sessions/user-memory.ts'
import type { Features } from '../features/load-features.ts'
import type { Uploads } from '../files/uploads.ts'
import type { Graph } from '../graph/build.ts'
import type { HealthReport } from '../infra/telemetry/health-report.ts'
import type { Metrics } from '../infra/telemetry/metrics.ts'
import type { ModelGateway } from '../models/ports/call-ports.ts'
import type { RegistryAdmin } from '../models/registry/registry-admin.ts'
import type { Patch } from '../state/patch.ts'
import type { Models } from '../state/ports/models.ts'
import type { RunEntry } from '../state/ports/tracer.ts'
import type { RerunRequest } from '../state/run-request.ts'
import type {
  ActionPrompt,
  ActionView,
  InputRequestView,
  Page,
  RunChange,
  RunPage,
  SessionView,
} from '../state/run-view.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import type { listAudit } from './audit-log.ts'
import type { Auditing } from './audited-database.ts'
import type { ConsoleSessions } from './console-sessions.ts'

/**
 * Everything that can be done with runs, on behalf of one business. Errors are MasonError; its code says which.
 *
 * @example
 * ```ts
 * import type { BusinessApi } from 'mason-runtime'
 *
 * const follow = async (api: BusinessApi, runId: string, signal: AbortSignal): Promise<void> => {
 *   for await (const event of api.events({ run_id: runId }, 0, signal))
 *     if (event.event === 'action') console.log(event.id, event.data.summary)
 * }
 * ```
 */
export type BusinessApi = BusinessRuns & {
  /**
   * Runs a request again in a new session, forked right before the run or right after `from_action`. `not_found`, `in_use`,
   * `has_effects` (detail.effects), `has_payments`, `invalid_request`, and what `submit` throws.
   */
  rerun(
    runId: string,
    options: RerunRequest,
    key?: string,
    entry?: RunEntry,
  ): ReturnType<BusinessApi['submit']>
  /** Whether there is such a run or session; costs the same however long it is. */
  exists(source: { run_id: string } | { session_id: string }): Promise<boolean>
  /** Files that are uploaded before a run names them by `file_id`. */
  files: Uploads
  /** The questions that runs have asked people, the latest first. */
  inputRequests(filter: InputFilter): Promise<Page<InputRequestView>>
  /** The memories of its users. */
  memories: MemoriesApi
  session(sessionId: string): Promise<SessionView | null>
  sessions(filter: { user_id?: string; limit: number; cursor?: string }): Promise<Page<SessionView>>
  /** Ends its runs and deletes everything of it, with files and memories that no other session has. False: no such session. */
  deleteSession(sessionId: string): Promise<boolean>
  /** A page of the actions of a session with their times and model calls, at most 1 MB but for its first. Null: no such session. */
  actions(sessionId: string, filter: ActionFilter): Promise<{ data: ActionView[]; has_more: boolean } | null>
  /** An action with what it changed. Null: no such action. */
  action(sessionId: string, actionId: number): Promise<(ActionView & { patch: Patch }) | null>
  /**
   * The messages that an action sent to a model first, without the first `after`: at most 1 MB but for one. Rebuilt; `origin` says
   * whether they are what was sent. Null: no such action. `no_prompt`: it called no model, or its content is gone.
   */
  prompt(sessionId: string, actionId: number, after?: number): Promise<ActionPrompt | null>
  /** The state as an action left it; 0: before any; absent: the latest. Null: no such session, or no such action. */
  sessionState(sessionId: string, options: { action?: number; inline: boolean }): Promise<RuntimeState | null>
  /**
   * Copies a session through this action into a new one; the run of the action ends there. Null: no such session.
   * `invalid_request`: no such action; `in_use`: its run has not ended.
   */
  fork(sessionId: string, actionId: number): Promise<SessionView | null>
  /** The runs whose status changes, without content, after a position (null: from now on); each change at least once. @internal */
  changes(after: number | null, signal: AbortSignal): AsyncIterable<RunChange>
}

/**
 * One open runtime: the composition of database, queue, models and graph.
 *
 * @example
 * ```ts
 * import type { Runtime } from 'mason-runtime'
 *
 * const isReady = async (runtime: Runtime): Promise<boolean> => (await runtime.health()).ok
 * ```
 */
export type Runtime = {
  of(businessId: string): BusinessApi
  /** The caller of a bearer token, or null. */
  authenticate(token: string): Promise<{ business_id: string; token_id?: string; roles: string[] } | null>
  /** The operator of a bearer token, or null. @internal */
  authenticateOperator(token: string): Promise<{ token_id: string; label: string } | null>
  /** Counts a request of a business; throws `too_many_requests` (detail.retry_after_s) beyond its quota. */
  countRequest(businessId: string): Promise<void>
  /** What admins manage, for all businesses. */
  admin: {
    businesses: Businesses
    tokens: Tokens
    /** @internal */
    operators: Operators
    /** Who is signed in to the console. @internal */
    consoleSessions: ConsoleSessions
    /** What admins changed: `run` works on a request, whose changes are logged. @internal */
    audit: {
      run: Auditing['run']
      list(filter: Parameters<typeof listAudit>[1]): ReturnType<typeof listAudit>
    }
    users: UserAccounts
    registry: RegistryAdmin
    effects: UnknownEffects
    /** A page of the runs of all businesses, which may only read. @internal */
    listAllRuns(filter: Omit<RunFilter, 'edge'> & { count?: boolean }): Promise<RunPage>
  }
  /** Starts to carry out orders of payments in this process; only without a database server, where the executor has no process of its own. */
  startPayments(): Promise<void>
  /** The features of this process, by what they provide. @internal */
  features: Pick<Features, 'get' | 'addRoutes'>
  /** The address under which others reach this server: an origin, and the path that a proxy has it under. @internal */
  publicOrigin: string
  health(): Promise<HealthReport>
  /** What this process counts, and what waits in the database, for /metrics. @internal */
  metrics: Metrics
  graph: Graph
  /** The models of the default business. */
  models: Models
  /** All models of the registry, on behalf of any caller. @internal */
  modelService: ModelGateway
  /**
   * Starts to claim and execute runs in this process, with its relay, reconciler and the loops of features: `maxRuns` at once, of which
   * `concurrency` work.
   */
  startWorker(options?: { concurrency?: number; maxRuns?: number }): Promise<void>
  /** Starts to learn from ended runs in this process; `startWorker` includes it. */
  startMemoryWork(): void
  /** Hands running runs back and closes everything, within `timeoutMs`. */
  close(timeoutMs?: number): Promise<void>
}
