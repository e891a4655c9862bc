import { toErrorMessage } from '../../../state/errors.ts'
import type { Json } from '../../../state/runtime-state.ts'
import type { TemplateText } from './template-text.ts'

/** The template cannot be rendered for this request. `pointer` points into the template. */
export class TemplateError extends Error {
  readonly pointer: string
  constructor(pointer: string, message: string) {
    super(message)
    this.name = 'TemplateError'
    this.pointer = pointer
  }
}

/** A compiled template: constant JSON, texts with expressions, lists and objects. */
export type TemplateTree =
  | { kind: 'constant'; value: Json }
  | { kind: 'text'; pointer: string; text: TemplateText }
  | { kind: 'list'; items: readonly TemplateTree[] }
  | { kind: 'object'; members: readonly { name: string; tree: TemplateTree }[] }

const maxDepth = 200
/** Of all values together: an expression can double its input with every few characters. */
const maxValues = 1_000_000
const maxCharacters = 64 * 1024 * 1024

/** A copy that is plain JSON: no functions, no inherited members, no infinite numbers. */
const toPlainJson = (value: unknown, pointer: string): Json => {
  let remaining = maxValues
  let characters = maxCharacters
  const text = (one: string): string => {
    characters -= one.length
    if (characters >= 0) return one.toWellFormed()
    throw new TemplateError(pointer, `gives more than ${maxCharacters} characters`)
  }
  const copy = (one: unknown, depth: number): Json => {
    remaining -= 1
    if (remaining < 0) throw new TemplateError(pointer, `gives more than ${maxValues} values`)
    if (depth > maxDepth) throw new TemplateError(pointer, `gives JSON deeper than ${maxDepth} levels`)
    if (typeof one === 'string') return text(one)
    if (typeof one === 'number') return Number.isFinite(one) ? one : null
    if (typeof one === 'boolean') return one
    if (Array.isArray(one)) return one.map((item) => copy(item, depth + 1))
    if (typeof one !== 'object' || one === null) return null
    return Object.fromEntries(
      Object.entries(one).map(([name, member]) => [text(name), copy(member, depth + 1)]),
    )
  }
  return copy(value, 0)
}

const evaluate = (
  part: Extract<TemplateText['parts'][number], { kind: 'value' }>,
  data: unknown,
  pointer: string,
): Json => {
  try {
    return toPlainJson(part.expression.evaluate(data), pointer)
  } catch (error) {
    if (error instanceof TemplateError) throw error
    throw new TemplateError(pointer, toErrorMessage(error))
  }
}

/** A value inside a text: nothing for null, JSON for lists and objects. */
export const toTemplateText = (value: Json): string =>
  value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value)

/** A text that is one expression gives its value; any other text is joined, each value through `encode`. */
export const renderTemplateText = (
  { parts }: TemplateText,
  data: unknown,
  pointer: string,
  { key = '', encode = toTemplateText }: { key?: string; encode?: (value: Json) => string } = {},
): Json => {
  const [only] = parts
  if (parts.length === 1 && only?.kind === 'value' && encode === toTemplateText)
    return evaluate(only, data, pointer)
  return parts
    .map((part) => {
      if (part.kind === 'literal') return part.text
      return part.kind === 'key' ? key : encode(evaluate(part, data, pointer))
    })
    .join('')
}

/** Members and items whose expression gives null are left out; a null written in the template stays. */
export const renderTemplateTree = (tree: TemplateTree, data: unknown): Json | undefined => {
  switch (tree.kind) {
    case 'constant':
      return tree.value
    case 'text':
      return renderTemplateText(tree.text, data, tree.pointer) ?? undefined
    case 'list':
      return tree.items.map((item) => renderTemplateTree(item, data)).filter((item) => item !== undefined)
    case 'object':
      return Object.fromEntries(
        tree.members.flatMap(({ name, tree: member }) => {
          const value = renderTemplateTree(member, data)
          return value === undefined ? [] : [[name, value] as const]
        }),
      )
    default:
      throw tree satisfies never
  }
}
