import { type ZodType, z } from 'zod'
import { runRequestSchema } from '../state/run-request.ts'
import {
  actionEventSchema,
  deltaSchema,
  inputRequestSchema,
  runViewSchema,
  sessionViewSchema,
  todosEventSchema,
} from '../state/run-view.ts'
import {
  actionSchema,
  outputPieceSchema,
  runtimeStateSchema,
  todoSchema,
  usageSchema,
} from '../state/runtime-state.ts'
import { problemSchema } from './problems.ts'

type JsonSchema = Record<string, unknown>

/** Schemas that have a name of their own for clients, used by routes or not. */
const named: readonly [string, ZodType][] = [
  ['Run', runViewSchema],
  ['Session', sessionViewSchema],
  ['RuntimeState', runtimeStateSchema],
  ['Action', actionSchema],
  ['Todo', todoSchema],
  ['Usage', usageSchema],
  ['OutputPiece', outputPieceSchema],
  ['InputRequest', inputRequestSchema],
  ['ActionEvent', actionEventSchema],
  ['TodosEvent', todosEventSchema],
  ['Delta', deltaSchema],
  ['Problem', problemSchema],
]

const prefix = '#/components/schemas/'

/** Gathers the schemas of a document: gives references while it is built, all components in the end. */
export type SchemaBook = {
  /** A reference to what a caller sends, or is sent; `name` is used for a schema that has none yet. */
  refer(schema: ZodType, name: string, io: 'input' | 'output'): JsonSchema
  components(): Record<string, JsonSchema>
}

export const createSchemaBook = (): SchemaBook => {
  const registries = { input: z.registry<{ id: string }>(), output: z.registry<{ id: string }>() }
  for (const [id, schema] of named) registries.output.add(schema, { id })
  registries.input.add(runRequestSchema, { id: 'RunRequest' })
  return {
    refer(schema, name, io) {
      const registry = registries[io]
      if (!registry.has(schema)) registry.add(schema, { id: name })
      return { $ref: `${prefix}${registry.get(schema)?.id}` }
    },
    components: () => ({
      Json: { description: 'Any JSON value' },
      ...componentsOf(registries.input, 'input'),
      ...componentsOf(registries.output, 'output'),
    }),
  }
}

/** The schema of one parameter. Parameters are text that is parsed, so it is the parsed value that is described. */
export const parameterSchema = (schema: ZodType): JsonSchema => tidy(z.toJSONSchema(schema, { io: 'output' }))

const componentsOf = (registry: ReturnType<typeof z.registry<{ id: string }>>, io: 'input' | 'output') => {
  const { schemas } = z.toJSONSchema(registry, { io, uri: (id) => `${prefix}${id}` })
  const components = Object.entries(schemas).filter(([id]) => id !== '__shared')
  return Object.fromEntries(components.map(([id, schema]) => [id, tidy(schema)]))
}

const isNever = (schema: unknown): boolean => JSON.stringify((schema as JsonSchema | undefined)?.not) === '{}'

/**
 * JSON Schema as it stands inside an OpenAPI document: no ids of its own, `Json` for every z.json(), no bounds that
 * only say "safe integer", and no fields that are not built yet.
 */
const tidy = (schema: unknown): JsonSchema => tidyAny(schema) as JsonSchema

const tidyAny = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(tidyAny)
  if (value === null || typeof value !== 'object') return value
  const { $schema: _, $id: __, ...schema } = value as JsonSchema
  if (typeof schema.$ref === 'string' && schema.$ref.includes('__shared')) return { $ref: `${prefix}Json` }
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
  const kept = Object.entries(schema).filter(([, item]) => !isNever(item))
  return Object.fromEntries(kept.map(([key, item]) => [key, tidyAny(item)]))
}
