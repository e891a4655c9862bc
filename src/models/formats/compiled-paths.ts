import { toPointer } from '../../state/resource-schema.ts'
import { type CompiledExpression, compileExpression, readStep } from '../expressions/expression.ts'
import type { PathName } from '../ports/model-ports.ts'
import { UnreadableResponseError } from '../ports/unreadable-response.ts'
import type { FormatPaths } from '../schemas/response-format.ts'
import { noTokenCounts, readTokenCount, type TokenCounts, tokenCountNames } from './token-counts.ts'

/** The paths of a format, compiled. */
export type CompiledPaths = {
  has(name: PathName): boolean
  /** Whether there is a path for media, vectors, rankings or jobs. */
  readonly hasMediaPaths: boolean
  /** The value of a path; null when it finds nothing, or there is no such path. */
  find(name: PathName, data: unknown): unknown
  counts(data: unknown): TokenCounts
  /** For messages: the path, and the first step that is missing in the data. */
  describe(name: PathName, data?: unknown): string
}

type CountPath = readonly [keyof TokenCounts, CompiledExpression]

const evaluatePath = (name: string, { text, evaluate }: CompiledExpression, data: unknown): unknown => {
  try {
    return evaluate(data)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new UnreadableResponseError(name, `${name} (${text}) cannot be applied: ${message}`)
  }
}

/** Counts that cannot be read do not make a response unreadable. */
const evaluateOrNull = ({ evaluate }: CompiledExpression, data: unknown): unknown => {
  try {
    return evaluate(data)
  } catch {
    return null
  }
}

/** The JSON pointer of the first step that is missing; null when the path has more than members and indexes. */
const findMissingStep = ({ steps }: CompiledExpression, data: unknown): string | null => {
  if (steps === null) return null
  let value = data
  let pointer = ''
  for (const step of steps) {
    value = readStep(value, step)
    pointer += toPointer([step])
    if (value === null) return pointer
  }
  return null
}

const readCounts = (value: unknown): TokenCounts => {
  if (typeof value !== 'object' || value === null) return noTokenCounts
  const fields = value as Record<string, unknown>
  const counts = { ...noTokenCounts }
  for (const name of tokenCountNames) counts[name] = readTokenCount(fields[name])
  return counts
}

const compileCounts = (usage: FormatPaths['usage']): ((data: unknown) => TokenCounts) => {
  if (usage === undefined) return () => noTokenCounts
  if (typeof usage === 'string') {
    const expression = compileExpression(usage)
    return (data) => readCounts(evaluateOrNull(expression, data))
  }
  const paths: CountPath[] = []
  for (const name of tokenCountNames) {
    const text = usage[name]
    if (text !== undefined) paths.push([name, compileExpression(text)])
  }
  return (data) => {
    let counts: TokenCounts | null = null
    for (const [name, expression] of paths) {
      const count = readTokenCount(evaluateOrNull(expression, data))
      if (count === null) continue
      counts ??= { ...noTokenCounts }
      counts[name] = count
    }
    return counts ?? noTokenCounts
  }
}

const mediaPaths: readonly PathName[] = ['images', 'video', 'embedding', 'ranking', 'job_id', 'status']

/** Throws JmesPathError when a path is not an expression. */
export const compilePaths = (paths: FormatPaths): CompiledPaths => {
  const { usage, ...others } = paths
  const expressions = new Map<PathName, CompiledExpression>()
  for (const [name, text] of Object.entries(others)) {
    if (text !== undefined) expressions.set(name as PathName, compileExpression(text))
  }
  return {
    hasMediaPaths: mediaPaths.some((name) => expressions.has(name)),
    has: (name) => (name === 'usage' ? usage !== undefined : expressions.has(name)),
    find: (name, data) => {
      const expression = expressions.get(name)
      return expression === undefined ? null : evaluatePath(name, expression, data)
    },
    counts: compileCounts(usage),
    describe: (name, data) => {
      const expression = expressions.get(name)
      if (expression === undefined) return name
      const missing = data === undefined ? null : findMissingStep(expression, data)
      return `${name} (${expression.text})${missing === null ? '' : `: there is no ${missing}`}`
    },
  }
}
