import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import {
  describeLoadError,
  type LoadedParts,
  loadInTime,
  loadParts,
  type PartFile,
  type PartSource,
} from '../graph/load.ts'
import { type Environment, readEnvironment } from '../infra/config/config.ts'
import { toSettingsError } from '../state/errors.ts'
import type { OpenServices } from './own-services.ts'
import { findShapeError } from './part-shapes.ts'
import { projectConfigSchema } from './project-config.ts'
import { openSourceLoader } from './source-loader.ts'

/**
 * A product's own repository, as a process starts in it.
 *
 * @example
 * ```ts
 * import { loadProject, type Project } from 'mason-runtime'
 *
 * const project: Project = await loadProject()
 * console.log(project.file, project.environment.MASON_TOOLS)
 * ```
 */
export type Project = {
  /** The path of its config; null: it has none. */
  file: string | null
  /** The settings of the environment, with the defaults of the config below them and its folders in MASON_TOOLS and MASON_FEATURES. */
  environment: Environment
  setup?: OpenServices
}

/**
 * Reads `mason.config.ts`, `.js` or `.mjs` of a folder (the current one), if there is one. The tools and nodes are loaded
 * when a runtime opens. Throws `invalid_settings` that says what is wrong with the config.
 *
 * @example
 * ```ts
 * import { loadProject, openRuntime, readConfig } from 'mason-runtime'
 *
 * const { environment, setup } = await loadProject()
 * const runtime = await openRuntime(readConfig(environment, { role: 'run' }), setup && { setup })
 * await runtime.close()
 * ```
 */
export const loadProject = async (
  environment: Environment = readEnvironment(),
  folder: string = process.cwd(),
): Promise<Project> => {
  const found = ['ts', 'js', 'mjs']
    .map((end) => join(folder, `mason.config.${end}`))
    .filter((path) => existsSync(path))
  const [file] = found
  if (file === undefined) return { file: null, environment }
  if (found.length > 1)
    throw toSettingsError(`${folder} has ${found.map((path) => basename(path)).join(' and ')}`, 'remove one')
  const parsed = projectConfigSchema.safeParse(await importConfig(file))
  if (!parsed.success)
    throw toSettingsError(`${file} is invalid:\n${z.prettifyError(parsed.error)}`, 'correct what is named')
  const { tools, nodes, features, setup, settings } = parsed.data
  const joinFolders = (folders: readonly string[], setting: string | undefined): string =>
    [...folders, ...(setting?.split(',').filter((entry) => entry.trim() !== '') ?? [])].join(',')
  const toolFolders = [
    ...tools.map((entry, at) => findFolder(file, `tools[${at}]`, entry)),
    ...nodes.map((entry, at) => findFolder(file, `nodes[${at}]`, entry)),
  ]
  const featureFolders = features.flatMap((entry, at) => findFolders(file, `features[${at}]`, entry))
  const defaults = Object.entries(settings).map(([name, value]) => [name, String(value)])
  const isSet = ([, value]: [string, string | undefined]): boolean => Boolean(value?.trim())
  const merged: Environment = {
    ...Object.fromEntries(defaults),
    // an empty setting counts as absent
    ...Object.fromEntries(Object.entries(environment).filter(isSet)),
    MASON_TOOLS: joinFolders(toolFolders, environment.MASON_TOOLS),
    MASON_FEATURES: joinFolders(featureFolders, environment.MASON_FEATURES),
  }
  return {
    file,
    environment: merged,
    ...(setup && { setup: (context) => setup({ ...context, environment: merged }) }),
  }
}

/** The built-in nodes and tools with those of features, and of these folders of a product; see `loadParts`. */
export const loadOwnParts = async (
  folders: readonly string[],
  others: readonly (string | PartSource)[] = [],
  ofFeatures: readonly PartFile[] = [],
): Promise<LoadedParts> => {
  if (folders.length === 0) return loadParts(others, ofFeatures, findShapeError)
  using loader = await openSourceLoader(process.cwd())
  const own = [...new Set(folders)].map((folder) => ({ folder, load: loader.load }))
  return await loadParts([...others, ...own], ofFeatures, findShapeError)
}

const importConfig = async (file: string): Promise<unknown> => {
  using loader = await openSourceLoader(dirname(file))
  let config: unknown
  try {
    config = (await loadInTime(file, loader.load)).default
  } catch (error) {
    throw toSettingsError(
      `${file}: ${describeLoadError(error)}`,
      'correct it, or move it away to start without it',
      error,
    )
  }
  if (config !== undefined) return config
  throw toSettingsError(`${file} has no default export`, 'write: export default defineConfig({ … })')
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** A folder beside the config, or a package in a `node_modules` of its folder or of one above. */
const findFolder = (file: string, field: string, entry: string): string => {
  const root = dirname(file)
  const places = [resolve(root, entry)]
  if (!/^[./]/.test(entry))
    for (let folder = root; ; folder = dirname(folder)) {
      places.push(join(folder, 'node_modules', entry))
      if (folder === dirname(folder)) break
    }
  const found = places.find(isFolder)
  if (found?.includes(','))
    throw toSettingsError(`${file}: ${field}: the path ${found} has a comma`, 'rename the folder')
  if (found !== undefined) return found
  throw toSettingsError(
    `${file}: ${field} is "${entry}": there is no such folder${/^[./]/.test(entry) ? '' : ' or package'}`,
    `create ${places[0]}, or correct the entry`,
  )
}

/** `folder/*` names the folders in it. */
const findFolders = (file: string, field: string, entry: string): string[] => {
  if (!entry.endsWith('/*')) return [findFolder(file, field, entry)]
  const parent = findFolder(file, field, entry.slice(0, -2))
  const found = readdirSync(parent)
    .filter((name) => !name.startsWith('.'))
    .map((name) => join(parent, name))
    .filter(isFolder)
  if (found.length > 0) return found.sort()
  throw toSettingsError(
    `${file}: ${field} is "${entry}": ${parent} has no folder`,
    'create one with a feature.ts, or remove the entry',
  )
}
