import { basename, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { DeleteOfUser } from '../accounts/users.ts'
import type { RunClaim } from '../engine/runs/claim.ts'
import type { ServiceFactories } from '../engine/runs/run-services.ts'
import { describeLoadError, type PartFile } from '../graph/load.ts'
import { describeIssues, isFunction } from '../graph/requests.ts'
import type { Config, Environment } from '../infra/config/config.ts'
import { repeatWork } from '../infra/lib/repeat-work.ts'
import type { App, RouteServer } from '../routes/route.ts'
import { isMasonError, toSettingsError } from '../state/errors.ts'
import type { Clock } from '../state/ports/clock.ts'
import type { Log } from '../state/ports/log.ts'
import type { FeatureServices } from '../state/ports/services.ts'
import type { Sql } from '../state/ports/sql.ts'
import { configRef } from './core.ref.ts'
import type { Definition, Needs, Ref } from './definitions.ts'

/** A folder of a feature: what its files load, by their names. */
export type FeatureSource = {
  folder: string
  files: Readonly<Record<string, () => Promise<{ default: unknown }>>>
  /** Of a product, whose folders are absolute: the folder of its migrations. */
  migrations?: string
}

type Kind = Definition['kind']
type OfKind<Name extends Kind> = Extract<Definition, { kind: Name }>
/** One definition with the file that has it. */
type Loaded<Name extends Kind> = { file: string; source: FeatureSource; definition: OfKind<Name> }

const text = z.string()
const word = z.string().regex(/^[a-z][a-z0-9_-]*$/, 'is not of a-z, 0-9, _ and - after a letter')
const hasShape = (given: unknown): boolean => given instanceof Object && 'shape' in given
const settings = z.custom(hasShape, 'is not z.object({ … })').optional()
const handle = z.looseObject(
  { id: text },
  'is not a handle: import it by the name under which its *.ref.ts, or mason-runtime/features, exports it',
)
const needs = z.record(text, handle)
const texts = z.array(text)
const everyMs = z.number().positive().lte(2_147_483_647)
const any = z.unknown().optional()
const maybe = isFunction.optional()
/** The fields of each kind of file, and no others; none: its loader checks it. Files of a product run as they are, and no compiler has looked at them. */
const members: Readonly<Record<Kind, z.ZodRawShape>> = {
  feature: { id: text, tables: texts, needs: texts.optional(), settings, sealed: any, executor: any },
  tool: {},
  node: {},
  reader: {},
  'run-service': { name: text, needs, open: isFunction },
  service: { provides: handle, needs, start: isFunction },
  routes: { needs, add: isFunction },
  resource: {},
  loop: { name: text, everyMs, needs, run: isFunction, drain: maybe },
  metrics: { name: word, help: text, label: word, needs, read: isFunction },
  retention: { sweep: maybe, deleteOfUser: maybe },
  command: { name: word, description: text, add: isFunction },
  process: { name: text, role: text, open: isFunction },
  doctor: { name: text, settings: texts, check: isFunction },
  keys: {},
}
const kinds = Object.keys(members) as Kind[]

/** Whether it is the `feature.ts` of its folder; `.js` once built. */
export const isFeatureFile = (file: string): boolean => /^feature\.[cm]?[jt]sx?$/.test(file)

/** What the file of a feature defines, by its name; null for handles, tests, and files that others import. */
export const readFileKind = (folder: string, file: string): Kind | null => {
  const suffix = isFeatureFile(file) ? 'feature' : (/\.([^./]+)\.[cm]?[jt]sx?$/.exec(file)?.[1] ?? null)
  if (suffix === null || suffix === 'ref' || suffix === 'test') return null
  const kind = kinds.find((one) => one === suffix)
  if (kind !== undefined) return kind
  throw toSettingsError(
    `${folder}/${file} has the unknown suffix .${suffix}.ts`,
    `use one of .${kinds.slice(1).join('.ts, .')}.ts and .ref.ts, or no second dot in the name`,
  )
}

const refuseFile = (file: string) => (error: unknown) => {
  // it names its own remedy
  if (isMasonError(error) && error.code !== 'internal') throw error
  throw toSettingsError(`${file} ${describeLoadError(error)}`, 'correct the file', error)
}

/** Loads the files of one kind of all features, sorted by folder and name. */
export const loadKind = async <Name extends Kind>(
  sources: readonly FeatureSource[],
  kind: Name,
): Promise<Loaded<Name>[]> => {
  const files = sources.flatMap((source) =>
    Object.entries(source.files)
      .filter(([file]) => readFileKind(source.folder, file) === kind)
      .map(([file, load]) => ({ file: `${source.folder}/${file}`, source, load })),
  )
  files.sort((a, b) => (a.file < b.file ? -1 : 1))
  return Promise.all(
    files.map(async ({ file, source, load }) => {
      const { default: definition } = await load().catch(refuseFile(file))
      const define = `define${kind.replaceAll(/(?:^|-)(.)/g, (_, letter) => letter.toUpperCase())}`
      const { kind: defined, ...given } = (definition ?? {}) as Record<string, unknown>
      if (defined !== kind)
        throw toSettingsError(
          `${file} has no ${kind} as its default export`,
          `write: export default ${define}({ … })`,
        )
      const shape = members[kind]
      const problem = Object.keys(shape).length > 0 && describeIssues(z.strictObject(shape), given)
      if (problem)
        throw toSettingsError(`${file} has wrong fields: ${problem}`, `correct them in ${define}({ … })`)
      return { file, source, definition: definition as OfKind<Name> }
    }),
  )
}

/** The files of these kinds of all features: of nodes and tools for `loadParts`, and of readers for the file process. */
export const listFilesOfKinds = (sources: readonly FeatureSource[], ...kindsOfFiles: Kind[]): PartFile[] =>
  sources.flatMap(({ folder, files, migrations }) =>
    Object.entries(files)
      .filter(([file]) => kindsOfFiles.some((kind) => kind === readFileKind(folder, file)))
      .map(([file, load]) => {
        if (migrations !== undefined) return { path: join(folder, file), load }
        const built = `../../${folder}/${file.replace(/\.ts$/, extname(import.meta.url))}`
        return { path: fileURLToPath(new URL(built, import.meta.url)), load }
      }),
  )

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
  for (const { file, definition } of features) {
    if (!/^[a-z][a-z0-9-]*$/.test(definition.id))
      throw toSettingsError(
        `${file} has the id "${definition.id}"`,
        'use lower-case letters, digits and dashes',
      )
    const other = features.find((one) => one.file !== file && one.definition.id === definition.id)
    if (other)
      throw toSettingsError(
        `${file} and ${other.file} both define the feature "${definition.id}"`,
        'give one of them another id, or remove it',
      )
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

/** Starts the services of these handles, each after what it needs. Throws for a circle, and for a handle that is not provided, or twice. */
const startServices = (
  services: readonly Loaded<'service'>[],
  core: readonly Provided[],
  refs: readonly Ref<unknown>[],
  standIn?: () => unknown,
) => {
  const values = new Map(core.map(([ref, value]) => [ref.id, value]))
  const byId = new Map<string, Loaded<'service'>>()
  for (const service of services) {
    const { id } = service.definition.provides
    const other = byId.get(id)?.file ?? (values.has(id) ? 'the core' : null)
    if (other !== null)
      throw toSettingsError(
        `${service.file} and ${other} both provide "${id}"`,
        'give one of them another handle, or remove it',
      )
    byId.set(id, service)
  }
  const start = (id: string, users: readonly string[]): void => {
    const service = byId.get(id)
    // what is missing is named with the file that needs it
    if (values.has(id) || !service) return
    const { file, definition } = service
    if (users.includes(file))
      throw toSettingsError(
        `services need each other in a circle: ${[...users.slice(users.indexOf(file)), file].join(' -> ')}`,
        'move what both need to a service of its own',
      )
    for (const ref of Object.values(definition.needs)) start(ref.id, [...users, file])
    const needed = resolveNeeds(file, definition.needs, (need) => values.get(need))
    values.set(id, standIn?.() ?? definition.start(needed))
  }
  for (const { id } of refs) start(id, [])
  return values
}

type RunServices = Pick<ServiceFactories, keyof FeatureServices>

const loadRunServices = async (
  sources: readonly FeatureSource[],
  coreNames: readonly string[],
  read: Reader,
): Promise<RunServices> => {
  const files = new Map(coreNames.map((name) => [name, 'the core']))
  const services = (await loadKind(sources, 'run-service')).map(({ file, definition }) => {
    const { name, needs, open } = definition
    const other = files.get(name)
    if (other !== undefined)
      throw toSettingsError(
        `${file} and ${other} both define the service of runs "${name}"`,
        'give one of them another name, or remove it',
      )
    files.set(name, file)
    const needed = resolveNeeds(file, needs, read)
    return [name, (run: RunClaim, sql: Sql) => open(needed, run, sql)] as const
  })
  return Object.fromEntries(services) as never
}

/** The files that may provide a handle: named as its last part, of its feature, or of any where the handle is the core's. */
const onlyFilesOf = (sources: readonly FeatureSource[], ids: readonly string[]): FeatureSource[] =>
  sources.map(({ folder, files }) => ({
    folder,
    files: Object.fromEntries(
      Object.entries(files).filter(([file]) =>
        ids.some((id) => {
          const [feature = '', name = ''] = id.split('.', 2)
          return basename(file) === `${name}.service.ts` && ['core', basename(folder)].includes(feature)
        }),
      ),
    ),
  }))

/** The services of these handles and of what they need; no other file is loaded. */
const loadServicesOf = async (
  sources: readonly FeatureSource[],
  refs: readonly Ref<unknown>[],
): Promise<Loaded<'service'>[]> => {
  const ids = new Set(refs.map(({ id }) => id))
  for (let known = 0; ; known = ids.size) {
    const services = await loadKind(onlyFilesOf(sources, [...ids]), 'service')
    if (ids.size === known) return services
    for (const { definition } of services) for (const { id } of Object.values(definition.needs)) ids.add(id)
  }
}

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
  const services = only ? await loadServicesOf(sources, only) : await loadKind(sources, 'service')
  const wanted = only ?? services.map(({ definition }) => definition.provides)
  const values = startServices(services, [...core, ...settings], wanted, standIn)
  const read: Reader = (id) => values.get(id)
  const find = <Value>({ id }: Ref<Value>): Value | null => (read(id) as Value | undefined) ?? null
  return {
    /** Null: no feature provides it. */
    find,
    /** Throws where no feature provides it. */
    get: <Value>(ref: Ref<Value>): Value => find(ref) ?? throwMissing('the caller', ref.id),
    /** The services of runs by their names, which none of the core's may have. */
    loadRunServices: (coreNames: readonly string[]) => loadRunServices(sources, coreNames, read),
    addRoutes: (app: App, server: RouteServer): Promise<void> => addFeatureRoutes(sources, app, server, read),
    /** What is read at each scrape. */
    async loadCounters() {
      return (await loadKind(sources, 'metrics')).map(({ file, definition: { needs, ...counter } }) => {
        const needed = resolveNeeds(file, needs, read)
        return { ...counter, read: () => counter.read(needed) }
      })
    },
    /** What features delete, by age and with a user. */
    async loadRetention() {
      const parts = (await loadKind(sources, 'retention')).map(({ definition }) => definition)
      const deletions = parts.flatMap(({ deleteOfUser }) => deleteOfUser ?? [])
      return {
        sweeps: parts.flatMap(({ sweep }) => sweep ?? []),
        async deleteOfUser(...user: Parameters<DeleteOfUser>): Promise<boolean> {
          let hadSome = false
          for (const deleteOne of deletions) hadSome = (await deleteOne(...user)) || hadSome
          return hadSome
        },
      }
    },
    /** The loops of a worker; throws for a handle that is missing, so that nothing has begun then. */
    async loadLoops() {
      const loops = (await loadKind(sources, 'loop')).map(({ file, definition }) => ({
        ...definition,
        needed: resolveNeeds(file, definition.needs, read),
      }))
      return (clock: Clock, log: Log): { stop(): Promise<void> } => {
        const stops = loops.map(({ name, everyMs, needed, run, drain }) => {
          const repeated = repeatWork(() => run(needed), everyMs, clock, log, name)
          return async (): Promise<void> => {
            const lastRun = repeated.stop()
            // one that does not end well keeps no other from ending
            await (drain?.(needed, lastRun) ?? lastRun).catch((error: unknown) =>
              log.warn({ error: String(error) }, `${name}: stopping failed`),
            )
          }
        })
        return {
          /** In reverse; waits for all together. */
          stop: async () => void (await Promise.all(stops.reverse().map((stop) => stop()))),
        }
      }
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
  const resources = await loadKind(sources, 'resource')
  for (const { file, definition } of [...resources, ...(await loadKind(sources, 'routes'))]) {
    const needed = resolveNeeds(file, definition.needs, read)
    await (async () => definition.add(app, needed, server))().catch(refuseFile(file))
  }
}
