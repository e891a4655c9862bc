type Schema = Record<string, unknown>

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const byReference = (root: Schema, reference: string): unknown =>
  reference
    .replace(/^#\/?/, '')
    .split('/')
    .filter((part) => part !== '')
    .reduce<unknown>((at, part) => (isSchema(at) ? at[part] : undefined), root)

const formats: Record<string, string> = {
  date: '2026-01-01',
  'date-time': '2026-01-01T00:00:00Z',
  time: '00:00:00Z',
  email: 'a@example.com',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
}

const numberFor = (schema: Schema): number => {
  const { minimum, exclusiveMinimum, maximum } = schema
  if (typeof minimum === 'number') return minimum
  if (typeof exclusiveMinimum === 'number') return exclusiveMinimum + 1
  return typeof maximum === 'number' ? Math.min(1, maximum) : 1
}

const textFor = ({ format, minLength }: Schema): string => {
  const known = typeof format === 'string' ? formats[format] : undefined
  return known ?? 'ok'.padEnd(typeof minLength === 'number' ? minLength : 0, '.')
}

const objectFor = (schema: Schema, root: Schema, depth: number): Schema => {
  const { properties, required } = schema
  if (!isSchema(properties) || !Array.isArray(required)) return {}
  const names = required.filter((name) => typeof name === 'string')
  return Object.fromEntries(names.map((name) => [name, sample(properties[name], root, depth + 1)]))
}

/** The smallest sensible value of a JSON Schema: required fields, first choices, `true` for a boolean. */
export const sample = (
  schema: unknown,
  root: Schema = isSchema(schema) ? schema : {},
  depth = 0,
): unknown => {
  if (!isSchema(schema) || depth > 12) return null
  if ('const' in schema) return schema.const
  if ('default' in schema) return schema.default
  if (Array.isArray(schema.enum)) return schema.enum[0]
  if (typeof schema.$ref === 'string') return sample(byReference(root, schema.$ref), root, depth + 1)
  const [choice] = [schema.anyOf, schema.oneOf, schema.allOf].filter(Array.isArray)
  if (choice !== undefined) return sample(choice[0], root, depth + 1)
  const type = Array.isArray(schema.type) ? schema.type[0] : (schema.type ?? 'object')
  if (type === 'string') return textFor(schema)
  if (type === 'number' || type === 'integer') return numberFor(schema)
  if (type === 'boolean') return true
  if (type === 'null') return null
  if (type === 'object') return objectFor(schema, root, depth)
  const length = typeof schema.minItems === 'number' ? schema.minItems : 0
  return Array.from({ length }, () => sample(schema.items, root, depth + 1))
}
