import { resourceRoutes } from '../../../routes/resource-routes.ts'
import type { App } from '../../../routes/route.ts'
import { createFieldsError } from '../../../state/resource-schema.ts'
import { type ScenarioChange, scenarioSchemas } from '../../../state/scenario.ts'
import type { ServerContext } from '../plumbing/server-context.ts'

/** Scenarios: kinds of request, with the prompts, tools, output, limits, models and rules of each. */
export const scenariosRoutes = (app: App, { runtime }: ServerContext): void => {
  const check = <Sent extends ScenarioChange>(scenario: Sent): Sent => {
    checkTools(runtime.graph, scenario)
    return scenario
  }
  resourceRoutes(app, {
    path: '/admin/v1/scenarios',
    one: 'a scenario',
    many: 'scenarios',
    ...scenarioSchemas,
    problems: { create: ['already_exists'], change: ['already_exists'] },
    summaries: { remove: 'Deletes a scenario; requests that name it continue as if it were free text' },
    store: () => {
      const { scenarios } = runtime.admin.registry
      return {
        ...scenarios,
        create: (scope, input) => scenarios.create(scope, check(input)),
        change: (scope, id, change) => scenarios.change(scope, id, check(change)),
      }
    },
  })
}

/** Throws `invalid_request` for tools that this graph does not have. */
const checkTools = (
  graph: ServerContext['runtime']['graph'],
  { tools, output_tool }: ScenarioChange,
): void => {
  const toolNames = (kind: 'call' | 'output'): string[] =>
    graph.tools.filter((tool) => tool.kinds.includes(kind)).map(({ name }) => name)
  const findError = (name: string, names: string[], pointer: string) =>
    names.includes(name) ? [] : [{ pointer, detail: `unknown tool; the tools are: ${names.join(', ')}` }]
  const errors = [
    ...(tools ?? []).flatMap((name, index) => findError(name, toolNames('call'), `/tools/${index}`)),
    ...(output_tool ? findError(output_tool, toolNames('output'), '/output_tool') : []),
  ]
  if (errors.length > 0) throw createFieldsError(...errors)
}
