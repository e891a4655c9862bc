import { basename } from 'node:path'
import type { DeleteOfUser } from '../accounts/users.ts'
import type { RunClaim } from '../engine/runs/claim.ts'
import type { ServiceFactories } from '../engine/runs/run-services.ts'
import type { Config, Environment } from '../infra/config/config.ts'
import type { App, RouteServer } from '../routes/route.ts'
import { toSettingsError } from '../state/errors.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { Log } from '../state/ports/log.ts'
import type { FeatureServices } from '../state/ports/services.ts'
import type { Sql } from '../state/ports/sql.ts'
import { configRef } from './core.ref.ts'
import { type FeatureSource, isFeatureFile, type Loaded, loadKind, refuseFile } from './definition-files.ts'
import type { Definition, Needs, Ref } from './definitions.ts'
import { startLoops } from './start-loops.ts'

/** Notes what a file has as its own; throws where `owners` says that another file, or the core, has it. */
const claim = (owners: Map<string, string>, id: string, file: string, has: string, what: string): void => {
  const other = owners.get(id)
  if (other !== undefined)
    throw toSettingsError(
      `${file} and ${other} both ${has} "${id}"`,
      `give one of them another ${what}, or remove it`,
    )
  owners.set(id, file)
}

/** The settings of a feature by its handle. Throws what is wrong with all of its variables, never with a value. */
const readFeatureSettings = (
  { file, definition: { id, settings, executor } }: Loaded<'feature'>,
  environment: Environment = {},
): Provided[] => {
  if (!settings) return []
  const prefix = `MASON_${id.replaceAll('-', '_').toUpperCase()}_`
  const other = Object.keys(settings.shape).find((name) => !name.startsWith(prefix))
  if (other !== undefined && !executor)
    throw toSettingsError(`${file} has the setting "${other}"`, `begin its name with ${prefix}`)
  const { data, error } = settings.strip().safeParse(environment)
  if (!error) return [[{ id: `${id}.settings` }, data]]
  const problems = error.issues.map(({ path: [name = ''], message }) =>
    environment[String(name)] === undefined ? `${String(name)} is missing` : `${String(name)}: ${message}`,
  )
  throw toSettingsError(problems.join('; '), `set it in the environment or in .env; ${file} has its values`)
}

/** The features. Throws where two have one id, or a folder has no feature.ts. */
export const loadFeatures = async (sources: readonly FeatureSource[]): Promise<Loaded<'feature'>[]> => {
  const features = await loadKind(sources, 'feature')
  const without = sources.find(({ files }) => !Object.keys(files).some(isFeatureFile))
  if (without)
    throw toSettingsError(
      `${without.folder} has no feature.ts`,
      'add it: export default defineFeature({ id, tables: [] }), or remove the folder',
    )
  const owners = new Map<string, string>()
  for (const { file, definition } of features) {
    if (!/^[a-z][a-z0-9-]*$/.test(definition.id))
      throw toSettingsError(
        `${file} has the id "${definition.id}"`,
        'use lower-case letters, digits and dashes',
      )
    claim(owners, definition.id, file, 'define the feature', 'id')
  }
  return features
}

/** The value of a handle; undefined where it is not provided. */
type Reader = (id: string) => unknown

const throwMissing = (file: string, id: string): never => {
  throw toSettingsError(
    `${file} needs "${id}", which no feature provides`,
    `write a *.service.ts that provides it, add the feature "${id.split('.', 1)[0]}", or remove ${file}`,
  )
}

const resolveNeeds = (file: string, needs: Needs, read: Reader): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(needs).map(([name, { id, isOptional }]) => [
      name,
      read(id) ?? (isOptional ? null : throwMissing(file, id)),
    ]),
  )

/** A value that the core provides. */
export type Provided = readonly [ref: Ref<unknown>, value: unknown]
/** `value` under its handle. */
export const provide = <Value>(ref: Ref<Value>, value: NoInfer<Value>): Provided => [ref, value]

/**
 * Starts services, each after what it needs: all, or those of these handles and what they need. Of the latter no other file is loaded than
 * those named as the last part of a handle, of its feature, or of any where the handle is the core's.
 * Throws for a circle, and for a handle that is not provided, or twice.
 */
