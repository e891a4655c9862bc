/** Reads an OpenAPI document as a client generator does: references resolved, fields of every level. */

import { z } from 'zod'

// biome-ignore lint/suspicious/noExplicitAny: JSON of every shape
type Json = any

/** A request body of an operation, `POST /v1/runs`. */
export type DocumentedBody = { operation: string; type: string; schema: Json; examples: Json[] }

const resolveReference = (document: Json, value: Json): Json =>
  typeof value?.$ref === 'string'
    ? resolveReference(
        document,
        value.$ref
          .split('/')
          .slice(1)
          .reduce((at: Json, name: string) => at[name], document),
      )
    : value

const listOperations = (document: Json): [name: string, operation: Json][] =>
  Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(
      ([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as [string, Json],
    ),
  )

/** Every route with its operation id and the role it needs, null for none. */
export const listRoutes = (document: Json) =>
  listOperations(document).map(([name, { operationId: id, summary, security }]) => {
    const [method = '', path = ''] = name.split(' ')
    const role: string | null = security[0]?.bearer[0] ?? null
    return { method, path, id: id as string, summary: summary as string, role }
  })

export const listBodies = (document: Json): DocumentedBody[] =>
  listOperations(document).flatMap(([operation, { requestBody }]) =>
    Object.entries<Json>(requestBody?.content ?? {}).map(([type, { schema }]) => {
      const resolved = resolveReference(document, schema)
      return { operation, type, schema: resolved, examples: resolved.examples ?? [] }
    }),
  )

/** The paths of all fields of a schema that have no description of their own, those of lists and of other members too. */
const listUndescribed = (
  document: Json,
  schema: Json,
  path: string,
  parents: readonly Json[] = [],
): string[] => {
  const whole = resolveReference(document, schema)
  if (parents.includes(whole)) return []
  const list = (inner: Json, at: string) => listUndescribed(document, inner, at, [...parents, whole])
  const { properties = {}, items, additionalProperties: others, anyOf = [], oneOf = [], allOf = [] } = whole
  return [
    ...Object.entries<Json>(properties).flatMap(([name, field]) => [
      ...(field.description ? [] : [`${path}/${name}`]),
      ...list(field, `${path}/${name}`),
    ]),
    ...[...anyOf, ...oneOf, ...allOf].flatMap((member) => list(member, path)),
    ...(typeof items === 'object' ? list(items, `${path}[]`) : []),
    ...(typeof others === 'object' ? list(others, `${path}{}`) : []),
  ]
}

/** The parameters and the fields of bodies, at every level, that nothing describes. */
export const listUndescribedFields = (document: Json): string[] => [
  ...listOperations(document).flatMap(([operation, { parameters = [] }]) =>
    parameters
      .map((parameter: Json) => resolveReference(document, parameter))
      .flatMap(({ name, description }: Json) => (description ? [] : [`${operation} ?${name}`])),
  ),
  ...listBodies(document)
    .filter(({ type }) => type !== '*/*')
    .flatMap(({ operation, schema }) => listUndescribed(document, schema, operation)),
]

/** The schema of a successful JSON response of an operation, or null where it has none. */
export const responseSchema = (document: Json, operation: string, status: number): z.ZodType | null => {
  const [, { responses }] = listOperations(document).find(([name]) => name === operation) ?? ['', {}]
  const schema = responses?.[status]?.content?.['application/json']?.schema
  if (!schema) return null
  const text = JSON.stringify({ ...schema, $defs: document.components.schemas })
  // zod reads patterns without the flag u, which ours need
  const read = JSON.parse(text.replaceAll('#/components/schemas/', '#/$defs/'), (name, value) =>
    name === 'pattern' && typeof value === 'string' ? undefined : value,
  )
  return z.fromJSONSchema(read)
}
