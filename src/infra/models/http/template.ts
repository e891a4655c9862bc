import { type RequestTemplate, requestTemplateSchema } from '../../../state/registry/response-format.ts'
import type { Json } from '../../../state/runtime-state.ts'
import { escapePointer } from '../../formats/paths.ts'
import { knownFields } from './canonical.ts'
import { renderText, renderTree, TemplateFailure, type Tree, wordsOf } from './render.ts'
import { compileText, type Text, TextFault } from './text.ts'

/**
 * Request templates: JSON in which a text that is wholly `{{expression}}` becomes that value (its member is left out
 * where it is null) and a text with `{{…}}` inside is joined. Expressions are JMESPath over the canonical request
 * (canonical.ts). The key is never part of what they see: `{{key}}` is a place of its own, in headers only.
 */

export type TemplateFault = { pointer: string; detail: string }

export type Rendered = {
  method: 'POST' | 'PUT' | 'GET'
  /** Begins with a slash unless it is empty; may end with a query. */
  path: string
  headers: Record<string, string>
  body: string | null
}
export type CompiledTemplate = {
  /** Top-level fields that the template makes use of. */
  uses: ReadonlySet<string>
  /** Whether the key stands in one of its headers. */
  holdsKey: boolean
  /** Throws TemplateFailure. `key` goes into headers and nowhere else; without one, theirs are left out. */
  render(data: Readonly<Record<string, unknown>>, key: string): Rendered
}

type Wrapper = {
  method: Rendered['method']
  path: string
  stream_path?: string | undefined
  headers: Record<string, string>
  body: Json
}

const mostDepth = 64
const mostCharacters = 256 * 1024
const mostTexts = 2000
const [wrapperSchema] = requestTemplateSchema.options
/** Names of the connection itself, and what is not ours to let data set. */
const reservedHeaders =
  /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|proxy-.*)$/i

const step = (name: string | number): string => `/${escapePointer(String(name).slice(0, 200))}`

