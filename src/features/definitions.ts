import type { z } from 'zod'
import type { DeleteOfUser } from '../accounts/users.ts'
import type { RunClaim } from '../engine/runs/claim.ts'
import type { Sweep } from '../engine/sessions/retention-sweep.ts'
import type { ReaderDefinition } from '../files/child/reader-definition.ts'
import type { AnyNode, AnyTool } from '../graph/definitions.ts'
import type { Config } from '../infra/config/config.ts'
import type { ExecutorSettings, ProcessRole } from '../infra/config/role-settings.ts'
import type { Database } from '../infra/database/database.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import type { HealthReport } from '../infra/telemetry/health-report.ts'
import type { Metrics } from '../infra/telemetry/metrics.ts'
import type { App, RouteServer } from '../routes/route.ts'
import type { Log } from '../state/ports/log.ts'
import type { FeatureServices } from '../state/ports/services.ts'
import type { Sql } from '../state/ports/sql.ts'
import type { CommandDefinition } from './command-definition.ts'
import type { KeysDefinition, SealedTable } from './keys-definition.ts'

/** The contract of features: docs/features.md. A feature is a folder; each of its files defines one thing, by its suffix. */

/** Names what one service provides, with its type, so that a file can use it without importing the service. */
export type Ref<Value> = { readonly id: string; readonly type?: Value; readonly isOptional?: true }

/**
 * A handle; its id is that of the feature, a dot and a name, and the same everywhere.
 *
 * @example
 * ```ts
 * import { defineRef } from 'mason-runtime/features'
 *
 * type Board = { count(): Promise<number> }
 * export const boardRef = defineRef<Board>('announcements.board')
 * ```
 */
export const defineRef = <Value>(id: string): Ref<Value> => ({ id })

/**
 * The handle in `needs` of a file that also works without it: null where nothing provides it.
 *
 * @example
 * ```ts
 * import { defineRef, defineService, optional } from 'mason-runtime/features'
 *
 * const boardRef = defineRef<{ read(): string }>('announcements.board')
 * export default defineService({
 *   provides: defineRef<string>('signs.text'),
 *   needs: { board: optional(boardRef) },
 *   start: ({ board }) => board?.read() ?? 'no announcements',
 * })
 * ```
 */
export const optional = <Value>({ id }: Ref<Value>): Ref<Value | null> => ({ id, isOptional: true })

/** What a file uses, by names of its own. */
export type Needs = Readonly<Record<string, Ref<unknown>>>

/** The values of what a file uses. */
export type Needed<Given extends Needs> = {
  readonly [Name in keyof Given]: Given[Name] extends Ref<infer Value> ? Value : never
}

/** `feature.ts`: the id, which is the name of the folder and permanent, and the tables that only this feature writes. */
export type FeatureDefinition = {
  kind: 'feature'
  id: string
  tables: readonly string[]
  /** Other features whose services its tools use: it is not there without them. */
  needs?: readonly string[]
  /** Those of them that have secrets under the master key. */
  sealed?: readonly SealedTable[]
  /** Its variables of the environment, each `MASON_<ID>_…`; their values are under the handle `<id>.settings`. */
  settings?: z.ZodObject
  /** Of Mason alone: those of them for a process with a login and keys of its own. They are in `Config`. */
  executor?: ExecutorSettings
}

/** `*.service.ts`: made once in each process, after what it needs. */
export type ServiceDefinition<Given extends Needs = Needs, Value = unknown> = {
  kind: 'service'
  provides: Ref<Value>
  needs: Given
  start(needed: Needed<Given>): NoInfer<Value>
}

/** `*.run-service.ts`: what tools and nodes get by its name in their `needs`; opened for each run that a worker claims. */
export type RunServiceDefinition<
  Given extends Needs = Needs,
  Name extends keyof FeatureServices = keyof FeatureServices,
> = {
  kind: 'run-service'
  name: Name
  needs: Given
  open(needed: Needed<Given>, run: RunClaim, sql: Sql): FeatureServices[Name]
}

/** `*.routes.ts` */
export type RoutesDefinition<Given extends Needs = Needs> = {
  kind: 'routes'
  needs: Given
  add(app: App, needed: Needed<Given>, server: RouteServer): void
}

/** `*.resource.ts`: the routes of a table that admins manage; `defineResource` makes them from its schemas. */
export type ResourceDefinition = Omit<RoutesDefinition, 'kind'> & { kind: 'resource' }

