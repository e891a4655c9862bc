import { MasonError } from '../../state/errors.ts'
import {
  type ScenarioChange,
  scenarioChangeSchema,
  scenarioInputSchema,
  scenarioViewSchema,
} from '../../state/registry/scenario.ts'
import type { App, ServerContext } from '../route.ts'
import { resourceRoutes } from './resource.ts'

/** Kinds of request: prompts, tools, output, limits, models and rules of each. */
export const scenariosRoutes = (app: App, { runtime }: ServerContext): void => {
  const checked = <Sent extends ScenarioChange>(sent: Sent): Sent => {
    checkTools(runtime.graph, sent)
    return sent
  }
  resourceRoutes(app, {
    path: '/admin/v1/scenarios',
    one: 'a scenario',
    many: 'scenarios',
    ids: ['Scenario', 'Scenarios'],
    input: scenarioInputSchema,
    change: scenarioChangeSchema,
    view: scenarioViewSchema,
    problems: { create: ['already_exists'], change: ['already_exists'] },
    summaries: { remove: 'Deletes a scenario; requests that name it go on as if it were free text' },
    store: () => {
      const { scenarios } = runtime.admin.registry
      return {
        ...scenarios,
        create: (scope, input) => scenarios.create(scope, checked(input)),
        change: (scope, id, change) => scenarios.change(scope, id, checked(change)),
      }
    },
  })
}

/** Throws `invalid_request` for tools that are not in this graph. */
const checkTools = (
  graph: ServerContext['runtime']['graph'],
  { tools, output_tool }: ScenarioChange,
): void => {
  const named = (kind: 'call' | 'output'): string[] =>
    graph.tools.filter((tool) => tool.kinds.includes(kind)).map(({ name }) => name)
  const fault = (name: string, names: string[], pointer: string) =>
    names.includes(name) ? [] : [{ pointer, detail: `there is no such tool; there are: ${names.join(', ')}` }]
  const errors = [
    ...(tools ?? []).flatMap((name, index) => fault(name, named('call'), `/tools/${index}`)),
    ...(output_tool ? fault(output_tool, named('output'), '/output_tool') : []),
  ]
  if (errors.length > 0)
    throw new MasonError('invalid_request', 'the scenario names tools that are not there', {
      detail: { errors },
    })
}
