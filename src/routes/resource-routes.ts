import { type ZodObject, type ZodType, z } from 'zod'
import type { ResourceScope, ResourceStore } from '../infra/resources/resource-store.ts'
import { MasonError } from '../state/errors.ts'
import { idSchema } from '../state/run-request.ts'
import { omitUndefined, pageSchema, plainPageQuery } from './parameters.ts'
import type { ProblemCode } from './problems.ts'
import { type App, createDocs, type RouteDoc, type RouteServer, respondsWith } from './route.ts'

type Operation = 'list' | 'create' | 'get' | 'change' | 'remove'

/** A resource that admins list, create, get, change and delete. */
export type Resource<
  Input extends ZodType = ZodType,
  Change extends ZodType = ZodType,
  View extends ZodObject = ZodObject,
  Created extends ZodType = View,
> = {
  /** The path of the list, with the parameters of its parent: /admin/v1/vendors/:vendor_id/keys. */
  path: string
  /** Its name in texts, such as `a key`, and the plural. */
  one: string
  many: string
  /** Singular and plural in operation ids, where they are not those of the texts: `TrustedKey` for `a trusted key`. */
  ids?: readonly [one: string, many: string]
  input: Input
  /** Absent: one never changes, and is never deleted. */
  change?: Change
  view: View
  /** The response of creating one, with what is sent only once; `view` where absent. */
  created?: Created
  /** Query of the list, beside limit and cursor. */
  filter?: ZodObject
  /** Query of all other calls; its fields of the view are part of the location of one. */
  query?: ZodObject
  /** It cannot be deleted. */
  isPermanent?: true
  /** Summaries that differ from the usual ones. */
  summaries?: Partial<Record<Operation, string>>
  /** Beside those that follow from the body and path of a route. */
  problems?: Partial<Record<Operation, ProblemCode[]>>
  /** As in `RouteDoc`, of the bodies that create or change one. */
  passesNumbers?: true
  /** The remedy of `not_found`, where it is not the path of the list. */
  remedy?: string
  store(): Omit<
    ResourceStore<z.output<Input>, z.output<Change>, z.output<View>, z.output<Created>>,
    'change' | 'remove'
  > & {
    change?(scope: ResourceScope, id: string, change: z.output<Change>): Promise<z.output<View> | null>
    remove?(scope: ResourceScope, id: string): Promise<boolean>
  }
}

type AdminRequest = { params: unknown; query: unknown; body: unknown }

/** Scope, id and page of a validated request. */
export const readAdminRequest = ({
  params,
  query,
}: AdminRequest): { scope: ResourceScope; id: string; page: { limit: number; cursor?: string } } => {
  const { id = '', ...parent } = params as ResourceScope
  const { limit, cursor, ...rest } = omitUndefined(query as { limit: number; cursor?: string })
  return { scope: { ...parent, ...rest }, id, page: { limit, ...(cursor !== undefined && { cursor }) } }
}

/** The name of a resource in messages: "a schedule" without its article. */
export const toResourceName = (one: string): string => one.replace(/^an? /, '')

const toId = (name: string): string => name.replaceAll(/(?:^|\W)(\w)/g, (_, letter) => letter.toUpperCase())
const toIds = ({ one, many, ids }: NamedResource): readonly [one: string, many: string] =>
  ids ?? [toId(toResourceName(one)), toId(many)]

/** The schema of the parameters of a path, with `id` where it is that of one; null when there are none. */
export const createParams = (path: string, one?: string): ZodObject | null => {
  const parents = [...path.matchAll(/:(\w+)_id/g)].map(([, parent = '']) => [`${parent}_id`, parent])
  const names = [...parents, ...(one === undefined ? [] : [['id', toResourceName(one)]])]
  const fields = names.map(([name, of]) => [name, idSchema.describe(`The id of the ${of}`)])
  return names.length === 0 ? null : z.strictObject(Object.fromEntries(fields))
}

type NamedResource = Pick<Resource, 'path' | 'one' | 'many' | 'ids' | 'remedy' | 'query'>

/** The value; throws `not_found` when it is null. */
const orNotFound = <Value>(resource: NamedResource, request: AdminRequest, value: Value | null): Value => {
  if (value !== null) return value
  const { scope, id } = readAdminRequest(request)
  const list = resource.path.replace(/:(\w+)/g, (_, name) => scope[name] ?? '')
  throw new MasonError('not_found', `there is no ${toResourceName(resource.one)} "${id}"`, {
    remedy: resource.remedy ?? `GET ${list} lists the ${resource.many}`,
  })
}

/** The handler of a route of one of a resource; throws `not_found` where `read` resolves with null. */
export const handleOne =
  <Request extends AdminRequest, View>(
    resource: NamedResource,
    read: (scope: ResourceScope, id: string, request: Request) => Promise<View | null>,
  ) =>
  async (request: Request): Promise<View> => {
    const { scope, id } = readAdminRequest(request)
    return orNotFound(resource, request, await read(scope, id, request))
  }

/** The documentation of a route of a resource, for the admin token only. */
export const describeAdmin = (
  resource: Pick<Resource, 'many'>,
  id: string,
  summary: string,
  more: Pick<RouteDoc, 'responses' | 'problems' | 'bodyOptional' | 'passesNumbers'>,
) => createDocs(`admin: ${resource.many}`)('operator', id, summary, more)

