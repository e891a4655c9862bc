import * as jmespath from '@jmespath-community/jmespath'
import { toErrorMessage } from '../../../state/errors.ts'
import type { Json } from '../../../state/runtime-state.ts'
import { parseExactJson } from '../../../state/text/exact-json.ts'

/** JMESPath, parsed once and evaluated by the library's own interpreter. */

/** An expression that is ready to evaluate. */
export type CompiledExpression = {
  text: string
  /** Null where there is nothing. Throws when a function gets an argument of the wrong type. */
  evaluate(data: unknown): unknown
  /** Members and indexes from the root; null when the expression has other parts too. */
  steps: readonly PathStep[] | null
}
/** The name of a member, or an index; negative indexes count from the end. */
export type PathStep = string | number

/** A function beside those of JMESPath. Its arguments may be any JSON; it must return JSON. */
export type ExtraFunction = (...values: readonly Json[]) => Json

/** Functions of one kind of expression, by name. */
export type ExtraFunctions = Readonly<Record<string, { arity: number; call: ExtraFunction }>>

type Evaluate = (data: unknown) => unknown

/** The text is not an expression. `position` counts characters from 0. */
export class JmesPathError extends Error {
  readonly position: number
  constructor(message: string, position: number) {
    super(message)
    this.name = 'JmesPathError'
    this.position = position
  }
}

type Interpreter = typeof jmespath.TreeInterpreter
type JmesPathNode = ReturnType<typeof jmespath.compile>

/** Null when the text is not JSON. Any other value is returned as it is. */
const fromJson: ExtraFunction = (text) => {
  if (typeof text !== 'string') return text ?? null
  try {
    return parseExactJson(text) as Json
  } catch {
    return null
  }
}

/** Functions that every expression has: JSON from texts and into texts. */
const jsonFunctions: ExtraFunctions = {
  from_json: { arity: 1, call: fromJson },
  to_json: { arity: 1, call: (value) => JSON.stringify(value ?? null) },
}

/** One step further. Null when there is no such member; inherited members do not count. */
export const readStep = (value: unknown, step: PathStep): unknown => {
  if (typeof value !== 'object' || value === null) return null
  if (typeof step === 'number') return Array.isArray(value) ? (value.at(step) ?? null) : null
  if (Array.isArray(value) || !Object.hasOwn(value, step)) return null
  return (value as Record<string, unknown>)[step] ?? null
}

/** No expression can contain this name. */
const ownMemberFunction = ' own member'

/**
 * The library returns inherited members such as `constructor`. Fields with such a name become a call of our function,
 * which reads own members only.
 */
const hideInheritedMembers = (nodes: readonly JmesPathNode[]): void => {
  for (const node of nodes) {
    if (node.type !== 'Field' || !(node.name in Object.prototype)) continue
    const children = [{ type: 'Current' }, { type: 'Literal', value: node.name }]
    Object.assign(node, { type: 'Function', name: ownMemberFunction, children })
  }
}

/** A separate interpreter: the functions of the library's own one are shared by the whole process. */
const createInterpreter = (functions: ExtraFunctions): Interpreter => {
  const Fresh = jmespath.TreeInterpreter.constructor as new () => Interpreter
  const interpreter = new Fresh()
  const any = { types: [jmespath.TYPE_ANY] }
  const register = (name: string, arity: number, call: (...values: readonly Json[]) => unknown): void => {
    interpreter.runtime.register(
      name,
      (values) => call(...(values as Json[])) as jmespath.JSONValue,
      Array.from({ length: arity }, () => any),
    )
  }
  for (const [name, { arity, call }] of Object.entries(functions)) register(name, arity, call)
  register(ownMemberFunction, 2, (value, name) => readStep(value, name as string))
  return interpreter
}

const toSteps = (node: JmesPathNode): PathStep[] | null => {
  if (node.type === 'Field') return [node.name]
  if (node.type === 'Index') return [node.value]
  if (node.type !== 'Subexpression' && node.type !== 'IndexExpression') return null
  const [left, right] = [toSteps(node.left), toSteps(node.right)]
  return left === null || right === null ? null : [...left, ...right]
}

const isFalse = (value: unknown): boolean =>
  value == null ||
  value === false ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value).length === 0)

/** What paths are made of (steps, `||`, `&&`, what follows them) as functions: the interpreter takes three times as long. `search` is for the rest. */
const toFunction = (node: JmesPathNode, search: (node: JmesPathNode, data: unknown) => unknown): Evaluate => {
  const steps = toSteps(node)
  if (steps !== null) return (data) => steps.reduce<unknown>((value, step) => readStep(value, step), data)
  if (node.type !== 'OrExpression' && node.type !== 'AndExpression' && node.type !== 'Subexpression')
    return (data) => search(node, data)
  const [left, right] = [toFunction(node.left, search), toFunction(node.right, search)]
  if (node.type === 'Subexpression')
    return (data) => {
      const value = left(data)
      return value === null ? null : right(value)
    }
  const isOr = node.type === 'OrExpression'
  return (data) => {
    const value = left(data)
    return isFalse(value) === isOr ? right(data) : value
  }
}