/** `*.loop.ts`: work that each worker repeats, `everyMs` after it ended. Workers share it by what they lock in the database. */
export type LoopDefinition<Given extends Needs = Needs> = {
  kind: 'loop'
  /** What it is doing, for the log: `sending webhooks`. */
  name: string
  everyMs: number
  needs: Given
  run(needed: Needed<Given>): Promise<unknown>
  /** Ends what `run` has begun, when the worker stops; `lastRun` is the run in progress. */
  drain?(needed: Needed<Given>, lastRun: Promise<void>): Promise<void>
}

/** `*.metrics.ts`: a counter with one label. `read` is called at each scrape; null where this process counts nothing. */
export type MetricsDefinition<Given extends Needs = Needs> = {
  kind: 'metrics'
  name: string
  help: string
  label: string
  needs: Given
  read(needed: Needed<Given>): Readonly<Record<string, number>> | null
}

/** `*.retention.ts`: what is deleted when. */
export type RetentionDefinition = {
  kind: 'retention'
  /** Deletes what is older than the days that rejected jobs are retained, a bounded batch at each call. */
  sweep?: Sweep
  /** Deletes what the feature has of a user. */
  deleteOfUser?: DeleteOfUser
}

/** A line of `mason doctor`. `remedy` says how to fix the problem or, where `ok` is true, what would be better. */
export type DoctorLine = { ok: boolean; text: string; remedy?: string | undefined }

/** `*.doctor.ts`: lines of `mason doctor`, for a database that is fine. */
export type DoctorDefinition = {
  kind: 'doctor'
  name: string
  /** Those that must be valid. */
  settings: readonly string[]
  check(
    config: Config,
    tools: {
      /** Null where another process has locked the embedded database. */
      readDatabase<Result>(read: (database: Database) => Promise<Result>): Promise<Result | null>
      pass(text: string, remedy?: string): DoctorLine
      fail(text: string, remedy: string): DoctorLine
    },
  ): Promise<DoctorLine[]>
}

/** `*.process.ts`: a process that runs until SIGTERM or SIGINT, with a port for probes and metrics. It loads no tools of a product. */
export type ProcessDefinition = {
  kind: 'process'
  name: string
  /** Which settings it has. */
  role: ProcessRole
  /** Throws where it cannot start. */
  open(config: Config, parts: ProcessParts): Promise<RunningProcess>
}
/** What the process of a feature gets. */
export type ProcessParts = {
  log: Log
  scrubber: Scrubber
  /** The value that a feature provides for a handle that needs no runtime; null: no feature does. */
  find<Value>(ref: Ref<Value>): Promise<Value | null>
}
/** See `ProcessDefinition`. */
export type RunningProcess = {
  /** As in `Mason <name> 4711 <does>`, and the rows of its banner. */
  does: string
  rows: readonly (readonly [string, string])[]
  /** Of the log: once it is ready, and at the signal to stop. */
  readyMessage: string
  readyFields: Record<string, unknown>
  stopMessage: string
  metrics: Metrics
  health(): Promise<HealthReport>
  close(timeoutMs: number): Promise<void>
}

/** What a file of a feature defines. */
export type Definition =
  | FeatureDefinition
  | ServiceDefinition
  | RunServiceDefinition
  | AnyNode
  | AnyTool
  | ReaderDefinition
  | RoutesDefinition
  | ResourceDefinition
  | LoopDefinition
  | MetricsDefinition
  | RetentionDefinition
  | CommandDefinition
  | ProcessDefinition
  | DoctorDefinition
  | KeysDefinition

const defineAs =
  <Defined extends Definition>(kind: Defined['kind']) =>
  (given: Omit<Defined, 'kind'>) =>
    ({ kind, ...given }) as Defined

/**
 * See `FeatureDefinition`.
 *
 * @example
 * ```ts
 * import { defineFeature } from 'mason-runtime/features'
 *
 * export default defineFeature({ id: 'announcements', tables: ['announcements'] })
 * ```
 */
export const defineFeature = defineAs<FeatureDefinition>('feature')
/**
 * See `ServiceDefinition`.
 *
 * @example
 * ```ts
 * import { clockRef, defineRef, defineService } from 'mason-runtime/features'
 *
 * const todayRef = defineRef<() => string>('announcements.today')
 * export default defineService({
 *   provides: todayRef,
 *   needs: { clock: clockRef },
 *   start: ({ clock }) => () => clock.now().toISOString().slice(0, 10),
 * })
 * ```
 */
