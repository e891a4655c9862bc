import { type ZodObject, type ZodType, z } from 'zod'
import { MasonError } from '../../state/errors.ts'
import { idSchema } from '../../state/run-request.ts'
import type { Page } from '../../state/run-view.ts'
import { given, plainPageQuery } from '../parameters.ts'
import type { ProblemCode } from '../problems.ts'
import type { App, RouteDoc } from '../route.ts'
import { pageSchema } from '../wire.ts'

/** The rest of a path and query: which rows are meant. */
export type Scope = Record<string, string>

type Store<Input, Change, View, Made> = {
  list(scope: Scope, page: { limit: number; cursor?: string }): Promise<Page<View>>
  create(scope: Scope, input: Input): Promise<Made>
  get(scope: Scope, id: string): Promise<View | null>
  change(scope: Scope, id: string, change: Change): Promise<View | null>
  remove?(scope: Scope, id: string): Promise<boolean>
}

type Operation = 'list' | 'create' | 'get' | 'change' | 'remove'

/** Something that admins list, make, look at, change and delete. */
export type Resource<
  Input extends ZodType = ZodType,
  Change extends ZodType = ZodType,
  View extends ZodType = ZodType,
  Made extends ZodType = View,
> = {
  /** Of the list, with the names of what it belongs to: /admin/v1/vendors/:vendor_id/keys. */
  path: string
  /** As people call it, such as `a key`, and many of them. */
  one: string
  many: string
  /** Names of one and of many in operation ids. */
  ids: readonly [one: string, many: string]
  input: Input
  change: Change
  view: View
  /** What is shown once, when it is made; as `view` where absent. */
  made?: Made
  /** Of the list, beside limit and cursor. */
  filter?: ZodObject
  /** Of all other calls; what of it the view shows is part of where one is. */
  query?: ZodObject
  /** There is no call that deletes one. */
  isKept?: true
  /** Where the usual words do not say it. */
  summaries?: Partial<Record<Operation, string>>
  /** Beside those of bodies and `not_found`. */
  problems?: Partial<Record<Operation, readonly ProblemCode[]>>
  /** Where to look when there is none of this id. */
  remedy?: string
  store(): Store<z.output<Input>, z.output<Change>, z.output<View>, z.output<Made>>
}

export const bodyProblems: readonly ProblemCode[] = [
  'malformed_json',
  'payload_too_large',
  'unsupported_media_type',
]

const usualProblems: Record<Operation, readonly ProblemCode[]> = {
  list: [],
  create: [...bodyProblems],
  get: ['not_found'],
  change: [...bodyProblems, 'not_found'],
  remove: ['not_found'],
}

type Asked = { params: unknown; query: unknown; body: unknown }

/** What a checked request is about. */
export const askedOf = ({
  params,
  query,
}: Asked): { scope: Scope; id: string; page: { limit: number; cursor?: string } } => {
  const { id = '', ...above } = params as Scope
  const { limit, cursor, ...rest } = given(query as { limit: number; cursor?: string })
  return { scope: { ...above, ...rest }, id, page: { limit, ...(cursor !== undefined && { cursor }) } }
}

export const paramsOf = (path: string, ...more: string[]): ZodObject | null => {
  const names = [...[...path.matchAll(/:(\w+)/g)].map(([, name]) => name as string), ...more]
  return names.length === 0 ? null : z.strictObject(Object.fromEntries(names.map((name) => [name, idSchema])))
}

/** The value, or `not_found`. */
export const orMissing = <Value>(
  resource: Pick<Resource, 'one' | 'many' | 'path' | 'remedy'>,
  asked: Asked,
  value: Value | null,
): Value => {
  if (value !== null) return value
  const { scope, id } = askedOf(asked)
  const list = resource.path.replace(/:(\w+)/g, (_, name) => scope[name] ?? '')
  throw new MasonError('not_found', `there is no ${resource.one.replace(/^an? /, '')} "${id}"`, {
    remedy: resource.remedy ?? `GET ${list} lists the ${resource.many} there are`,
  })
}

