import { isJsonObject } from '../../../infra/lib/json-text.ts'
import { isStrictSchema } from '../../../models/chat/strict-schema.ts'
import { toErrorMessage } from '../../../state/errors.ts'
import type { Json } from '../../../state/runtime-state.ts'
import { cutText } from '../../../state/text/cut-text.ts'
import {
  type CompiledExpression,
  compileExpression,
  type ExtraFunctions,
  findExpressionNames,
  JmesPathError,
} from '../expressions/expression.ts'

/** Functions of request templates beside those of JMESPath: for shapes of vendors that paths cannot express. */

type Members = { [name: string]: Json }

/** An object or a list without its null members or items. Any other value stays as it is. */
const compact = (value: Json | undefined): Json => {
  if (Array.isArray(value)) return value.filter((one) => one !== null)
  if (!isJsonObject(value)) return value ?? null
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null))
}

/** Joins neighbors with the same `by` and concatenates their lists `list`, for vendors that require alternating turns. */
const joinNeighbours = (items: Json | undefined, by: Json | undefined, list: Json | undefined): Json => {
  if (!Array.isArray(items) || typeof by !== 'string' || typeof list !== 'string') return items ?? null
  const joined: Members[] = []
  for (const item of items) {
    if (!isJsonObject(item)) continue
    const before = joined.at(-1)
    const [own, others] = [item[list], before?.[list]]
    if (before === undefined || before[by] !== item[by] || !Array.isArray(own) || !Array.isArray(others)) {
      joined.push({ ...item })
    } else before[list] = [...others, ...own]
  }
  return joined
}

const templateFunctions: ExtraFunctions = {
  compact: { arity: 1, call: compact },
  join_neighbours: { arity: 3, call: joinNeighbours },
  /** Whether OpenAI's strict mode accepts a schema. */
  is_strict: { arity: 1, call: (schema) => isJsonObject(schema) && isStrictSchema(schema) },
}

/** A compiled text with `{{expression}}` in it. A part of kind `key` becomes the secret. */
export type TemplateText = {
  parts: readonly ({ kind: 'literal'; text: string } | { kind: 'key' } | ValuePart)[]
  uses: ReadonlySet<string>
}
type ValuePart = { kind: 'value'; expression: CompiledExpression }

/** The fields that expressions may use, and whether `{{key}}` is allowed. */
export type TemplateTextRules = { fields: ReadonlySet<string>; allowsKey: boolean }

/** The text is not a valid template. */
export class TemplateTextError extends Error {}

const quotes = new Set(["'", '"', '`'])

/** The position of the `}}` that ends the expression at `from`, outside its own braces and quotes; -1 when there is none. */
const findExpressionEnd = (text: string, from: number): number => {
  let depth = 0
  for (let at = from; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (quotes.has(character)) {
      for (at += 1; at < text.length && text.charAt(at) !== character; at += 1) {
        if (text.charAt(at) === '\\') at += 1
      }
    } else if (character === '{') depth += 1
    else if (character === '}' && depth > 0) depth -= 1
    else if (character === '}' && text.charAt(at + 1) === '}') return at
  }
  return -1
}

const compileValuePart = (
  source: string,
  { fields: allowed }: TemplateTextRules,
): { expression: CompiledExpression; fields: Set<string> } => {
  const excerpt = cutText(source, 100)
  if (source === '') throw new TemplateTextError('{{}} has no expression')
  if (source.length > 4000) throw new TemplateTextError(`{{${excerpt}}} is longer than 4000 characters`)
  try {
    const expression = compileExpression(source, templateFunctions)
    const { fields, unbound } = findExpressionNames(source)
    const [variable] = unbound
    if (variable !== undefined)
      throw new TemplateTextError(`{{${excerpt}}}: there is no variable $${variable}`)
    const unknown = [...fields].find((name) => !allowed.has(name))
    if (unknown === undefined) return { expression, fields }
    const names = [...allowed].join(', ')
    throw new TemplateTextError(`{{${excerpt}}}: there is no field ${unknown}; there are: ${names}`)
  } catch (error) {
    if (error instanceof TemplateTextError) throw error
    const position = error instanceof JmesPathError ? ` at character ${error.position}` : ''
    const message = toErrorMessage(error)
    throw new TemplateTextError(`{{${excerpt}}} is not a JMESPath expression: ${message}${position}`)
  }
}

/** Throws TemplateTextError. */
export const compileTemplateText = (text: string, rules: TemplateTextRules): TemplateText => {
  const parts: TemplateText['parts'][number][] = []
  const uses = new Set<string>()
  let at = 0
  for (;;) {
    const open = text.indexOf('{{', at)
    const literal = text.slice(at, open === -1 ? undefined : open)
    if (literal !== '') parts.push({ kind: 'literal', text: literal })
    if (open === -1) return { parts, uses }
    const close = findExpressionEnd(text, open + 2)
    if (close === -1) throw new TemplateTextError('{{ has no }}')
    const source = text.slice(open + 2, close).trim()
    if (source === 'key') {
      if (!rules.allowsKey) throw new TemplateTextError('{{key}} is allowed in headers only')
      parts.push({ kind: 'key' })
    } else {
      const { expression, fields } = compileValuePart(source, rules)
      for (const name of fields) uses.add(name)
      parts.push({ kind: 'value', expression })
    }
    at = close + 2
  }
}
