import type { Json } from '../../../state/runtime-state.ts'
import type { Text } from './text.ts'

/** Thrown where a template cannot be filled with this request. `pointer` is its place in the template. */
export class TemplateFailure extends Error {
  readonly pointer: string
  constructor(pointer: string, message: string) {
    super(message)
    this.name = 'TemplateFailure'
    this.pointer = pointer
  }
}

/** JSON with texts that are templates; `text` is null where it holds no expression. */
export type Tree =
  | { kind: 'constant'; value: Json }
  | { kind: 'text'; pointer: string; text: Text }
  | { kind: 'list'; items: readonly Tree[] }
  | { kind: 'object'; members: readonly { name: string; tree: Tree }[] }

const mostDepth = 200
/** Of all values together; an expression can double what it is given with every few characters. */
const mostValues = 1_000_000
const mostCharacters = 64 * 1024 * 1024

/** A copy that is JSON and nothing else: no functions, no inherited members, no numbers that JSON has no word for. */
const plain = (value: unknown, pointer: string): Json => {
  let left = mostValues
  let characters = mostCharacters
  const text = (one: string): string => {
    characters -= one.length
    if (characters >= 0) return one.toWellFormed()
    throw new TemplateFailure(pointer, `gives more than ${mostCharacters} characters`)
  }
  const copy = (one: unknown, depth: number): Json => {
    left -= 1
    if (left < 0) throw new TemplateFailure(pointer, `gives more than ${mostValues} values`)
    if (depth > mostDepth) throw new TemplateFailure(pointer, `gives JSON deeper than ${mostDepth} levels`)
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
  piece: Extract<Text['pieces'][number], { kind: 'value' }>,
  data: unknown,
  pointer: string,
): Json => {
  try {
    return plain(piece.expression.evaluate(data), pointer)
  } catch (error) {
    if (error instanceof TemplateFailure) throw error
    throw new TemplateFailure(pointer, error instanceof Error ? error.message : String(error))
  }
}

/** What stands in the middle of a text: nothing for null, JSON for lists and objects. */
export const wordsOf = (value: Json): string =>
  value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value)

/** A text that is one expression gives its value; one with more in it is joined, each value through `encode`. */
export const renderText = (
  { pieces }: Text,
  data: unknown,
  pointer: string,
  { key = '', encode = wordsOf }: { key?: string; encode?: (value: Json) => string } = {},
): Json => {
  const [only] = pieces
  if (pieces.length === 1 && only?.kind === 'value' && encode === wordsOf)
    return evaluate(only, data, pointer)
  return pieces
    .map((piece) => {
      if (piece.kind === 'literal') return piece.text
      return piece.kind === 'key' ? key : encode(evaluate(piece, data, pointer))
    })
    .join('')
}

/** Members and items whose expression gives null are left out; a null that stands in the template stays. */
export const renderTree = (tree: Tree, data: unknown): Json | undefined => {
  switch (tree.kind) {
    case 'constant':
      return tree.value
    case 'text':
      return renderText(tree.text, data, tree.pointer) ?? undefined
    case 'list':
      return tree.items.map((item) => renderTree(item, data)).filter((item) => item !== undefined)
    case 'object':
      return Object.fromEntries(
        tree.members.flatMap(({ name, tree: member }) => {
          const value = renderTree(member, data)
          return value === undefined ? [] : [[name, value] as const]
        }),
      )
    default:
      throw tree satisfies never
  }
}