export const defineService = <Given extends Needs, Value>(
  service: Omit<ServiceDefinition<Given, Value>, 'kind'>,
): ServiceDefinition<Given, Value> => ({ kind: 'service', ...service })
/**
 * See `RunServiceDefinition`.
 *
 * @example
 * ```ts
 * import { defineRunService } from 'mason-runtime/features'
 *
 * declare module 'mason-runtime/features' {
 *   interface FeatureServices {
 *     greeter: { greet(): string }
 *   }
 * }
 *
 * export default defineRunService({
 *   name: 'greeter',
 *   needs: {},
 *   open: (_needed, run) => ({ greet: () => `Hello ${run.user_id}` }),
 * })
 * ```
 */
export const defineRunService = <Given extends Needs, Name extends keyof FeatureServices>(
  service: Omit<RunServiceDefinition<Given, Name>, 'kind'>,
): RunServiceDefinition<Given, Name> => ({ kind: 'run-service', ...service })
/**
 * See `RoutesDefinition`.
 *
 * @example
 * ```ts
 * import { createDocs, defineRoutes, respondsWith } from 'mason-runtime/features'
 * import { z } from 'zod'
 *
 * const docs = createDocs('announcements')
 * export default defineRoutes({
 *   needs: {},
 *   add(app) {
 *     const text = respondsWith(200, 'The text', z.strictObject({ text: z.string() }))
 *     const config = docs('read', 'getAnnouncement', 'Returns the announcement of today', text)
 *     app.get('/v1/announcements/today', { config, handler: async () => ({ text: 'Open' }) })
 *   },
 * })
 * ```
 */
export const defineRoutes = <Given extends Needs>(
  routes: Omit<RoutesDefinition<Given>, 'kind'>,
): RoutesDefinition<Given> => ({ kind: 'routes', ...routes })
/**
 * See `LoopDefinition`.
 *
 * @example
 * ```ts
 * import { defineLoop, workerDatabaseRef } from 'mason-runtime/features'
 *
 * export default defineLoop({
 *   name: 'removing old announcements',
 *   everyMs: 60_000,
 *   needs: { database: workerDatabaseRef },
 *   run: ({ database }) => database.query("DELETE FROM announcements WHERE created_at < now() - interval '1 year'"),
 * })
 * ```
 */
export const defineLoop = <Given extends Needs>(
  loop: Omit<LoopDefinition<Given>, 'kind'>,
): LoopDefinition<Given> => ({ kind: 'loop', ...loop })
/**
 * See `MetricsDefinition`.
 *
 * @example
 * ```ts
 * import { defineMetrics } from 'mason-runtime/features'
 *
 * const read = { morning: 0, evening: 0 }
 * export default defineMetrics({
 *   name: 'mason_announcements_read_total',
 *   help: 'Announcements that runs have read',
 *   label: 'time',
 *   needs: {},
 *   read: () => read,
 * })
 * ```
 */
export const defineMetrics = <Given extends Needs>(
  metrics: Omit<MetricsDefinition<Given>, 'kind'>,
): MetricsDefinition<Given> => ({ kind: 'metrics', ...metrics })
/**
 * See `RetentionDefinition`.
 *
 * @example
 * ```ts
 * import { defineRetention } from 'mason-runtime/features'
 *
 * export default defineRetention({
 *   async deleteOfUser(sql, ...user) {
 *     const text = 'DELETE FROM announcements WHERE tenant = $1 AND user_id = $2 RETURNING 1'
 *     return (await sql.query(text, user)).rows.length > 0
 *   },
 * })
 * ```
 */
export const defineRetention = defineAs<RetentionDefinition>('retention')
/** See `ProcessDefinition`. */
export const defineProcess = defineAs<ProcessDefinition>('process')
/**
 * See `DoctorDefinition`.
 *
 * @example
 * ```ts
 * import { defineDoctor } from 'mason-runtime/features'
 *
 * export default defineDoctor({
 *   name: 'board',
 *   settings: [],
 *   async check(_config, { readDatabase, pass, fail }) {
 *     const read = await readDatabase((database) => database.query('SELECT FROM announcements LIMIT 1'))
 *     if (read === null) return []
 *     return read.rows.length > 0 ? [pass('has announcements')] : [fail('is empty', 'create an announcement')]
 *   },
 * })
 * ```
 */
export const defineDoctor = defineAs<DoctorDefinition>('doctor')
