import * as jmespath from '@jmespath-community/jmespath'
import type { Json } from '../../state/runtime-state.ts'
import { closureOf, elementOf, memberOf, type Node } from './walk.ts'

/** JMESPath, parsed and compiled once. */

export type Expression = {
  text: string
  /** What it gives; null where there is nothing. Throws where a function is given what it cannot work on. */
  evaluate(data: unknown): unknown
  /** Members and indexes from the root, where that is all there is to it. */
  steps: readonly Step[] | null
}
export type Step = string | number

/** A function beside those of JMESPath. Its arguments may be any JSON; it must return JSON. */
export type ExtraFunction = (...values: readonly Json[]) => Json

/** Thrown where a text is no expression. `position` counts characters from 0. */
export class ExpressionFault extends Error {
  readonly position: number
  constructor(message: string, position: number) {
    super(message)
    this.name = 'ExpressionFault'
    this.position = position
  }
}

type Interpreter = typeof jmespath.TreeInterpreter

const fromJson: ExtraFunction = (text) => {
  if (typeof text !== 'string') return text ?? null
  try {
    return JSON.parse(text) as Json
  } catch {
    return null
  }
}
const toJson: ExtraFunction = (value) => JSON.stringify(value ?? null)
/** JSON out of and into texts; what is no JSON gives null. */
const ownFunctions: Readonly<Record<string, { arity: number; call: ExtraFunction }>> = {
  from_json: { arity: 1, call: fromJson },
  to_json: { arity: 1, call: toJson },
}

export type ExtraFunctions = typeof ownFunctions

/** One of our own: functions are registered with an interpreter, and the library's is shared by the whole process. */
const createInterpreter = (functions: ExtraFunctions): Interpreter => {
  const Fresh = jmespath.TreeInterpreter.constructor as new () => Interpreter
  const interpreter = new Fresh()
  for (const [name, { arity, call }] of Object.entries(functions)) {
    const any = { types: [jmespath.TYPE_ANY] }
    interpreter.runtime.register(
      name,
      (values) => call(...(values as Json[])) as jmespath.JSONValue,
      Array.from({ length: arity }, () => any),
    )
  }
  return interpreter
}

const stepsOf = (node: Node): Step[] | null => {
  if (node.type === 'Field') return [node.name]
  if (node.type === 'Index') return [node.value]
  if (node.type !== 'Subexpression' && node.type !== 'IndexExpression') return null
  const [left, right] = [stepsOf(node.left), stepsOf(node.right)]
  return left === null || right === null ? null : [...left, ...right]
}

/** One step further; null where there is no such member, inherited ones included. */
export const stepInto = (value: unknown, step: Step): unknown =>
  typeof step === 'number' ? elementOf(value, step) : memberOf(value, step)

const follow = (steps: readonly Step[], data: unknown): unknown => {
  let value = data
  for (const step of steps) {
    value = stepInto(value, step)
    if (value === null) return null
  }
  return value
}

const functionsIn = (node: unknown): string[] => {
  if (typeof node !== 'object' || node === null) return []
  const own =
    'type' in node && node.type === 'Function' && 'name' in node && typeof node.name === 'string'
      ? [node.name]
      : []
  if ('type' in node && node.type === 'Literal') return []
  return [...own, ...Object.values(node).flatMap(functionsIn)]
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const failureOf = (text: string): string | null => {
  try {
    jmespath.compile(text)
    return null
  } catch (error) {
    return messageOf(error)
  }
}

const canTokenize = (text: string): boolean => {
  try {
    jmespath.tokenize(text)
    return true
  } catch {
    return false
  }
}

/** The parser does not say where it stopped: it is the first token after which the text is wrong and not just too short. */
const faultPosition = (text: string): number => {
  if (!canTokenize(text)) {
    for (let length = text.length - 1; length > 0; length -= 1) {
      if (canTokenize(text.slice(0, length))) return length
    }
    return 0
  }
  const starts = jmespath.tokenize(text).map(({ start }) => start)
  const at = starts.findIndex((_, index) => {
    const failure = failureOf(text.slice(0, starts[index + 1] ?? text.length))
    return failure !== null && !failure.includes('EOF')
  })
  return starts[at] ?? text.length
}

/** Throws ExpressionFault. */
export const compileExpression = (text: string, functions: ExtraFunctions = ownFunctions): Expression => {
  const failure = failureOf(text)
  if (failure !== null) throw new ExpressionFault(failure, faultPosition(text))
  const node = jmespath.compile(text)
  const interpreter = createInterpreter(functions)
  const unknown = functionsIn(node).find((name) => !interpreter.runtime.isRegistered(name))
  if (unknown !== undefined) {
    throw new ExpressionFault(`there is no function ${unknown}()`, Math.max(0, text.indexOf(`${unknown}(`)))
  }
  const walk = (data: unknown): unknown => interpreter.search(node, data as jmespath.JSONValue) ?? null
  const closure = closureOf(node, interpreter.runtime.callFunction.bind(interpreter.runtime))
  const steps = stepsOf(node)
  return { text, steps, evaluate: steps === null ? (closure ?? walk) : (data) => follow(steps, data) }
}
