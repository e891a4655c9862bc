type Schema = Record<string, unknown>

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Keywords that OpenAI's strict mode takes; another one makes it answer 400. */
const strictKeywords = new Set(
  (
    '$schema $defs $ref $id title description type enum const properties required additionalProperties items ' +
    'anyOf pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems'
  ).split(' '),
)

const closedObject = (schema: Schema): boolean => {
  if (schema.type !== 'object' && schema.properties === undefined) return true
  if (schema.additionalProperties !== false || !isSchema(schema.properties)) return false
  const required = Array.isArray(schema.required) ? schema.required : []
  return Object.keys(schema.properties).every((name) => required.includes(name))
}

const children = (schema: Schema): unknown[] => [
  ...(isSchema(schema.properties) ? Object.values(schema.properties) : []),
  ...(isSchema(schema.$defs) ? Object.values(schema.$defs) : []),
  ...(Array.isArray(schema.anyOf) ? schema.anyOf : []),
  ...(schema.items === undefined ? [] : [schema.items]),
]

const strictWithin = (schema: unknown): boolean =>
  isSchema(schema) &&
  Object.keys(schema).every((keyword) => strictKeywords.has(keyword)) &&
  closedObject(schema) &&
  children(schema).every(strictWithin)

/**
 * Whether `strict: true` may be asked for a schema: all objects closed and complete, no unusual keyword.
 * Source: OpenAI's guide "Structured outputs", supported schemas.
 */
export const isStrictSchema = (schema: Schema): boolean => schema.type === 'object' && strictWithin(schema)