const startServices = async (
  sources: readonly FeatureSource[],
  core: readonly Provided[],
  only?: readonly Ref<unknown>[],
  standIn?: () => unknown,
): Promise<Map<string, unknown>> => {
  const values = new Map(core.map(([{ id }, value]) => [id, value]))
  const owners = new Map(core.map(([{ id }]) => [id, 'the core']))
  const byId = new Map<string, Loaded<'service'>>()
  const add = (service: Loaded<'service'>): void => {
    const { id } = service.definition.provides
    claim(owners, id, service.file, 'provide', 'handle')
    byId.set(id, service)
  }
  const loadProvider = async (id: string): Promise<void> => {
    const [feature = '', name = ''] = id.split('.', 2)
    const isNamed = ({ file, source }: { file: string; source: FeatureSource }): boolean =>
      basename(file) === `${name}.service.ts` && ['core', basename(source.folder)].includes(feature)
    const services = await loadKind(sources, 'service', isNamed)
    services.filter(({ definition }) => definition.provides.id === id).forEach(add)
  }
  const start = async (id: string, users: readonly string[]): Promise<void> => {
    if (values.has(id)) return
    if (only && !byId.has(id)) await loadProvider(id)
    const service = byId.get(id)
    // what is missing is named with the file that needs it
    if (!service) return
    const { file, definition } = service
    if (users.includes(file))
      throw toSettingsError(
        `services need each other in a circle: ${[...users.slice(users.indexOf(file)), file].join(' -> ')}`,
        'move what both need to a service of its own',
      )
    for (const need of Object.values(definition.needs)) await start(need.id, [...users, file])
    const needed = resolveNeeds(file, definition.needs, (need) => values.get(need))
    values.set(id, standIn?.() ?? definition.start(needed))
  }
  if (!only) (await loadKind(sources, 'service')).forEach(add)
  for (const id of only?.map((ref) => ref.id) ?? byId.keys()) await start(id, [])
  return values
}

/** The definitions of one kind, each with the values of what it needs. */
const loadWithNeeds = async <Name extends Extract<Definition, { needs: Needs }>['kind']>(
  sources: readonly FeatureSource[],
  kind: Name,
  read: Reader,
) =>
  (await loadKind(sources, kind)).map(({ file, definition }) => ({
    file,
    definition,
    needed: resolveNeeds(file, (definition as { needs: Needs }).needs, read),
  }))

type RunServices = Pick<ServiceFactories, keyof FeatureServices>

/** The features of one process, with their services started: all, or only these and what they need, of which no other file is loaded. */
export const openFeatures = async (
  sources: readonly FeatureSource[],
  core: readonly Provided[],
  only?: readonly Ref<unknown>[],
  /** In place of each service, of which none is started then. */
  standIn?: () => unknown,
) => {
  const features = only ? [] : await loadFeatures(sources)
  const config = core.find(([{ id }]) => id === configRef.id)?.[1] as Config | undefined
  const settings = features.flatMap((feature) => readFeatureSettings(feature, config?.featureVariables))
  const values = await startServices(sources, [...core, ...settings], only, standIn)
  const read: Reader = (id) => values.get(id)
  const find = <Value>({ id }: Ref<Value>): Value | null => (read(id) as Value | undefined) ?? null
  return {
    /** Null: no feature provides it. */
    find,
    /** Throws where no feature provides it. */
    get: <Value>(ref: Ref<Value>): Value => find(ref) ?? throwMissing('the caller', ref.id),
    /** The services of runs by their names, which none of the core's may have. */
    async loadRunServices(coreNames: readonly string[]): Promise<RunServices> {
      const owners = new Map(coreNames.map((name) => [name, 'the core']))
      const opening = (await loadWithNeeds(sources, 'run-service', read)).map(
        ({ file, definition: { name, open }, needed }) => {
          claim(owners, name, file, 'define the service of runs', 'name')
          return [name, (run: RunClaim, sql: Sql) => open(needed, run, sql)] as const
        },
      )
      return Object.fromEntries(opening) as never
    },
    addRoutes: (app: App, server: RouteServer): Promise<void> => addFeatureRoutes(sources, app, server, read),
    /** What is read at each scrape. */
    async loadCounters() {
      const counters = await loadWithNeeds(sources, 'metrics', read)
      return counters.map(({ definition, needed }) => ({
        ...definition,
        read: () => definition.read(needed),
      }))
    },
    /** What features delete, by age and with a user. */
    async loadRetention() {
      const parts = (await loadKind(sources, 'retention')).map(({ definition }) => definition)
      return {
        sweeps: parts.flatMap(({ sweep }) => sweep ?? []),
        async deleteOfUser(...user: Parameters<DeleteOfUser>): Promise<boolean> {
          let hadSome = false
          for (const part of parts) if (await part.deleteOfUser?.(...user)) hadSome = true
          return hadSome
        },
      }
    },
    /** The loops of a worker; throws for a handle that is missing, so that nothing has begun then. */
    async loadLoops() {
      const loops = await loadWithNeeds(sources, 'loop', read)
      return (clock: Clock, log: Log) => startLoops(loops, clock, log)
    },
  }
}

/** See `openFeatures`. */
export type Features = Awaited<ReturnType<typeof openFeatures>>

/** The service of one handle, started with what it needs; no other file is loaded. Null: no feature provides it. */
export const findService = async <Value>(
  sources: readonly FeatureSource[],
  ref: Ref<Value>,
  core: readonly Provided[] = [],
): Promise<Value | null> => (await openFeatures(sources, core, [ref])).find(ref)

/** Adds the routes of all features; `read` has what they need. */
export const addFeatureRoutes = async (
  sources: readonly FeatureSource[],
  app: App,
  server: RouteServer,
  read: Reader,
): Promise<void> => {
  const resources = await loadWithNeeds(sources, 'resource', read)
  const routes = await loadWithNeeds(sources, 'routes', read)
  for (const { file, definition, needed } of [...resources, ...routes])
    await (async () => definition.add(app, needed, server))().catch(refuseFile(file))
}
