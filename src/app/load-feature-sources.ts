import { basename, dirname, join, relative } from 'node:path'
import { type FeatureSource, isFeatureFile, readFileKind } from '../features/definition-files.ts'
import { loadFeatures } from '../features/load-features.ts'
import { isOfPackage, listCodeFiles, loadInTime, type PartSource } from '../graph/load.ts'
import type { Migration } from '../infra/database/migration.ts'
import { readMigrations } from '../infra/database/migrations.ts'
import { openSourceLoader } from '../project/source-loader.ts'
import { toSettingsError } from '../state/errors.ts'
import { featureSources } from './features.generated.ts'

/** The features of this build and those of these folders of a product. Throws `invalid_settings` that names the files at odds. */
export const loadFeatureSources = async (folders: readonly string[]): Promise<readonly FeatureSource[]> => {
  if (folders.length === 0) return featureSources
  using loader = await openSourceLoader(process.cwd())
  const sources: FeatureSource[] = [...featureSources]
  for (const folder of new Set(folders)) sources.push(await loadSource(folder, loader.load))
  await loadFeatures(sources)
  return sources
}

/** Those of the product. */
export const listOwnSources = (sources: readonly FeatureSource[]): FeatureSource[] =>
  sources.filter(({ migrations }) => migrations !== undefined)

/** The migrations of the core and of these features, in the order of their names. */
export const readFeatureMigrations = async (sources: readonly FeatureSource[]): Promise<Migration[]> => {
  const features = await loadFeatures(listOwnSources(sources))
  return readMigrations(
    features.map(({ source: { migrations: folder = '' }, definition: { id, tables } }) => ({
      id,
      tables,
      folder,
    })),
  )
}

/** What only features of this repository define: the settings, the roles of processes and the file process are its own. */
const coreKinds: readonly unknown[] = ['process', 'keys', 'reader']

/**
 * The feature of a folder, or of a package, which may have it in a folder below, as a compiler writes it; of a package the `.js`
 * files count. Its files have been loaded: what is wrong with a file is thrown where the file is used.
 */
const loadSource = async (root: string, load: PartSource['load']): Promise<FeatureSource> => {
  const code = (await listCodeFiles(root)).sort()
  const [feature, another] = code.filter((file) => isFeatureFile(basename(file)))
  if (feature === undefined)
    throw toSettingsError(
      `${root} has no feature.${isOfPackage(root) ? 'js' : 'ts'}`,
      'add it: export default defineFeature({ id, tables: [] }), or remove the folder from features',
    )
  if (another !== undefined)
    throw toSettingsError(
      `${join(root, feature)} and ${join(root, another)} are two features of one folder`,
      'move one to a folder beside it',
    )
  const folder = join(root, dirname(feature))
  const files: Record<string, () => Promise<{ default: unknown }>> = {}
  for (const path of code.map((file) => join(root, file))) {
    const file = relative(folder, path)
    if (file.startsWith('..')) continue
    const kind = readFileKind(folder, file)
    if (kind === null) continue
    if (coreKinds.includes(kind))
      throw toSettingsError(
        `${path} is a ${kind} file, which only a feature of Mason's own repository has`,
        'remove it',
      )
    const loading = loadInTime(path, load) as Promise<{ default: unknown }>
    await loading.catch(() => {})
    files[file] = () => loading
  }
  return { folder, files, migrations: join(root, 'migrations') }
}
