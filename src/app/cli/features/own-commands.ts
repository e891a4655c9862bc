import type { Environment } from '../../../infra/config/config.ts'
import { listOwnSources, loadFeatureSources } from '../../load-feature-sources.ts'
import { readConfig } from '../../read-config.ts'
import { type FeatureCommands, loadFeatureCommands } from './feature-commands.ts'

/** The commands of the features of a product. */
export const loadOwnCommands = async (env: Environment): Promise<FeatureCommands> => {
  const { featureFolders } = readConfig(env, { role: 'tools' })
  return loadFeatureCommands(listOwnSources(await loadFeatureSources(featureFolders)))
}
