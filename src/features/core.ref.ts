import type { Admission } from '../engine/runs/admission.ts'
import type { BusinessRuns, JobAdmissions } from '../engine/runs/business-runs.ts'
import type { RunFilter } from '../engine/runs/run-queries.ts'
import type { SecretAnswers } from '../engine/runs/secret-answers.ts'
import type { CheckWebhookAddress } from '../engine/runs/webhook-address.ts'
import type { UnrepeatableWork } from '../engine/sessions/repeated-effects.ts'
import type { UserMemory } from '../engine/sessions/user-memory.ts'
import type { FileService } from '../files/run-files.ts'
import type { GraphInfo } from '../graph/definitions.ts'
import type { Config } from '../infra/config/config.ts'
import type { Database } from '../infra/database/database.ts'
import type { Egress } from '../infra/egress/egress-port.ts'
import type { Hints } from '../infra/queue/hints.ts'
import type { Queues } from '../infra/queue/queues.ts'
import type { MasterKeys } from '../infra/secrets/master-keys.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import type { Backlog, CreateMetrics } from '../infra/telemetry/metrics.ts'
import type { OpenTracing } from '../infra/telemetry/tracing.ts'
import type { ModelRequests } from '../models/call/model-requests.ts'
import type { ModelGateway } from '../models/ports/call-ports.ts'
import type { ModelCaller, RegistryView } from '../models/ports/model-ports.ts'
import type { InProcessModel } from '../models/providers/in-process-model.ts'
import type { ResponseFormats } from '../models/providers/response-formats.ts'
import type { ModelProbes } from '../models/schemas/model-probe.ts'
import type { Agents } from '../state/ports/agents.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { Log } from '../state/ports/log.ts'
import type { MediaModels } from '../state/ports/media.ts'
import type { Sql } from '../state/ports/sql.ts'
import type { RunEntry, Tracer } from '../state/ports/tracer.ts'
import type { JobData } from '../state/run-request.ts'
import type { RunPage } from '../state/run-view.ts'
import { defineRef } from './definitions.ts'
import type { Viewed } from './keep-with-view.ts'
import type { PaymentAgents } from './payment-agents.ts'
import type { RenderPush } from './push-message.ts'

/** The handles of what the core provides to features, and of what the core uses where a feature provides it. */

/**
 * The database of the API: what an admin changes by it is logged.
 *
 * @example
 * ```ts
 * import { databaseRef, defineRef, defineService } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<() => Promise<unknown>>('announcements.example'),
 *   needs: { database: databaseRef },
 *   start: ({ database }) => () => database.query('SELECT count(*) FROM announcements'),
 * })
 * ```
 */
export const databaseRef = defineRef<Database>('core.database')
/**
 * The database of the worker, for loops.
 *
 * @example
 * ```ts
 * import { defineRef, defineService, workerDatabaseRef } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<() => Promise<unknown>>('announcements.example'),
 *   needs: { database: workerDatabaseRef },
 *   start: ({ database }) => () => database.query('DELETE FROM announcements'),
 * })
 * ```
 */
export const workerDatabaseRef = defineRef<Database>('core.worker-database')
/** The database of the executor, under its own role; only where the executor runs in this process. */
export const executorDatabaseRef = defineRef<Database>('core.executor-database')
/**
 * The settings of the process.
 *
 * @example
 * ```ts
 * import { configRef, defineRef, defineService } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<string>('announcements.example'),
 *   needs: { config: configRef },
 *   start: ({ config }) => config.logLevel,
 * })
 * ```
 */
export const configRef = defineRef<Config>('core.config')
/**
 * Time of the process, which tests set.
 *
 * @example
 * ```ts
 * import { clockRef, defineRef, defineService } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<() => Date>('announcements.example'),
 *   needs: { clock: clockRef },
 *   start: ({ clock }) => () => clock.now(),
 * })
 * ```
 */
export const clockRef = defineRef<Clock>('core.clock')
/** Wakes workers. */
export const queuesRef = defineRef<Queues>('core.queues')
/** Best-effort messages between processes. */
export const hintsRef = defineRef<Hints>('core.hints')
/**
 * The log of the process.
 *
 * @example
 * ```ts
 * import { defineRef, defineService, logRef } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<(text: string) => void>('announcements.example'),
 *   needs: { log: logRef },
 *   start: ({ log }) => (text) => log.info({ text }, 'announced'),
 * })
 * ```
 */
export const logRef = defineRef<Log>('core.log')
/**
 * The only way to addresses that come from data.
 *
 * @example
 * ```ts
 * import { defineRef, defineService, egressRef } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<unknown>('announcements.example'),
 *   needs: { egress: egressRef },
 *   start: ({ egress }) => egress,
 * })
 * ```
 */
export const egressRef = defineRef<Egress>('core.egress')
/**
 * What secrets are sealed with.
 *
 * @example
 * ```ts
 * import { defineRef, defineService, masterKeysRef } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<string>('announcements.example'),
 *   needs: { keys: masterKeysRef },
 *   start: ({ keys }) => keys.current().name,
 * })
 * ```
 */
