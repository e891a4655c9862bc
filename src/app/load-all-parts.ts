import { type FeatureSource, listFilesOfKinds } from '../features/definition-files.ts'
import type { LoadedParts } from '../graph/load.ts'
import type { Config } from '../infra/config/config.ts'
import { loadOwnParts } from '../project/load-project.ts'
import { featureSources } from './features.generated.ts'
import { loadFeatureSources } from './load-feature-sources.ts'

/** The nodes and tools of the core and of the features, with those of these folders of a product; see `loadParts`. */
export const loadAllParts = (
  folders: readonly string[] = [],
  others: readonly string[] = [],
  sources: readonly FeatureSource[] = featureSources,
): Promise<LoadedParts> => loadOwnParts(folders, others, listFilesOfKinds(sources, 'node', 'tool'))

/** The features of a process with those of its product, and the nodes and tools of all. */
export const loadProduct = async (
  { toolFolders, featureFolders }: Pick<Config, 'toolFolders' | 'featureFolders'>,
  others: readonly string[] = [],
) => {
  const sources = await loadFeatureSources(featureFolders)
  return { sources, parts: await loadAllParts(toolFolders, others, sources) }
}
