import { MasonError } from '../state/errors.ts'
import type { Models } from '../state/ports.ts'
import type { RunRequest } from '../state/run-request.ts'
import type { GraphInfo } from './node.ts'

type Fault = { pointer: string; detail: string }

/** Throws `invalid_request` for names of tools and models that are not there, each with where it stands. */
export const checkRequest = (request: RunRequest, graph: GraphInfo, models: Models): void => {
  const named = (kind: 'call' | 'output') =>
    graph.tools.filter((tool) => tool.kinds.includes(kind)).map((tool) => tool.name)
  const faults: Fault[] = []
  const check = (name: string, names: string[], pointer: string): void => {
    if (!names.includes(name))
      faults.push({ pointer, detail: `there is no such tool; there are: ${names.join(', ')}` })
  }
  for (const [index, name] of (request.tools ?? []).entries()) check(name, named('call'), `/tools/${index}`)
  if (request.output?.tool !== undefined) check(request.output.tool, named('output'), '/output/tool')
  for (const [role, model] of Object.entries(request.models ?? {}))
    if (model !== undefined && !models.knows(model))
      faults.push({
        pointer: `/models/${role}`,
        detail: `there is no model "${model}" here; ${models.describe().name} serves`,
      })
  if (faults.length > 0)
    throw new MasonError('invalid_request', 'the request names what is not there', {
      detail: { errors: faults },
    })
}
