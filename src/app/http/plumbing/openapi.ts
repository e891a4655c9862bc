import { type ZodType, z } from 'zod'
import { formatPathsSchema } from '../../../models/schemas/response-format.ts'
import { findProblem, type ProblemCode, problemSchema } from '../../../routes/problems.ts'
import type { RouteDoc, SuccessResponse } from '../../../routes/route.ts'
import {
  fileSchema,
  limitsSchema,
  runRequestSchema,
  structureEntrySchema,
} from '../../../state/run-request.ts'
import {
  actionEventSchema,
  actionViewSchema,
  consentEventSchema,
  deltaSchema,
  inputEventSchema,
  inputRequestSchema,
  runEventSchema,
  runViewSchema,
  sessionViewSchema,
  statusEventSchema,
  todosEventSchema,
} from '../../../state/run-view.ts'
import {
  actionSchema,
  outputFieldSchema,
  runtimeStateSchema,
  todoSchema,
  usageSchema,
} from '../../../state/runtime-state.ts'

type Part = 'params' | 'querystring' | 'headers' | 'body'
type Json = Record<string, unknown>

/** A registered route as the document needs it. */
export type DocumentedRoute = {
  method: string
  url: string
  doc: RouteDoc
  schema: Partial<Record<Part, ZodType>>
}

/** The title of the document, and of the page that shows it. */
export const apiTitle = 'Mason API'

/**
 * OpenAPI 3.1 of these routes, made by zod from the same schemas that validate their requests. Schemas, error
 * responses and headers are components that operations share.
 */
export const openApiDocument = (routes: readonly DocumentedRoute[], auth: 'required' | 'off'): Json => {
  const components = createComponents()
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const path = route.url.replace(/:([A-Za-z0-9_]+)/g, '{$1}').replace(/\*$/, '{operation}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: buildOperation(route, components, auth) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: apiTitle,
      version: '1',
      description:
        'Jobs for agents: submit a run, follow it live, read its state. Errors are RFC 9457 problems.',
    },
    servers: [{ url: '/' }],
    tags: ['runs', 'events', 'files', 'sessions', 'operations'].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'Token with the named role; `operator`: the admin token or one of an operator',
        },
      },
      ...components.all(),
    },
  }
}

const buildOperation = (route: DocumentedRoute, components: Components, auth: 'required' | 'off'): Json => {
  const { doc, schema } = route
  const name = doc.id.charAt(0).toUpperCase() + doc.id.slice(1)
  return {
    operationId: doc.id,
    tags: [doc.tag],
    summary: doc.summary,
    ...(doc.description ? { description: doc.description } : {}),
    security: doc.role && auth === 'required' ? [{ bearer: [doc.role] }] : [],
    parameters: buildParameters(schema, components),
    ...(doc.streamed && {
      requestBody: { content: { '*/*': { schema: { type: 'string', format: 'binary' } } } },
    }),
    ...(schema.body
      ? {
          requestBody: {
            required: !doc.bodyOptional,
            content: {
              [doc.form ? 'multipart/form-data' : 'application/json']: {
                schema: components.schema(schema.body, `${name}Body`, 'input'),
              },
            },
          },
        }
      : {}),
    responses: {
      ...buildSuccesses(doc, name, components),
      ...buildProblems(problemCodes(route, auth), components, doc),
    },
  }
}

const locations = { params: 'path', querystring: 'query', headers: 'header' } as const

const buildParameters = (schema: DocumentedRoute['schema'], components: Components): Json[] =>
  Object.entries(locations).flatMap(([part, location]) => {
    const object = schema[part as keyof typeof locations]
    if (!(object instanceof z.ZodObject)) return []
    return Object.entries(object.shape as Record<string, ZodType>).map(([key, item]) => {
      const name = key === '*' ? 'operation' : key
      // parameters are text that is parsed, so the parsed value is described
      const { description, ...rest } = tidy(z.toJSONSchema(item, { io: 'output' })) as Json
      const required = !item.safeParse(undefined).success
      const parameter = { name, in: location, required, description, schema: rest }
      // with its place: `action` would be a file of a generated client beside that of the schema `Action`
      return components.shared('parameters', `${location}_${name.replaceAll('-', '_')}`, parameter)
    })
  })

