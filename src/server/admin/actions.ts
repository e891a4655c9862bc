import type { ZodObject, ZodType, z } from 'zod'
import type { ProblemCode } from '../problems.ts'
import type { App, ServerContext } from '../route.ts'
import { askedOf, bodyProblems, docOf, orMissing, paramsOf, type Resource, type Scope } from './resource.ts'

type Named = Pick<Resource, 'path' | 'one' | 'many' | 'ids' | 'remedy'>

/** Something that can be done with one of a resource: POST …/{id}/{name}. */
export const actionRoute = <
  Answer extends ZodType,
  Body extends ZodType = z.ZodObject<Record<string, never>>,
>(
  app: App,
  { open }: Pick<ServerContext, 'open'>,
  resource: Named,
  action: {
    name: string
    summary: string
    description?: string
    body?: Body
    bodyOptional?: boolean
    answer: Answer
    problems?: readonly ProblemCode[]
    /** Null: there is none of this id. */
    run(scope: Scope, id: string, body: z.output<Body>, signal: AbortSignal): Promise<z.output<Answer> | null>
  },
): void => {
  const { name, summary, description, body, bodyOptional, answer, problems = [] } = action
  app.post(`${resource.path}/:id/${name}`, {
    schema: { params: paramsOf(resource.path, 'id') as ZodObject, ...(body && { body }) },
    config: docOf(resource, {
      id: `${name}${resource.ids[0]}`,
      summary,
      ...(description && { description }),
      answers: { 200: { description: 'What came of it', schema: answer } },
      problems: ['not_found', ...(body ? bodyProblems : []), ...problems],
      ...(bodyOptional && { bodyOptional }),
    }),
    handler: async (request, reply) => {
      const { scope, id } = askedOf(request)
      const { signal, release } = open.signalOf(reply.raw)
      try {
        return orMissing(
          resource,
          request,
          await action.run(scope, id, request.body as z.output<Body>, signal),
        )
      } finally {
        release()
      }
    },
  })
}

/** Something of one of a resource that can be looked at: GET …/{id}/{name}. */
export const viewRoute = <Answer extends ZodType>(
  app: App,
  resource: Named,
  view: {
    name: string
    id: string
    summary: string
    answer: Answer
    read(scope: Scope, id: string): Promise<z.output<Answer> | null>
  },
): void => {
  app.get(`${resource.path}/:id/${view.name}`, {
    schema: { params: paramsOf(resource.path, 'id') as ZodObject },
    config: docOf(resource, {
      id: view.id,
      summary: view.summary,
      answers: { 200: { description: 'What there is', schema: view.answer } },
      problems: ['not_found'],
    }),
    handler: async (request) => {
      const { scope, id } = askedOf(request)
      return orMissing(resource, request, await view.read(scope, id))
    },
  })
}