export const docOf = (
  resource: Pick<Resource, 'many'>,
  doc: Omit<RouteDoc, 'tag' | 'role'>,
): { doc: RouteDoc } => ({
  doc: { tag: `admin: ${resource.many}`, role: 'operator', ...doc },
})

/** The calls of a resource, documented and checked. */
export const resourceRoutes = <
  Input extends ZodType,
  Change extends ZodType,
  View extends ZodType,
  Made extends ZodType = View,
>(
  app: App,
  resource: Resource<Input, Change, View, Made>,
): void => {
  const { path, one, many, ids, input, change, view, store } = resource
  const above = paramsOf(path)
  const listSchema = {
    ...(above && { params: above }),
    querystring: plainPageQuery.extend(resource.filter?.shape ?? {}),
  }
  const params = paramsOf(path, 'id') as ZodObject
  const itemSchema = { params, ...(resource.query && { querystring: resource.query }) }
  const item = `${path}/:id`
  const shown = { 200: { description: one, schema: view } }
  const config = (operation: Operation, id: string, summary: string, answers: RouteDoc['answers']) =>
    docOf(resource, {
      id,
      summary: resource.summaries?.[operation] ?? summary,
      answers,
      problems: [
        ...usualProblems[operation],
        ...(above && operation !== 'get' && operation !== 'remove' ? (['not_found'] as const) : []),
        ...(resource.problems?.[operation] ?? []),
      ],
    })

  app.get(path, {
    schema: listSchema,
    config: config('list', `list${ids[1]}`, `Lists ${many}, the latest first`, {
      200: { description: 'One page', schema: pageSchema(view) },
    }),
    handler: (request) => {
      const { scope, page } = askedOf(request)
      return store().list(scope, page)
    },
  })

  app.post(path, {
    schema: { ...(above && { params: above }), body: input },
    config: config('create', `create${ids[0]}`, `Adds ${one}`, {
      201: {
        description: one,
        schema: resource.made ?? view,
        headers: { location: 'Where it is from now on' },
      },
    }),
    handler: async (request, reply) => {
      const made = await store().create(askedOf(request).scope, request.body as z.output<Input>)
      const { id, ...fields } = made as { id: string; [name: string]: unknown }
      const search = new URLSearchParams()
      for (const name of Object.keys(resource.query?.shape ?? {})) search.set(name, String(fields[name]))
      const place = `${request.url.replace(/\/?(\?.*)?$/, '')}/${encodeURIComponent(id)}`
      return reply
        .code(201)
        .header('location', search.size > 0 ? `${place}?${search}` : place)
        .send(made)
    },
  })

  app.get(item, {
    schema: itemSchema,
    config: config('get', `get${ids[0]}`, `Shows ${one}`, shown),
    handler: async (request) => {
      const { scope, id } = askedOf(request)
      return orMissing(resource, request, await store().get(scope, id))
    },
  })

  app.patch(item, {
    schema: { ...itemSchema, body: change },
    config: config(
      'change',
      `change${ids[0]}`,
      `Changes ${one}; fields that are absent stay as they are`,
      shown,
    ),
    handler: async (request) => {
      const { scope, id } = askedOf(request)
      const wanted = given(request.body as object) as z.output<Change>
      return orMissing(resource, request, await store().change(scope, id, wanted))
    },
  })

  if (resource.isKept) return
  app.delete(item, {
    schema: itemSchema,
    config: config('remove', `delete${ids[0]}`, `Deletes ${one} that nothing uses`, {
      204: { description: 'It is gone' },
    }),
    handler: async (request, reply) => {
      const { scope, id } = askedOf(request)
      orMissing(resource, request, (await store().remove?.(scope, id)) || null)
      return reply.code(204).send()
    },
  })
}