const buildSuccesses = (doc: RouteDoc, name: string, components: Components): Json => {
  const several = Object.values(doc.responses).some((one, _, all) => one.schema !== all[0]?.schema)
  return mapValues(doc.responses, (success, status) => ({
    description: success.description,
    headers: {
      ...requestIdHeader(components),
      ...mapValues(success.headers ?? {}, (text) => describeHeader(text)),
    },
    ...buildContent(success, `${name}Answer${several && success.schema ? status : ''}`, components),
  }))
}

const describeHeader = (description: string, type = 'string'): Json => ({ description, schema: { type } })

const requestIdHeader = (components: Components): Json => ({
  'x-request-id': components.shared('headers', 'RequestId', describeHeader('Id of the request')),
})

const buildContent = (
  { schema, type, events }: SuccessResponse,
  name: string,
  components: Components,
): Json => {
  if (schema)
    return {
      content: {
        [type ?? 'application/json']: { schema: components.schema(schema, name, 'output') },
        ...(events && {
          'text/event-stream': { schema: components.schema(events, `${name}Event`, 'output') },
        }),
      },
    }
  if (!type) return {}
  const bytes = type === 'application/octet-stream'
  return {
    content: { [type]: { schema: bytes ? { type: 'string', format: 'binary' } : { type: 'string' } } },
  }
}

/** The problems of a route: its own and those that it shares with all of its kind. */
const problemCodes = ({ method, doc, schema }: DocumentedRoute, auth: 'required' | 'off'): ProblemCode[] => {
  const codes: ProblemCode[] = [...(doc.problems ?? [])]
  if (doc.role) codes.push('forbidden', 'too_many_requests', 'database_unavailable')
  if (doc.role && auth === 'required') codes.push('unauthorized')
  if (schema.params) codes.push('not_found')
  // a route without a body refuses one with fields, and reads it for that
  const refusesBody = doc.role && doc.role !== 'agent' && !doc.streamed && method !== 'GET'
  if (schema.body || refusesBody) codes.push('malformed_json', 'unsupported_media_type')
  if (schema.body || doc.streamed) codes.push('payload_too_large', 'request_timeout', 'server_busy')
  if (Object.keys(schema).length > 0) codes.push('invalid_request')
  return [...new Set(codes), 'internal', 'shutting_down']
}

const buildProblems = (codes: readonly ProblemCode[], components: Components, doc: RouteDoc): Json => {
  const statusOf = (code: ProblemCode): number => findProblem(code)[0]
  const statuses = [...new Set(codes.map(statusOf))].filter((status) => !(status in doc.responses))
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = codes.filter((code) => statusOf(code) === status).sort()
      const name = `${doc.errorBody ? 'openai_' : ''}${ofStatus.join('_or_')}`
      return [status, components.shared('responses', name, buildProblem(ofStatus, status, components, doc))]
    }),
  )
}

const buildProblem = (
  codes: readonly ProblemCode[],
  status: number,
  components: Components,
  doc: RouteDoc,
): Json => ({
  description: codes.map((code) => `\`${code}\`: ${findProblem(code)[1]}`).join('; '),
  headers: {
    ...requestIdHeader(components),
    ...((status === 429 || status === 503) && {
      'retry-after': components.shared('headers', 'RetryAfter', describeHeader('Seconds to wait', 'integer')),
    }),
  },
  content: doc.errorBody
    ? { 'application/json': { schema: components.schema(doc.errorBody, 'OpenAIError', 'output') } }
    : { 'application/problem+json': { schema: components.schema(problemSchema, 'Problem', 'output') } },
})

/** Schemas that have a name of their own for clients, used by routes or not. */
const namedSchemas: readonly [string, ZodType][] = [
  ['Run', runViewSchema],
  ['Session', sessionViewSchema],
  ['RuntimeState', runtimeStateSchema],
  ['Action', actionSchema],
  ['Todo', todoSchema],
  ['Usage', usageSchema],
  ['OutputPiece', outputFieldSchema],
  ['InputRequest', inputRequestSchema],
  ['RunEvent', runEventSchema],
  ['ActionEvent', actionEventSchema],
  ['ActionView', actionViewSchema],
  ['StatusEvent', statusEventSchema],
  ['TodosEvent', todosEventSchema],
  ['InputEvent', inputEventSchema],
  ['ConsentEvent', consentEventSchema],
  ['Delta', deltaSchema],
  ['Problem', problemSchema],
  ['FormatPaths', formatPathsSchema],
]

