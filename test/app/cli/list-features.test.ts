import { expect, test } from 'vitest'
import { listFeatures } from '../../../src/app/cli/features/list-features.ts'
import { featureSources } from '../../../src/app/features.generated.ts'
import { defineFeature, defineRef, defineRoutes } from '../../../src/features/definitions.ts'

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
    expect(routes.length > 0).toBe(has('.routes.ts') || has('.resource.ts'))
    expect(routes.filter((route) => !/^(GET|POST|PUT|PATCH|DELETE) \//.test(route))).toEqual([])
    expect([tools, nodes, loops, metrics, commands].map((names) => names.length > 0)).toEqual(
      ['.tool.ts', '.node.ts', '.loop.ts', '.metrics.ts', '.command.ts'].map(has),
    )
  }
})

test('a feature whose routes call a service as they are added is listed', async () => {
  const boardRef = defineRef<{ listPaths(): string[] }>('a.board')
  const routes = defineRoutes({
    needs: { board: boardRef },
    add: (app, { board }) => {
      for (const path of board.listPaths()) app.get(path, { handler: async () => null })
      app.get('/v1/board', { handler: async () => null })
    },
  })
  const files = { 'feature.ts': defineFeature({ id: 'a', tables: [] }), 'a.routes.ts': routes }
  const loads = Object.entries(files).map(([file, one]) => [file, async () => ({ default: one })])
  const [listed] = await listFeatures([{ folder: 'a', files: Object.fromEntries(loads) }])
  expect(listed?.routes).toEqual(['GET /v1/board'])
})
