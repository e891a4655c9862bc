import type { Models } from '../state/ports/models.ts'
import { createFieldsError, type FieldError } from '../state/resource-schema.ts'
import type { RunRequest } from '../state/run-request.ts'
import type { GraphInfo } from './definitions.ts'

/** Throws `invalid_request` for names of missing tools and models, each with its pointer. */
export const checkRequestNames = (request: RunRequest, graph: GraphInfo, models: Models): void => {
  const named = (kind: 'call' | 'output') =>
    graph.tools.filter((tool) => tool.kinds.includes(kind)).map((tool) => tool.name)
  const errors: FieldError[] = []
  const check = (name: string, names: string[], pointer: string): void => {
    if (!names.includes(name))
      errors.push({ pointer, detail: `there is no such tool; there are: ${names.join(', ')}` })
  }
  for (const [index, name] of (request.tools ?? []).entries()) check(name, named('call'), `/tools/${index}`)
  if (request.output?.tool !== undefined) check(request.output.tool, named('output'), '/output/tool')
  for (const [role, model] of Object.entries(request.models ?? {}))
    if (model !== undefined && !models.hasModel(model))
      errors.push({
        pointer: `/models/${role}`,
        detail: `there is no model "${model}" here; ${models.describe().name} serves`,
      })
  if (errors.length > 0) throw createFieldsError(...errors)
}