/** Those of request bodies. */
const namedInputs: readonly [string, ZodType][] = [
  ['RunRequest', runRequestSchema],
  ['RequestFile', fileSchema],
  ['StructureEntry', structureEntrySchema],
  ['RunLimits', limitsSchema],
  ['FormatPaths', formatPathsSchema],
]

type Components = ReturnType<typeof createComponents>

/** Collects the components of a document: returns references while it is built, all components in the end. */
const createComponents = () => {
  const registries = { input: z.registry<{ id: string }>(), output: z.registry<{ id: string }>() }
  for (const [id, schema] of namedSchemas) registries.output.add(schema, { id })
  for (const [id, schema] of namedInputs) registries.input.add(schema, { id })
  const shared = {
    parameters: new Map<string, string>(),
    responses: new Map<string, string>(),
    headers: new Map<string, string>(),
  }
  return {
    /** A reference to a schema of what a caller sends (`input`) or receives; `name` is for a schema that has none yet. */
    schema(schema: ZodType, name: string, io: 'input' | 'output'): Json {
      const registry = registries[io]
      if (!registry.has(schema)) registry.add(schema, { id: name })
      return { $ref: `${schemaPath}${registry.get(schema)?.id}` }
    },
    /** A reference to this component; another one of the same name gets a number. */
    shared(kind: keyof typeof shared, name: string, component: Json): Json {
      const text = JSON.stringify(component)
      const names = shared[kind]
      let unique = name
      for (let number = 2; (names.get(unique) ?? text) !== text; number++) unique = `${name}_${number}`
      names.set(unique, text)
      return { $ref: `#/components/${kind}/${unique}` }
    },
    all: (): Json => ({
      schemas: {
        Json: { description: 'Any JSON value' },
        ...toComponents(registries.input, 'input'),
        ...toComponents(registries.output, 'output'),
      },
      ...mapValues(shared, (texts) => mapValues(Object.fromEntries(texts), (text) => JSON.parse(text))),
    }),
  }
}

const schemaPath = '#/components/schemas/'

const toComponents = (registry: ReturnType<typeof z.registry<{ id: string }>>, io: 'input' | 'output') => {
  const { schemas } = z.toJSONSchema(registry, { io, uri: (id) => `${schemaPath}${id}` })
  const { __shared: _, ...named } = schemas
  return mapValues(named, tidy)
}

const mapValues = <Value>(
  values: Record<string, Value>,
  map: (value: Value, name: string) => unknown,
): Json => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value, name)]))

/** Zod describes the member of `anyOf` beside null; readers look for the description of the whole. */
const describeNullable = (schema: Json): Json => {
  const [member, other, ...more] = Array.isArray(schema.anyOf) ? schema.anyOf : []
  if (other?.type !== 'null' || more.length > 0 || schema.description !== undefined) return schema
  const { description, ...rest } = member
  return { ...schema, anyOf: [rest, other], ...(description && { description }) }
}

const isNever = (schema: unknown): boolean => JSON.stringify((schema as Json | undefined)?.not) === '{}'

/**
 * JSON Schema for use inside an OpenAPI document: no ids of its own, `Json` for every z.json(), no bounds that only mean
 * "safe integer", and no fields of type never.
 */
const tidy = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(tidy)
  if (value === null || typeof value !== 'object') return value
  const { $schema: _, $id: __, ...schema } = describeNullable(value as Json)
  if (typeof schema.$ref === 'string' && schema.$ref.includes('__shared')) schema.$ref = `${schemaPath}Json`
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
  const fields = Object.entries(schema).filter(([, item]) => !isNever(item))
  return Object.fromEntries(fields.map(([key, item]) => [key, tidy(item)]))
}
