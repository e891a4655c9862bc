import { expect, test } from 'vitest'
import { listFeatures } from '../../../src/app/cli/features/list-features.ts'
import { featureSources } from '../../../src/app/features.generated.ts'

test('each feature is listed with the tools, routes, loops and metrics of its files, and nothing is started', async () => {
  const features = await listFeatures()
  expect(features.map(({ id }) => `src/features/${id}`)).toEqual(featureSources.map(({ folder }) => folder))
  for (const [at, { files }] of featureSources.entries()) {
    const has = (suffix: string) => Object.keys(files).some((file) => file.endsWith(suffix))
    const {
      tools = [],
      nodes = [],
      routes = [],
      loops = [],
      metrics = [],
      commands = [],
    } = features[at] ?? {}
    expect(routes.length > 0).toBe(has('.routes.ts'))
    expect(routes.filter((route) => !/^(GET|POST|PUT|PATCH|DELETE) \//.test(route))).toEqual([])
    expect([tools, nodes, loops, metrics, commands].map((names) => names.length > 0)).toEqual(
      ['.tool.ts', '.node.ts', '.loop.ts', '.metrics.ts', '.command.ts'].map(has),
    )
  }
})
