import { z } from 'zod'
import { createSchemaBook, parameterSchema, type SchemaBook } from './openapi-schemas.ts'
import { type ProblemCode, problemSchema, statusOf, titleOf } from './problems.ts'
import type { GoodAnswer, RouteDoc } from './route.ts'

type Part = 'params' | 'querystring' | 'headers' | 'body'

/** A registered route as the document needs it. */
export type DocumentedRoute = {
  method: string
  url: string
  doc: RouteDoc
  schema: Partial<Record<Part, z.ZodType>>
}

type Plain = Record<string, unknown>

const requestId = { 'x-request-id': { description: 'Id of the request', schema: { type: 'string' } } }
const retryAfter = { 'retry-after': { description: 'Seconds to wait', schema: { type: 'integer' } } }

/** OpenAPI 3.1 of these routes, from the same schemas that check their requests. */
export const openApiDocument = (routes: readonly DocumentedRoute[], auth: 'required' | 'off'): Plain => {
  const book = createSchemaBook()
  const paths: Record<string, Plain> = {}
  for (const route of routes) {
    const path = route.url.replace(/:([A-Za-z0-9_]+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, book, auth) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Mason',
      version: '1',
      description:
        'Jobs for agents: submit a run, follow it live, read its state. Errors are RFC 9457 problems.',
    },
    servers: [{ url: '/' }],
    tags: ['runs', 'events', 'sessions', 'operations'].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'Token of a business' } },
      schemas: book.components(),
    },
  }
}

const operationOf = (route: DocumentedRoute, book: SchemaBook, auth: 'required' | 'off'): Plain => {
  const { doc, schema } = route
  const name = doc.id.charAt(0).toUpperCase() + doc.id.slice(1)
  return {
    operationId: doc.id,
    tags: [doc.tag],
    summary: doc.summary,
    ...(doc.description ? { description: doc.description } : {}),
    security: doc.role && auth === 'required' ? [{ bearer: [] }] : [],
    parameters: parametersOf(schema),
    ...(schema.body
      ? {
          requestBody: {
            required: !doc.bodyOptional,
            content: { 'application/json': { schema: book.refer(schema.body, `${name}Body`, 'input') } },
          },
        }
      : {}),
    responses: { ...goodAnswers(doc, name, book), ...problemAnswers(problemsOf(route, auth), book, doc) },
  }
}

const places = { params: 'path', querystring: 'query', headers: 'header' } as const

const parametersOf = (schema: DocumentedRoute['schema']): Plain[] =>
  (['params', 'querystring', 'headers'] as const).flatMap((part) => {
    const object = schema[part]
    if (!(object instanceof z.ZodObject)) return []
    return Object.entries(object.shape as Record<string, z.ZodType>).map(([name, item]) => ({
      name,
      in: places[part],
      required: !item.safeParse(undefined).success,
      schema: parameterSchema(item),
    }))
  })

const goodAnswers = (doc: RouteDoc, name: string, book: SchemaBook): Plain => {
  const several = Object.values(doc.answers).some((one, _, all) => one.schema !== all[0]?.schema)
  return Object.fromEntries(
    Object.entries(doc.answers).map(([status, good]) => [
      status,
      {
        description: good.description,
        headers: { ...requestId, ...headersOf(good) },
        ...contentOf(good, `${name}Answer${several && good.schema ? status : ''}`, book),
      },
    ]),
  )
}

const headersOf = ({ headers = {} }: GoodAnswer): Plain =>
  Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  )

const contentOf = ({ schema, type }: GoodAnswer, name: string, book: SchemaBook): Plain => {
  if (schema)
    return { content: { [type ?? 'application/json']: { schema: book.refer(schema, name, 'output') } } }
  if (!type) return {}
  const bytes = type === 'application/octet-stream'
  return {
    content: { [type]: { schema: bytes ? { type: 'string', format: 'binary' } : { type: 'string' } } },
  }
}

/** The problems a route can answer with, its own and those it shares with all of its kind. */
const problemsOf = ({ doc, schema }: DocumentedRoute, auth: 'required' | 'off'): ProblemCode[] => {
  const codes: ProblemCode[] = [...(doc.problems ?? [])]
  if (doc.role) codes.push('forbidden', 'too_many_requests', 'database_unavailable')
  if (doc.role && auth === 'required') codes.push('unauthorized')
  if (Object.keys(schema).length > 0) codes.push('invalid_request')
  return [...codes, 'internal', 'shutting_down']
}

const problemAnswers = (codes: readonly ProblemCode[], book: SchemaBook, doc: RouteDoc): Plain => {
  const statuses = [...new Set(codes.map(statusOf))].filter((status) => !(status in doc.answers))
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      {
        description: codesWith(codes, status)
          .map((code) => `\`${code}\`: ${titleOf(code)}`)
          .join('; '),
        headers: status === 429 || status === 503 ? { ...requestId, ...retryAfter } : requestId,
        content: doc.errorBody
          ? { 'application/json': { schema: book.refer(doc.errorBody, 'OpenAIError', 'output') } }
          : { 'application/problem+json': { schema: book.refer(problemSchema, 'Problem', 'output') } },
      },
    ]),
  )
}

const codesWith = (codes: readonly ProblemCode[], status: number): ProblemCode[] =>
  [...new Set(codes)].filter((code) => statusOf(code) === status)
