import type { Command } from 'commander'
import type { DeleteOfUser } from '../accounts/users.ts'
import type { RunClaim } from '../engine/runs/claim.ts'
import type { Sweep } from '../engine/sessions/retention-sweep.ts'
import type { AnyNode, AnyTool } from '../graph/definitions.ts'
import type { Config } from '../infra/config/config.ts'
import type { ProcessRole } from '../infra/config/role-settings.ts'
import type { SettingName } from '../infra/config/settings.ts'
import type { Database, ProcessDatabases } from '../infra/database/database.ts'
import type { SealedTable } from '../infra/secrets/key-rotation.ts'
import type { KeyFiles } from '../infra/secrets/master-key-files.ts'
import type { MasterKeys } from '../infra/secrets/master-keys.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import type { HealthReport } from '../infra/telemetry/health-report.ts'
import type { Metrics } from '../infra/telemetry/metrics.ts'
import type { App, RouteServer } from '../routes/route.ts'
import type { Log } from '../state/ports/log.ts'
import type { FeatureServices } from '../state/ports/services.ts'
import type { Sql } from '../state/ports/sql.ts'

/** The contract of features: docs/features.md. A feature is a folder; each of its files defines one thing, by its suffix. */

/** Names what one service provides, with its type, so that a file can use it without importing the service. */
export type Ref<Value> = { readonly id: string; readonly type?: Value; readonly isOptional?: true }

/** A handle; its id is that of the feature, a dot and a name, and the same everywhere. */
export const defineRef = <Value>(id: string): Ref<Value> => ({ id })

/** The handle in `needs` of a file that also works without it: null where nothing provides it. */
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
  settings: readonly SettingName[]
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

/** `*.keys.ts`: private keys that are sealed under a key of their own, which `mason keys rotate --<option>` replaces. */
export type KeysDefinition = {
  kind: 'keys'
  option: string
  description: string
  /** As in `the payment key`. */
  name: string
  /** Whose the key pairs are, and which processes have the settings. */
  owner: string
  processes: string
  /** That has the settings, on a database server. */
  role: ProcessRole
  settings: { current: SettingName; previous: SettingName }
  readSettings(config: Config): { current: string | null; previous: readonly string[] }
  database(databases: ProcessDatabases): Database | null
  openKeys(config: Config): Promise<MasterKeys>
  /** In DATA_DIR, embedded without the setting. */
  files: KeyFiles
  tables: readonly SealedTable[]
  /** Ends the pairs that are under another key than the current one, for new ones; returns how many. */
  replacePairs(database: Database, keys: MasterKeys): Promise<number>
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

/** What a command works with: the admin API that its flags choose, and the output. */
export type CommandTools = {
  withAdmin(
    flags: { url?: string; token?: string },
    work: (admin: {
      call(
        method: 'GET' | 'POST',
        path: string,
        json?: unknown,
        query?: Readonly<Record<string, string | undefined>>,
      ): Promise<unknown>
      /** Prints lines, without secrets. */
      print(text: string): void
      /** Prints what a GET answers as it is, without secrets, ended by a newline on a terminal alone. */
      printBody(path: string, query: Readonly<Record<string, string | undefined>>): Promise<void>
    }) => Promise<void>,
  ): Promise<void>
  /** Adds `--url` and `--token`, which choose the server. */
  addTargetOptions(command: Command): Command
  formatTable(rows: readonly (readonly string[])[]): string
  /** Runs the process of this name. */
  runProcess(name: string): Promise<void>
  /** Works without settings and mason.config.ts; false: the exit code is 1. */
  runAlone(work: (tools: AloneTools) => Promise<boolean>): Promise<void>
}
/** What a command without settings works with. */
export type AloneTools = {
  /** Removes control characters. */
  toPrintable(text: string): string
  /** Ends the command for its wrong usage, with exit code 2. */
  refuse(message: string, remedy: string): never
}

/** `*.command.ts`: a command with its subcommands. */
export type CommandDefinition = {
  kind: 'command'
  name: string
  description: string
  add(command: Command, tools: CommandTools): void
}

/** What a file of a feature defines. */
export type Definition =
  | FeatureDefinition
  | ServiceDefinition
  | RunServiceDefinition
  | AnyNode
  | AnyTool
  | RoutesDefinition
  | ResourceDefinition
  | LoopDefinition
  | MetricsDefinition
  | RetentionDefinition
  | CommandDefinition
  | ProcessDefinition
  | DoctorDefinition
  | KeysDefinition

/** See `FeatureDefinition`. */
export const defineFeature = (feature: Omit<FeatureDefinition, 'kind'>): FeatureDefinition => ({
  kind: 'feature',
  ...feature,
})
/** See `ServiceDefinition`. */
export const defineService = <Given extends Needs, Value>(
  service: Omit<ServiceDefinition<Given, Value>, 'kind'>,
): ServiceDefinition<Given, Value> => ({ kind: 'service', ...service })
/** See `RunServiceDefinition`. */
export const defineRunService = <Given extends Needs, Name extends keyof FeatureServices>(
  service: Omit<RunServiceDefinition<Given, Name>, 'kind'>,
): RunServiceDefinition<Given, Name> => ({ kind: 'run-service', ...service })
/** See `RoutesDefinition`. */
export const defineRoutes = <Given extends Needs>(
  routes: Omit<RoutesDefinition<Given>, 'kind'>,
): RoutesDefinition<Given> => ({ kind: 'routes', ...routes })
/** See `LoopDefinition`. */
export const defineLoop = <Given extends Needs>(
  loop: Omit<LoopDefinition<Given>, 'kind'>,
): LoopDefinition<Given> => ({ kind: 'loop', ...loop })
/** See `MetricsDefinition`. */
export const defineMetrics = <Given extends Needs>(
  metrics: Omit<MetricsDefinition<Given>, 'kind'>,
): MetricsDefinition<Given> => ({ kind: 'metrics', ...metrics })
/** See `RetentionDefinition`. */
export const defineRetention = (retention: Omit<RetentionDefinition, 'kind'>): RetentionDefinition => ({
  kind: 'retention',
  ...retention,
})
/** See `CommandDefinition`. */
export const defineCommand = (command: Omit<CommandDefinition, 'kind'>): CommandDefinition => ({
  kind: 'command',
  ...command,
})
/** See `ProcessDefinition`. */
export const defineProcess = (definition: Omit<ProcessDefinition, 'kind'>): ProcessDefinition => ({
  kind: 'process',
  ...definition,
})
/** See `DoctorDefinition`. */
export const defineDoctor = (doctor: Omit<DoctorDefinition, 'kind'>): DoctorDefinition => ({
  kind: 'doctor',
  ...doctor,
})
/** See `KeysDefinition`. */
export const defineKeys = (keys: Omit<KeysDefinition, 'kind'>): KeysDefinition => ({ kind: 'keys', ...keys })