export const masterKeysRef = defineRef<MasterKeys>('core.master-keys')
/**
 * Redacts every secret that is added.
 *
 * @example
 * ```ts
 * import { defineRef, defineService, scrubberRef } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<(secret: string) => void>('announcements.example'),
 *   needs: { scrubber: scrubberRef },
 *   start: ({ scrubber }) => (secret) => scrubber.add(secret),
 * })
 * ```
 */
export const scrubberRef = defineRef<Scrubber>('core.scrubber')

/**
 * All models of the registry, on behalf of any caller.
 *
 * @example
 * ```ts
 * import { defineRef, defineService, modelGatewayRef } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<() => number>('announcements.example'),
 *   needs: { models: modelGatewayRef },
 *   start: ({ models }) => () => models.list({ business_id: 'default', user_id: null, run_id: null }).length,
 * })
 * ```
 */
export const modelGatewayRef = defineRef<Pick<ModelGateway, 'ask' | 'list'>>('core.model-gateway')
/** Who spends. The token of a run is the one that submitted it. */
export type Spender = {
  business_id: string
  user_id: string | null
  token_id?: string | null
  run_id?: string | null
}
/** What spenders may spend. */
export type BudgetChecks = {
  /** A change by an admin counts here at once. */
  forget(): void
  /** Counts a run or a call that is about to start. Throws `budget_exhausted`. */
  check(spender: Spender): Promise<void>
  /** Which limit on costs the spender of a run has reached by now; null: none. */
  findReached(spender: Spender): Promise<{ budget_id: string; limit: string } | null>
}
/** A feature provides it. Without one, no costs are limited. */
export const budgetsRef = defineRef<BudgetChecks>('core.budgets')
/** Enters in the ledger what calls of this process have settled. */
export const ledgerFlushRef = defineRef<() => Promise<void>>('core.ledger-flush')
/** What requests to models are made of. @internal */
export const modelRequestsRef = defineRef<ModelRequests>('core.model-requests')
/** Counts what is about to start; throws `budget_exhausted` (detail.retry_after_s). Runs are checked by `submit`. */
export const budgetCheckRef = defineRef<(spender: Spender) => Promise<void>>('core.budget-check')

/**
 * A feature provides it, for processes whose settings name no model, in `in-process-model.service.ts`. It is found before all other services and
 * then started again with them, so it needs `configRef` alone and holds nothing.
 */
export const inProcessModelRef = defineRef<InProcessModel>('core.in-process-model')

/** A feature provides it, in `response-formats.service.ts`, which needs nothing: it is found before the registry opens, as the model above. @internal */
export const responseFormatsRef = defineRef<ResponseFormats>('core.response-formats')

/**
 * Follows what admins set: `view` is another object after each change of a table whose trigger raises the version. Who changes one calls
 * `refresh` then.
 */
export const registryRef = defineRef<Viewed & { refresh(): Promise<void> }>('core.registry')

/** The files of the runs of this process. */
export const fileServiceRef = defineRef<FileService>('core.file-service')

/** What the registry has now. */
export const registryViewRef = defineRef<() => RegistryView>('core.registry-view')
/**
 * A feature provides it, in `tracing.service.ts`. It is found before all other services and then started again with them. Without one, a
 * process whose settings name a collector does not start.
 */
export const tracingRef = defineRef<OpenTracing>('core.tracing')
/** Of the process. */
export const tracerRef = defineRef<Tracer>('core.tracer')

/** Runs on behalf of a business. */
export type RunSubmission = {
  /** Throws `invalid_request` for a request that could not be submitted now. */
  check(businessId: string, request: JobData): Promise<void>
  /** Throws what `BusinessApi.submit` throws. */
  submit(businessId: string, request: JobData, key?: string, entry?: RunEntry): Promise<Admission>
}
/**
 * See `RunSubmission`.
 *
 * @example
 * ```ts
 * import { defineRef, defineService, runSubmissionRef } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<(prompt: string) => Promise<unknown>>('announcements.example'),
 *   needs: { runs: runSubmissionRef },
 *   start: ({ runs }) => (prompt) => runs.submit('default', { prompt, user_id: 'ann' }),
 * })
 * ```
 */
export const runSubmissionRef = defineRef<RunSubmission>('core.run-submission')

/**
 * The runs of a business, for a feature that serves them by a protocol of its own.
 *
 * @example
 * ```ts
 * import { businessRunsRef, defineRef, defineService } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<(run: string) => Promise<unknown>>('announcements.example'),
 *   needs: { runsOf: businessRunsRef },
 *   start: ({ runsOf }) => (run) => runsOf('default').run(run),
 * })
 * ```
 */
export const businessRunsRef = defineRef<(businessId: string) => BusinessRuns>('core.business-runs')
/** How jobs of the public queue become runs of a business. */
export const jobAdmissionsRef = defineRef<(businessId: string) => JobAdmissions>('core.job-admissions')
/** The nodes and tools of this process, once its services have started. */
export const graphRef = defineRef<() => Pick<GraphInfo, 'tool' | 'tools'>>('core.graph')
/**
 * Has the waits for a job of this name polled at once; the same for a name that nothing waits for.
 *
 * @example
 * ```ts
 * import { defineRef, defineService, jobPollRef } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<(job: string) => Promise<void>>('announcements.example'),
 *   needs: { poll: jobPollRef },
 *   start: ({ poll }) => (job) => poll(job),
 * })
 * ```
 */
