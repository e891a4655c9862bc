import { type FeatureSource, loadKind } from '../../../features/definition-files.ts'
import { addFeatureRoutes, loadFeatures } from '../../../features/load-features.ts'
import type { Environment } from '../../../infra/config/config.ts'
import { featureSources } from '../../features.generated.ts'
import { listOwnSources, loadFeatureSources } from '../../load-feature-sources.ts'
import { readConfig } from '../../read-config.ts'
import { exitCodes } from '../errors.ts'
import { type FeatureCommands, loadFeatureCommands } from './feature-commands.ts'

/** The commands of the features of a product. */
export const loadOwnCommands = async (env: Environment): Promise<FeatureCommands> =>
  loadFeatureCommands(
    listOwnSources(await loadFeatureSources(readConfig(env, { role: 'tools' }).featureFolders)),
  )

/** What a feature is made of. Routes as method and path. */
export type FeatureListing = Record<
  'tables' | 'settings' | 'tools' | 'nodes' | 'routes' | 'loops' | 'metrics' | 'commands',
  string[]
> & {
  id: string
}

/** The features with what their files define; nothing is started, and no settings are read. */
export const listFeatures = async (
  sources: readonly FeatureSource[] = featureSources,
): Promise<FeatureListing[]> => {
  const features = await loadFeatures(sources)
  return Promise.all(
    features.map(async ({ source, definition: { id, tables, settings } }) => {
      const own = [source]
      const routes: string[] = []
      const app = new Proxy(
        {},
        { get: (_, method) => (path: string) => routes.push(`${String(method).toUpperCase()} ${path}`) },
      )
      await addFeatureRoutes(own, app as never, noServices as never, () => noServices)
      const listNames = async (kind: 'tool' | 'node' | 'loop' | 'metrics' | 'command') =>
        (await loadKind(own, kind)).map(({ definition }) => definition.name)
      return {
        id,
        tables: [...tables],
        settings: Object.keys(settings?.shape ?? {}),
        tools: await listNames('tool'),
        nodes: await listNames('node'),
        routes,
        loops: await listNames('loop'),
        metrics: await listNames('metrics'),
        commands: await listNames('command'),
      }
    }),
  )
}

/** What routes are added with, when they are only listed: it has whatever is read of it, and can be called. */
export const noServices: unknown = new Proxy(() => noServices, { get: () => noServices })

/** `mason features` */
export const printFeatures = async (flags: { json?: boolean }, env: Environment): Promise<number> => {
  const print = (text: string): void => void process.stdout.write(`${text}\n`)
  const { featureFolders } = readConfig(env, { role: 'tools' })
  for (const { id, ...parts } of await listFeatures(await loadFeatureSources(featureFolders))) {
    if (flags.json) print(JSON.stringify({ id, ...parts }))
    else {
      print(id)
      for (const [name, items] of Object.entries(parts)) for (const item of items) print(`  ${name}: ${item}`)
    }
  }
  return exitCodes.done
}
