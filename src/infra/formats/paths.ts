import type { Paths } from '../../state/registry/response-format.ts'
import type { PathName } from '../models/ports.ts'
import { Unreadable } from '../models/unreadable.ts'
import { compileExpression, type Expression, stepInto } from './expression.ts'
import { type Counts, countNames, countOf, noCounts } from './usage.ts'

/** The paths of a format, compiled. */
export type Finder = {
  has(name: PathName): boolean
  /** Whether there is any path beside those of a conversation. */
  readonly hasMore: boolean
  /** What a path finds; null: nothing, or there is no such path. */
  find(name: PathName, data: unknown): unknown
  counts(data: unknown): Counts
  /** For people: the path, and where in the data it leads nowhere. */
  describe(name: PathName, data?: unknown): string
}

type CountPath = readonly [keyof Counts, Expression]

const evaluate = (name: string, { text, evaluate }: Expression, data: unknown): unknown => {
  try {
    return evaluate(data)
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error)
    throw new Unreadable(name, `${name} (${text}) cannot be applied: ${said}`)
  }
}

/** Counts that cannot be read spoil no answer. */
const leniently = ({ evaluate }: Expression, data: unknown): unknown => {
  try {
    return evaluate(data)
  } catch {
    return null
  }
}

export const escapePointer = (step: string | number): string =>
  String(step).replaceAll('~', '~0').replaceAll('/', '~1')

/** The JSON pointer of the first step that leads nowhere, or null when the path is no plain one. */
const breakOf = ({ steps }: Expression, data: unknown): string | null => {
  if (steps === null) return null
  let value = data
  let pointer = ''
  for (const step of steps) {
    value = stepInto(value, step)
    pointer += `/${escapePointer(step)}`
    if (value === null) return pointer
  }
  return null
}

const countsIn = (found: unknown): Counts => {
  if (typeof found !== 'object' || found === null) return noCounts
  const fields = found as Record<string, unknown>
  const counts = { ...noCounts }
  for (const name of countNames) counts[name] = countOf(fields[name])
  return counts
}

const openCounts = (usage: Paths['usage']): ((data: unknown) => Counts) => {
  if (usage === undefined) return () => noCounts
  if (typeof usage === 'string') {
    const expression = compileExpression(usage)
    return (data) => countsIn(leniently(expression, data))
  }
  const paths: CountPath[] = []
  for (const name of countNames) {
    const text = usage[name]
    if (text !== undefined) paths.push([name, compileExpression(text)])
  }
  return (data) => {
    let counts: Counts | null = null
    for (const [name, expression] of paths) {
      const count = countOf(leniently(expression, data))
      if (count === null) continue
      counts ??= { ...noCounts }
      counts[name] = count
    }
    return counts ?? noCounts
  }
}

const more: readonly PathName[] = ['images', 'video', 'embedding', 'ranking', 'job_id', 'status']

/** Throws ExpressionFault where a path is no expression. */
export const openPaths = (paths: Paths): Finder => {
  const { usage, ...others } = paths
  const expressions = new Map<PathName, Expression>()
  for (const [name, text] of Object.entries(others)) {
    if (text !== undefined) expressions.set(name as PathName, compileExpression(text))
  }
  return {
    hasMore: more.some((name) => expressions.has(name)),
    has: (name) => (name === 'usage' ? usage !== undefined : expressions.has(name)),
    find: (name, data) => {
      const expression = expressions.get(name)
      return expression === undefined ? null : evaluate(name, expression, data)
    },
    counts: openCounts(usage),
    describe: (name, data) => {
      const expression = expressions.get(name)
      if (expression === undefined) return name
      const missing = data === undefined ? null : breakOf(expression, data)
      return `${name} (${expression.text})${missing === null ? '' : `: there is no ${missing}`}`
    },
  }
}