export const jobPollRef = defineRef<(refId: string) => Promise<void>>('core.job-poll')

/** Where others reach this server: `origin` always, with the path that a proxy has it under; `publicUrl` where it is set. */
export type ServerAddress = { origin: string; publicUrl: string | null }
/**
 * See `ServerAddress`.
 *
 * @example
 * ```ts
 * import { defineRef, defineService, serverAddressRef } from 'mason-runtime/features'
 *
 * export default defineService({
 *   provides: defineRef<string>('announcements.example'),
 *   needs: { address: serverAddressRef },
 *   start: ({ address }) => `${address.origin}/v1/announcements`,
 * })
 * ```
 */
export const serverAddressRef = defineRef<ServerAddress>('core.server-address')

/** Seals a text for the executor of payments alone; null: no executor has started yet. */
export type SealForExecutor = (text: string, purpose: string) => Promise<string | null>
/** See `SealForExecutor`. */
export const sealForExecutorRef = defineRef<SealForExecutor>('core.seal-for-executor')

/** What is wrong with the mandates in the data of a message, to follow the name of the data; null: nothing. */
export type FindDataProblem = (data: unknown) => string | null
/** See `FindDataProblem`. */
export const mandateProblemRef = defineRef<FindDataProblem>('core.mandate-problem')

/** A feature provides it. Without one, no such message can be sent. */
export const renderPushRef = defineRef<RenderPush>('core.render-push')

/** The runs of all businesses. A feature provides it. Without one, a list of runs is of one business. */
export const allRunsRef =
  defineRef<(filter: RunFilter & { count?: boolean }) => Promise<RunPage>>('core.all-runs')
/**
 * A feature provides it, in `metrics.service.ts`, which is found as `tracingRef` is. Without one, nothing is counted.
 */
export const metricsRef = defineRef<CreateMetrics>('core.metrics')
/** What waits in the database, for all processes. */
export const backlogRef = defineRef<() => Promise<Backlog>>('core.backlog')

/** How many jobs of the public queue are refused. A feature provides it. */
export const rejectedJobsRef = defineRef<() => Promise<number>>('core.rejected-jobs')
/** How many messages to webhooks were given up. A feature provides it. */
export const deadWebhooksRef = defineRef<() => Promise<number>>('core.dead-webhooks')
/** A feature provides it. Without one, requests with addresses for webhooks are refused. */
export const webhookAddressRef = defineRef<CheckWebhookAddress>('core.webhook-address')

/** How one run calls other agents. */
export type OpenRunAgents = (sql: Sql, businessId: string) => Agents
/** A feature provides it. Without one, runs have no agents. */
export const runAgentsRef = defineRef<OpenRunAgents>('core.run-agents')

/** How the executor of payments calls other agents: it has no master key, and opens headers that were sealed to it. */
export type OpenPaymentAgents = (
  options: { egress: Egress; unseal(sealed: string, purpose: string): Promise<string> },
  sql: Sql,
) => PaymentAgents
/** A feature provides it. Without one, nothing is paid by agents. */
export const paymentAgentsRef = defineRef<OpenPaymentAgents>('core.payment-agents')

/** Signs the next agent card that waits for it, by the executor's key of receipts. False: none does. */
export type SignNextCard = (
  database: Database,
  signer: {
    issuer: string
    sign(card: Record<string, unknown>): Promise<{ protected: string; signature: string }>
  },
  log: Log,
) => Promise<boolean>
/** A feature provides it. */
export const cardSigningRef = defineRef<SignNextCard>('core.card-signing')

/** Follows a change of the secrets of a business. */
export type SecretsChanged = (businessId: string) => Promise<void>
/** A feature provides it, where it keeps what was made of secrets. */
export const secretsChangedRef = defineRef<SecretsChanged>('core.secrets-changed')

/** A feature provides it. Without one, nothing is learned and recalled of users. */
export const userMemoryRef = defineRef<UserMemory>('core.user-memory')

/** A feature provides it. Without one, admins make no test calls. */
export const modelProbesRef = defineRef<ModelProbes>('core.model-probes')

/** A feature provides it. Without one, no model makes or reads media for runs. */
export const mediaModelsRef = defineRef<(caller: ModelCaller) => MediaModels>('core.media-models')

/** A feature provides it. Without one, no secret question is asked. */
export const secretAnswersRef = defineRef<SecretAnswers>('core.secret-answers')

/** A feature provides it, where it does what a run that is run again must not do twice. */
export const unrepeatableWorkRef = defineRef<UnrepeatableWork>('core.unrepeatable-work')

/** Starts to carry out what runs have ordered, in this process. Throws `invalid_settings` on a database server. */
export type StartExecutor = () => Promise<{ stop(): Promise<void> }>
/** A feature provides it, where its executor is a process of its own on a database server. */
export const executorRef = defineRef<StartExecutor>('core.executor')
