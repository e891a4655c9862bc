import { z } from 'zod'
import { sample } from '../../test/support/fake-model/sample.ts'
import type { Schema } from './shapes.ts'

/** A route of the API as its own document tells of it, with what a valid call would carry. */
export type Operation = {
  method: string
  /** With `{name}` for what is filled in. */
  path: string
  query: string[]
  headers: string[]
  /** A valid body, or null where no JSON is taken. */
  body: Record<string, unknown> | null
  parameters: Parameter[]
  /** The schema of its body, JSON or a form; null: it takes none. */
  schema: Schema | null
  isForm: boolean
  /** It answers in OpenAI's shape and ignores what it does not know, as its clients expect. */
  isOpenAi: boolean
}
/** What an operation takes beside its body. */
export type Parameter = { name: string; in: 'path' | 'query' | 'header'; schema: Schema }

const openAiPath = /^\/v1\/(chat\/completions|embeddings|models|images|audio)/

const schema = z.record(z.string(), z.unknown())
const parameterSchema = z.object({ name: z.string(), in: z.enum(['path', 'query', 'header']), schema })
const operationSchema = z.object({
  parameters: z.array(z.object({ $ref: z.string() }).or(parameterSchema)),
  requestBody: z
    .object({
      content: z.object({
        'application/json': z.object({ schema }).optional(),
        'multipart/form-data': z.object({ schema }).optional(),
      }),
    })
    .optional(),
})
const documentSchema = z.object({
  paths: z.record(z.string(), z.record(z.string(), operationSchema)),
  components: z.object({
    schemas: z.record(z.string(), schema),
    parameters: z.record(z.string(), parameterSchema).default({}),
  }),
})

/** Every operation of `/openapi.json`; `fuller` fills in what the smallest body leaves out, by path. */
export const operationsOf = (
  document: unknown,
  fuller: Record<string, Record<string, unknown>>,
): Operation[] => {
  const { paths, components } = documentSchema.parse(document)
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { requestBody, ...operation }]) => {
      const parameters = operation.parameters.flatMap(
        (one) => ('$ref' in one ? components.parameters[one.$ref.split('/').at(-1) ?? ''] : one) ?? [],
      )
      const named = (place: string): string[] =>
        parameters.flatMap((parameter) => (parameter.in === place ? [parameter.name] : []))
      const json = requestBody?.content['application/json']
      const form = requestBody?.content['multipart/form-data']
      const smallest = json && sample(json.schema, { components } as never)
      return {
        method: method.toUpperCase(),
        path,
        query: named('query'),
        headers: named('header'),
        parameters,
        schema: json?.schema ?? form?.schema ?? null,
        isForm: form !== undefined,
        isOpenAi: openAiPath.test(path),
        body: json ? { ...(smallest as Record<string, unknown>), ...fuller[path] } : null,
      }
    }),
  )
}