const isObject = (value: Json): value is { [name: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The template in its full form; a body alone is one without the other fields. */
const wrapperOf = (template: RequestTemplate, faults: TemplateFault[]): Wrapper | null => {
  const json = template as Json
  if (!isObject(json) || !Object.hasOwn(json, 'body'))
    return { method: 'POST', path: '', headers: {}, body: json }
  const parsed = wrapperSchema.safeParse(json)
  if (parsed.success) return parsed.data as Wrapper
  for (const issue of parsed.error.issues) {
    const pointer = issue.path.map((one) => step(String(one))).join('')
    if (issue.code !== 'unrecognized_keys') faults.push({ pointer, detail: issue.message })
    else
      for (const key of issue.keys)
        faults.push({
          pointer: pointer + step(key),
          detail: 'unknown field; there are: method, path, stream_path, headers, body',
        })
  }
  return null
}

type Compiler = {
  faults: TemplateFault[]
  uses: Set<string>
  text(text: string, pointer: string, mayHoldKey?: boolean): Text
}

const createCompiler = (known: ReadonlySet<string>): Compiler => {
  const faults: TemplateFault[] = []
  const uses = new Set<string>()
  let texts = 0
  const text = (source: string, pointer: string, mayHoldKey = false): Text => {
    texts += 1
    if (texts === mostTexts + 1)
      faults.push({ pointer, detail: `the template has more than ${mostTexts} texts` })
    try {
      const compiled = compileText(source, { known, mayHoldKey })
      for (const name of compiled.uses) uses.add(name)
      return compiled
    } catch (error) {
      if (!(error instanceof TextFault)) throw error
      faults.push({ pointer, detail: error.message })
      return { pieces: [], uses: new Set() }
    }
  }
  return { faults, uses, text }
}

const compileTree = (value: Json, pointer: string, compiler: Compiler, depth = 0): Tree => {
  if (depth > mostDepth) {
    compiler.faults.push({
      pointer: pointer.slice(0, 200),
      detail: `is nested deeper than ${mostDepth} levels`,
    })
    return { kind: 'constant', value: null }
  }
  if (typeof value === 'string' && value.includes('{{')) {
    return { kind: 'text', pointer, text: compiler.text(value, pointer) }
  }
  if (Array.isArray(value)) {
    return {
      kind: 'list',
      items: value.map((item, index) => compileTree(item, pointer + step(index), compiler, depth + 1)),
    }
  }
  if (!isObject(value)) return { kind: 'constant', value }
  const members = Object.entries(value).map(([name, member]) => ({
    name,
    tree: compileTree(member, pointer + step(name), compiler, depth + 1),
  }))
  return { kind: 'object', members }
}

/** A value in a path: one segment or one value of a query, whatever it holds. */
const segmentOf =
  (pointer: string) =>
  (value: Json): string => {
    const words = wordsOf(value)
    if (words === '' || words === '.' || words === '..') {
      throw new TemplateFailure(
        pointer,
        `gives ${words === '' ? 'nothing' : `"${words}"`}, which no address can hold`,
      )
    }
    return encodeURIComponent(words)
  }

/** A compiled path over `known`, for requests and polls alike. */
export const renderPath = (text: Text, data: unknown, pointer: string): string => {
  const path = wordsOf(renderText(text, data, pointer, { encode: segmentOf(pointer) }))
  return path === '' || /^[/?]/.test(path) ? path : `/${path}`
}

const hasKey = ({ pieces }: Text): boolean => pieces.some(({ kind }) => kind === 'key')

const compile = (
  template: RequestTemplate,
): { compiled: CompiledTemplate; faults: TemplateFault[] } | { compiled: null; faults: TemplateFault[] } => {
  const compiler = createCompiler(knownFields)
  const { faults } = compiler
  const wrapper = wrapperOf(template, faults)
  if (wrapper === null) return { compiled: null, faults }
  if (JSON.stringify(template).length > mostCharacters) {
    return {
      compiled: null,
      faults: [{ pointer: '', detail: `is longer than ${mostCharacters} characters` }],
    }
  }
  const bare = !isObject(template as Json) || !Object.hasOwn(template as object, 'body')
  const body = compileTree(wrapper.body, bare ? '' : '/body', compiler)
  const path = compiler.text(wrapper.path, '/path')
  const streamPath =
    wrapper.stream_path === undefined ? path : compiler.text(wrapper.stream_path, '/stream_path')
  const headers = Object.entries(wrapper.headers).map(([name, source]) => {
    const pointer = `/headers${step(name)}`
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name))
      faults.push({ pointer, detail: 'is no name of a header' })
    else if (reservedHeaders.test(name))
      faults.push({ pointer, detail: 'this header is set by the connection' })
    return { name: name.toLowerCase(), pointer, text: compiler.text(source, pointer, true) }
  })
  const holdsKey = headers.some(({ text }) => hasKey(text))

  const render: CompiledTemplate['render'] = (data, key) => {
    const value = renderTree(body, data)
    const filled = headers.flatMap(({ name, pointer, text }) => {
      if (key === '' && hasKey(text)) return []
      const words = wordsOf(renderText(text, data, pointer, { key }))
      return words === '' ? [] : [[name, words] as const]
    })
    const [chosen, pointer] = data.stream === true ? [streamPath, '/stream_path'] : [path, '/path']
    return {
      method: wrapper.method,
      path: renderPath(chosen, data, pointer),
      headers: Object.fromEntries(filled),
      body: value === undefined || wrapper.method === 'GET' ? null : JSON.stringify(value),
    }
  }
  return {
    faults,
    compiled: { uses: compiler.uses, holdsKey, render },
  }
}

/** Throws TemplateFailure for a template that `templateFaults` has something against. */
export const compileTemplate = (template: RequestTemplate): CompiledTemplate => {
  const { compiled, faults } = compile(template)
  const [fault] = faults
  if (fault !== undefined || compiled === null)
    throw new TemplateFailure(fault?.pointer ?? '', fault?.detail ?? 'is no template')
  return compiled
}

/** What does not parse, and fields that there are not. Pointers begin at the template. */
export const templateFaults = (template: RequestTemplate): TemplateFault[] => compile(template).faults
