import { z } from 'zod'
import { businessQuery } from '../../routes/parameters.ts'
import { type App, createDocs, respondsWith } from '../../routes/route.ts'
import type { ServerContext } from './plumbing/server-context.ts'

const describe = createDocs('operations')

const graphSchema = z.strictObject({
  version: z.string().describe('Changes with every node and tool'),
  nodes: z.array(
    z.strictObject({
      name: z.string(),
      kind: z.enum(['node', 'tool']),
      kinds: z.array(z.enum(['prepare', 'call', 'step', 'output'])).describe('What a tool serves as'),
      description: z.string(),
      reads: z.array(z.string()),
      writes: z.array(z.string()),
      next: z.array(z.string()).describe('Where it may lead'),
    }),
  ),
  mermaid: z.string().describe('The same as a Mermaid flowchart, with one box for each kind of tools'),
})

/** The graph that runs walk through, as it is built here. */
export const graphRoutes = (app: App, { runtime }: ServerContext): void => {
  app.get('/v1/graph', {
    schema: { querystring: businessQuery },
    config: describe(
      'read',
      'getGraph',
      'The nodes and tools of the graph, and where each leads',
      respondsWith(200, 'The graph', graphSchema),
    ),
    handler: async () => ({ version: runtime.graph.version, ...(await runtime.graph.describe()) }),
  })
}
