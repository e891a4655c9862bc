import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { describeLoadError, type PartFile } from '../graph/load.ts'
import { describeIssues, isFunction } from '../graph/requests.ts'
import { isMasonError, toSettingsError } from '../state/errors.ts'
import type { Definition } from './definitions.ts'

/** A folder of a feature: what its files load, by their names. */
export type FeatureSource = {
  folder: string
  files: Readonly<Record<string, () => Promise<{ default: unknown }>>>
  /** Of a product, whose folders are absolute: the folder of its migrations. */
  migrations?: string
}

type Kind = Definition['kind']
type OfKind<Name extends Kind> = Extract<Definition, { kind: Name }>
/** One definition, with the file that has it. */
export type Loaded<Name extends Kind> = { file: string; source: FeatureSource; definition: OfKind<Name> }

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

/** Throws what is wrong with a file. */
export const refuseFile = (file: string) => (error: unknown) => {
  // it names its own remedy
  if (isMasonError(error) && error.code !== 'internal') throw error
  throw toSettingsError(`${file} ${describeLoadError(error)}`, 'correct the file', error)
}

const listFiles = (sources: readonly FeatureSource[], ...kindsOfFiles: Kind[]) =>
  sources.flatMap((source) =>
    Object.entries(source.files)
      .filter(([name]) => kindsOfFiles.some((kind) => kind === readFileKind(source.folder, name)))
      .map(([name, load]) => ({ file: `${source.folder}/${name}`, source, load })),
  )

/** Loads the files of one kind of all features, or of them those that are wanted, sorted by folder and name. */
export const loadKind = async <Name extends Kind>(
  sources: readonly FeatureSource[],
  kind: Name,
  isWanted: (given: { file: string; source: FeatureSource }) => boolean = () => true,
): Promise<Loaded<Name>[]> => {
  const files = listFiles(sources, kind).filter(isWanted)
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
  listFiles(sources, ...kindsOfFiles).map(({ file, source: { migrations }, load }) => {
    const built = `../../${file.replace(/\.ts$/, extname(import.meta.url))}`
    return { path: migrations === undefined ? fileURLToPath(new URL(built, import.meta.url)) : file, load }
  })
