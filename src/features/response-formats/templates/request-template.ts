import type { z } from 'zod'
import { isJsonObject } from '../../../infra/lib/json-text.ts'
import { type RequestTemplate, requestTemplateSchema } from '../../../models/schemas/response-format.ts'
import type { ProviderHttpRequest } from '../../../models/transport/http-exchange.ts'
import { type FieldError, toPointer } from '../../../state/resource-schema.ts'
import type { Json } from '../../../state/runtime-state.ts'
import { encodeMultipart } from './multipart.ts'
import { templateFields } from './template-data.ts'
import {
  renderTemplateText,
  renderTemplateTree,
  TemplateError,
  type TemplateTree,
  toTemplateText,
} from './template-rendering.ts'
import { compileTemplateText, type TemplateText, TemplateTextError } from './template-text.ts'

/**
 * Request templates: JSON in which a text that is only `{{expression}}` becomes that value (its member is left out when
 * it is null) and a text with `{{…}}` inside is joined. Expressions are JMESPath over the data of template-data.ts,
 * which never has the key: `{{key}}` is a part of its own, allowed in headers only.
 */

/** An HTTP request without its host. The path begins with a slash unless it is empty, and may end with a query. */
export type RenderedRequest = Omit<ProviderHttpRequest, 'url' | 'maxRedirects'> & { path: string }
/** A template that can be rendered for any request. */
export type CompiledTemplate = {
  /** Top-level fields that the template uses. */
  uses: ReadonlySet<string>
  /** Whether one of its headers has the key. */
  holdsKey: boolean
  /** Whether the response is bytes. */
  receivesBytes: boolean
  /** Throws TemplateError. `key` goes into headers only; headers that need it are left out when it is empty. */
  render(data: Readonly<Record<string, unknown>>, key: string): RenderedRequest
}

const maxDepth = 64
const maxCharacters = 256 * 1024
/** To compile so many blocks the process for 0.2 s. */
const maxExpressions = 1000
const [wrapperSchema] = requestTemplateSchema.options
type Wrapper = z.output<typeof wrapperSchema>
/** Headers of the connection itself, which data must not set. */
const reservedHeaders =
  /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|proxy-.*)$/i

/** The template in its full form; a body alone is a template with defaults for the rest. */
const parseWrapper = (template: RequestTemplate, errors: FieldError[]): Wrapper | null => {
  const json = template as Json
  if (!isJsonObject(json) || !Object.hasOwn(json, 'body'))
    return { method: 'POST', path: '', headers: {}, body: json }
  const parsed = wrapperSchema.safeParse(json)
  if (parsed.success) return parsed.data
  for (const issue of parsed.error.issues) {
    const pointer = toPointer(issue.path)
    if (issue.code !== 'unrecognized_keys') errors.push({ pointer, detail: issue.message })
    else
      for (const key of issue.keys)
        errors.push({
          pointer: pointer + toPointer([key]),
          detail: 'unknown field; there are: method, path, stream_path, headers, encoding, receives, body',
        })
  }
  return null
}

const createCompiler = () => {
  const errors: FieldError[] = []
  const uses = new Set<string>()
  const none: TemplateText = { parts: [], uses: new Set() }
  let expressions = 0
  const text = (source: string, pointer: string, allowsKey = false): TemplateText => {
    if (expressions > maxExpressions) return none
    expressions += source.split('{{').length - 1
    if (expressions > maxExpressions) {
      errors.push({ pointer, detail: `the template has more than ${maxExpressions} expressions` })
      return none
    }
    try {
      const compiled = compileTemplateText(source, { fields: templateFields, allowsKey })
      for (const name of compiled.uses) uses.add(name)
      return compiled
    } catch (error) {
      if (!(error instanceof TemplateTextError)) throw error
      errors.push({ pointer, detail: error.message })
      return none
    }
  }
  return { errors, uses, text }
}
type Compiler = ReturnType<typeof createCompiler>

const compileTree = (value: Json, pointer: string, compiler: Compiler, depth = 0): TemplateTree => {
  if (depth > maxDepth) {
    compiler.errors.push({
      pointer: pointer.slice(0, 200),
      detail: `is nested deeper than ${maxDepth} levels`,
    })
    return { kind: 'constant', value: null }
  }
  if (typeof value === 'string' && value.includes('{{')) {
    return { kind: 'text', pointer, text: compiler.text(value, pointer) }
  }
  if (Array.isArray(value)) {
    return {
      kind: 'list',
      items: value.map((item, index) => compileTree(item, pointer + toPointer([index]), compiler, depth + 1)),
    }
  }
  if (!isJsonObject(value)) return { kind: 'constant', value }
  const members = Object.entries(value).map(([name, member]) => ({
    name,
    tree: compileTree(member, pointer + toPointer([name]), compiler, depth + 1),
  }))
  return { kind: 'object', members }
}