/** Registers the routes of a resource, documented and validated. */
export const resourceRoutes = <
  Input extends ZodType,
  Change extends ZodType,
  View extends ZodObject,
  Created extends ZodType = View,
>(
  app: App,
  resource: Resource<Input, Change, View, Created>,
): void => {
  const { path, one, many, input, change, view, store } = resource
  const ids = toIds(resource)
  const parent = createParams(path)
  const listSchema = {
    ...(parent && { params: parent }),
    querystring: plainPageQuery.extend(resource.filter?.shape ?? {}),
  }
  const params = createParams(path, one) as ZodObject
  const itemSchema = { params, ...(resource.query && { querystring: resource.query }) }
  const item = `${path}/:id`
  const oneResponse = respondsWith(200, one, view)
  const config = (operation: Operation, id: string, summary: string, doc: Pick<RouteDoc, 'responses'>) =>
    describeAdmin(resource, id, resource.summaries?.[operation] ?? summary, {
      ...doc,
      problems: resource.problems?.[operation] ?? [],
      ...(resource.passesNumbers && { passesNumbers: true }),
    })

  app.get(path, {
    schema: listSchema,
    config: config('list', `list${ids[1]}`, `Lists ${many}, the latest first`, {
      ...respondsWith(200, 'One page', pageSchema(view)),
    }),
    handler: (request) => {
      const { scope, page } = readAdminRequest(request)
      return store().list(scope, page)
    },
  })

  app.post(path, {
    schema: { ...(parent && { params: parent }), body: input },
    config: config('create', `create${ids[0]}`, `Adds ${one}`, {
      ...respondsWith(201, one, resource.created ?? view, { location: 'Path of the new one' }),
    }),
    handler: async (request, reply) => {
      const created = await store().create(readAdminRequest(request).scope, request.body as z.output<Input>)
      const { id, ...fields } = created as { id: string; [name: string]: unknown }
      const search = new URLSearchParams()
      for (const name of Object.keys(resource.query?.shape ?? {})) search.set(name, String(fields[name]))
      const location = `${request.url.split('?', 1)[0]?.replace(/\/$/, '')}/${encodeURIComponent(id)}`
      return reply
        .code(201)
        .header('location', search.size > 0 ? `${location}?${search}` : location)
        .send(created)
    },
  })

  app.get(item, {
    schema: itemSchema,
    config: config('get', `get${ids[0]}`, `Returns ${one}`, oneResponse),
    handler: handleOne(resource, (scope, id) => store().get(scope, id)),
  })

  if (!change) return
  app.patch(item, {
    schema: { ...itemSchema, body: change },
    config: config('change', `change${ids[0]}`, `Changes ${one}; absent fields stay unchanged`, oneResponse),
    handler: handleOne(
      resource,
      (scope, id, { body }) =>
        store().change?.(scope, id, omitUndefined(body as object) as z.output<Change>) ??
        Promise.resolve(null),
    ),
  })

  if (resource.isPermanent) return
  app.delete(item, {
    schema: itemSchema,
    config: config('remove', `delete${ids[0]}`, `Deletes ${one} that nothing uses`, {
      ...respondsWith(204, 'It is deleted'),
    }),
    handler: async (request, reply) => {
      const { scope, id } = readAdminRequest(request)
      orNotFound(resource, request, (await store().remove?.(scope, id)) || null)
      return reply.code(204).send()
    },
  })
}

/** An action on one of a resource: POST …/{id}/{name}. */
export type ResourceAction<
  Response extends ZodType = ZodType,
  Body extends ZodType = z.ZodObject<Record<string, never>>,
> = {
  name: string
  /** The operation id, where it is not name and resource. */
  id?: string
  summary: string
  body?: Body
  bodyOptional?: boolean
  response: Response
  problems?: ProblemCode[]
  /** Null when there is none of this id. */
  run(
    scope: ResourceScope,
    id: string,
    body: z.output<Body>,
    signal: AbortSignal,
  ): Promise<z.output<Response> | null>
}

/** Registers an action. */
export const actionRoute = <
  Response extends ZodType,
  Body extends ZodType = z.ZodObject<Record<string, never>>,
>(
  app: App,
  { open }: RouteServer,
  resource: NamedResource,
  action: ResourceAction<Response, Body>,
): void => {
  const { name, id, summary, body, bodyOptional, response, problems } = action
  app.post(`${resource.path}/:id/${name}`, {
    schema: {
      params: createParams(resource.path, resource.one) as ZodObject,
      ...(resource.query && { querystring: resource.query }),
      ...(body && { body }),
    },
    config: describeAdmin(resource, id ?? `${name}${toIds(resource)[0]}`, summary, {
      ...respondsWith(200, 'The result', response),
      ...(problems && { problems }),
      ...(bodyOptional && { bodyOptional }),
    }),
    handler: async (request, reply) => {
      const { signal, release } = open.abortSignal(reply.raw)
      const run = handleOne(resource, (scope, id) =>
        action.run(scope, id, request.body as z.output<Body>, signal),
      )
      return run(request).finally(release)
    },
  })
}