/** The nodes within a node; literals are data, so their values have none. */
const listChildren = (node: JmesPathNode): JmesPathNode[] =>
  node.type === 'Literal'
    ? []
    : Object.values(node)
        .flat()
        .filter((part): part is JmesPathNode => typeof part === 'object' && part !== null)

const listNodes = (node: JmesPathNode): JmesPathNode[] => [node, ...listChildren(node).flatMap(listNodes)]

const findError = (read: (text: string) => unknown, text: string): string | null => {
  try {
    read(text)
    return null
  } catch (error) {
    return toErrorMessage(error)
  }
}

/** The parser does not report a position: it is the first token after which the text is wrong, not just too short. */
const findErrorPosition = (text: string): number => {
  if (findError(jmespath.tokenize, text) !== null) {
    for (let length = text.length - 1; length > 0; length -= 1) {
      if (findError(jmespath.tokenize, text.slice(0, length)) === null) return length
    }
    return 0
  }
  const starts = jmespath.tokenize(text).map(({ start }) => start)
  const at = starts.findIndex((_, index) => {
    const failure = findError(jmespath.compile, text.slice(0, starts[index + 1] ?? text.length))
    return failure !== null && !failure.includes('EOF')
  })
  return starts[at] ?? text.length
}

/** Throws JmesPathError when the text is not an expression or calls a function that does not exist. */
export const compileExpression = (text: string, functions: ExtraFunctions = {}): CompiledExpression => {
  const failure = findError(jmespath.compile, text)
  if (failure !== null) throw new JmesPathError(failure, findErrorPosition(text))
  const root = jmespath.compile(text)
  const nodes = listNodes(root)
  const interpreter = createInterpreter({ ...jsonFunctions, ...functions })
  for (const node of nodes) {
    if (node.type !== 'Function' || interpreter.runtime.isRegistered(node.name)) continue
    const position = Math.max(0, text.indexOf(`${node.name}(`))
    throw new JmesPathError(`there is no function ${node.name}()`, position)
  }
  const steps = toSteps(root)
  hideInheritedMembers(nodes)
  const search = (node: JmesPathNode, data: unknown): unknown =>
    interpreter.search(node, data as jmespath.JSONValue)
  const isOfParts = nodes.every(({ type }) => type !== 'Root' && type !== 'LetExpression')
  const evaluate: Evaluate = isOfParts ? toFunction(root, search) : (data) => search(root, data)
  return { text, steps, evaluate: (data) => evaluate(data) ?? null }
}

/** The fields that an expression reads from its data directly, and the variables that it uses but does not bind. */
export type ExpressionNames = { fields: Set<string>; unbound: Set<string> }

const keepsItsInput = ({ type }: JmesPathNode): boolean =>
  type === 'Current' || type === 'Identity' || type === 'Root'

/**
 * Walks the parts of an expression that work on the whole data (`atTop`) and those that work on a part of it. What
 * follows a pipe, a dot or a projection sees a part only, so its fields are not fields of the data.
 */
const collectNames = (
  node: JmesPathNode,
  atTop: boolean,
  bound: ReadonlySet<string>,
  { fields, unbound }: ExpressionNames,
): void => {
  if (node.type === 'Field' && atTop) fields.add(node.name)
  if (node.type === 'Variable' && !bound.has(node.name)) unbound.add(node.name)
  const isProjection = /Projection$/.test(node.type)
  const isChain = ['Subexpression', 'IndexExpression', 'Pipe'].includes(node.type)
  const left = (isProjection || isChain) && 'left' in node ? node.left : null
  const stays = left === null ? node.type !== 'ExpressionReference' : isChain && keepsItsInput(left)
  for (const child of listChildren(node)) {
    const isLet = node.type === 'LetExpression' && child === node.expression
    const inner = isLet ? new Set([...bound, ...node.bindings.map(({ variable }) => variable)]) : bound
    const isTop = child === left ? atTop : stays && (atTop || left?.type === 'Root')
    collectNames(child, isTop, inner, { fields, unbound })
  }
}

/** Throws when the text is not an expression. */
export const findExpressionNames = (expression: string): ExpressionNames => {
  const names: ExpressionNames = { fields: new Set(), unbound: new Set() }
  collectNames(jmespath.compile(expression), true, new Set(), names)
  return names
}