/** Encodes a value as one segment of a path or one value of a query. */
const createSegmentEncoder =
  (pointer: string) =>
  (value: Json): string => {
    const text = toTemplateText(value)
    if (text === '' || text === '.' || text === '..') {
      throw new TemplateError(
        pointer,
        `gives ${text === '' ? 'nothing' : `"${text}"`}, which cannot be part of a path`,
      )
    }
    return encodeURIComponent(text)
  }

/** The path of a request or a poll; starts with a slash unless it is empty or a query. Throws TemplateError. */
export const renderPath = (text: TemplateText, data: unknown, pointer: string): string => {
  const path = toTemplateText(
    renderTemplateText(text, data, pointer, { encode: createSegmentEncoder(pointer) }),
  )
  return path === '' || /^[/?]/.test(path) ? path : `/${path}`
}

const encodeBody = (
  { method, encoding }: Wrapper,
  value: Json | undefined,
): [body: RenderedRequest['body'], headers: Record<string, string>] => {
  if (value === undefined || method === 'GET') return [null, {}]
  if (encoding !== 'multipart') return [JSON.stringify(value), {}]
  if (!isJsonObject(value)) throw new TemplateError('/body', 'must be an object of form fields')
  const { body, contentType } = encodeMultipart(value as Record<string, Json>)
  return [body, { 'content-type': contentType }]
}

const hasKey = ({ parts }: TemplateText): boolean => parts.some(({ kind }) => kind === 'key')

const compileParts = (
  template: RequestTemplate,
): { compiled: CompiledTemplate; errors: FieldError[] } | { compiled: null; errors: FieldError[] } => {
  const compiler = createCompiler()
  const { errors } = compiler
  const wrapper = parseWrapper(template, errors)
  if (wrapper === null) return { compiled: null, errors }
  if (JSON.stringify(template).length > maxCharacters) {
    return { compiled: null, errors: [{ pointer: '', detail: `is longer than ${maxCharacters} characters` }] }
  }
  const bare = !isJsonObject(template as Json) || !Object.hasOwn(template as object, 'body')
  const body = compileTree(wrapper.body, bare ? '' : '/body', compiler)
  const path = compiler.text(wrapper.path, '/path')
  const streamPath =
    wrapper.stream_path === undefined ? path : compiler.text(wrapper.stream_path, '/stream_path')
  const headers = Object.entries(wrapper.headers).map(([name, source]) => {
    const pointer = toPointer(['headers', name])
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name))
      errors.push({ pointer, detail: 'is not the name of a header' })
    else if (reservedHeaders.test(name))
      errors.push({ pointer, detail: 'this header is set by the connection' })
    return { name: name.toLowerCase(), pointer, text: compiler.text(source, pointer, true) }
  })
  const holdsKey = headers.some(({ text }) => hasKey(text))

  const render: CompiledTemplate['render'] = (data, key) => {
    const value = renderTemplateTree(body, data)
    const filled = headers.flatMap(({ name, pointer, text }) => {
      if (key === '' && hasKey(text)) return []
      const headerValue = toTemplateText(renderTemplateText(text, data, pointer, { key }))
      return headerValue === '' ? [] : [[name, headerValue] as const]
    })
    const [chosen, pointer] = data.stream === true ? [streamPath, '/stream_path'] : [path, '/path']
    const [encoded, contentType] = encodeBody(wrapper, value)
    return {
      method: wrapper.method,
      path: renderPath(chosen, data, pointer),
      headers: { ...Object.fromEntries(filled), ...contentType },
      body: encoded,
    }
  }
  return {
    errors,
    compiled: { uses: compiler.uses, holdsKey, receivesBytes: wrapper.receives === 'bytes', render },
  }
}

/** Throws TemplateError for a template that `findTemplateErrors` rejects. */
export const compileTemplate = (template: RequestTemplate): CompiledTemplate => {
  const { compiled, errors } = compileParts(template)
  const [firstError] = errors
  if (firstError !== undefined || compiled === null)
    throw new TemplateError(firstError?.pointer ?? '', firstError?.detail ?? 'is not a template')
  return compiled
}

/** Syntax errors and unknown fields, with pointers into the template. */
export const findTemplateErrors = (template: RequestTemplate): FieldError[] => compileParts(template).errors
