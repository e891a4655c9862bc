import { useQuery } from '@tanstack/react-query'
import { call } from '../api.ts'
import type { Json } from '../types.ts'

/** The API as it describes itself, as far as lists and forms are made of it. */
export type Schema = {
  $ref?: string
  type?: string | string[]
  enum?: Json[]
  const?: Json
  properties?: Record<string, Schema>
  items?: Schema
  required?: string[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  default?: Json
  description?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
}
type Parameter = { $ref?: string; name: string; in: string; required?: boolean; schema?: Schema }
type Content = { content?: Record<string, { schema?: Schema }> }
export type Operation = {
  operationId: string
  summary: string
  parameters?: Parameter[]
  requestBody?: Content & { required?: boolean }
  responses: Record<string, Content>
}
type Method = 'get' | 'post' | 'patch' | 'put' | 'delete'
type Document = {
  paths: Record<string, Partial<Record<Method, Operation>>>
  components: Record<string, Record<string, never>>
}

export const useDocument = () =>
  useQuery({
    queryKey: ['openapi'],
    queryFn: () => call<Document>('/openapi.json'),
    staleTime: Number.POSITIVE_INFINITY,
  })

/** What a reference stands for. */
export const resolve = <Thing extends { $ref?: string }>(
  doc: Document,
  thing: Thing | undefined,
): Thing | undefined => {
  if (!thing?.$ref) return thing
  const [, , kind = '', name = ''] = thing.$ref.split('/')
  return resolve(doc, doc.components[kind]?.[name] as Thing | undefined)
}

const isParameter = (part: string): boolean => part.startsWith('{')

/** The path of the document that this path is one of: fixed words win over parameters. */
export const findTemplate = (doc: Document, path: string): string | null => {
  const parts = path.split('/')
  const fits = Object.keys(doc.paths).filter((template) => {
    const words = template.split('/')
    return words.length === parts.length && words.every((word, at) => isParameter(word) || word === parts[at])
  })
  const parameters = (template: string) => template.split('/').filter(isParameter).length
  return fits.sort((a, b) => parameters(a) - parameters(b))[0] ?? null
}

/** The lists right below one: /admin/v1/vendors/{vendor_id}/keys is below /admin/v1/vendors/{id}. */
export const findChildren = (doc: Document, template: string): string[] => {
  const depth = template.split('/').length
  const parent = template.split('/').slice(0, -1).join('/')
  return Object.entries(doc.paths)
    .filter(([path, methods]) => {
      const words = path.split('/')
      return (
        methods.get &&
        words.length === depth + 1 &&
        path.startsWith(`${parent}/{`) &&
        !isParameter(words.at(-1) ?? '')
      )
    })
    .map(([path]) => path.split('/').at(-1) as string)
}

/** The acts on one: POST …/{id}/{act}. */
export const findActs = (doc: Document, template: string): { name: string; operation: Operation }[] =>
  Object.entries(doc.paths).flatMap(([path, { post, get }]) => {
    const name = path.startsWith(`${template}/`) ? path.slice(template.length + 1) : ''
    return post && !get && name && !name.includes('/') ? [{ name, operation: post }] : []
  })

export const toBody = (doc: Document, operation: Operation | undefined): Schema | undefined =>
  resolve(doc, operation?.requestBody?.content?.['application/json']?.schema)

/** The fields of an item of the list that an operation answers. */
export const toColumns = (doc: Document, operation: Operation): string[] => {
  const answer = resolve(doc, operation.responses['200']?.content?.['application/json']?.schema)
  const item = resolve(doc, resolve(doc, answer?.properties?.data)?.items)
  return Object.keys(item?.properties ?? {}).filter((name) => name !== 'truncated')
}

export const toParameters = (doc: Document, operation: Operation): Parameter[] =>
  (operation.parameters ?? []).flatMap((parameter) => resolve(doc, parameter) ?? [])

export type { Document }
