import { readTokenCounts, type TokenCounts } from '../../../models/chat/token-counts.ts'
import type { PathName } from '../../../models/ports/model-ports.ts'
import { UnreadableResponseError } from '../../../models/ports/unreadable-response.ts'
import type { FormatPaths } from '../../../models/schemas/response-format.ts'
import { toErrorMessage } from '../../../state/errors.ts'
import { toPointer } from '../../../state/resource-schema.ts'
import { type CompiledExpression, compileExpression, readStep } from '../expressions/expression.ts'

/** Counts that cannot be read do not make a response unreadable. */
const evaluateOrNull = (expression: CompiledExpression | undefined, data: unknown): unknown => {
  try {
    return expression?.evaluate(data)
  } catch {
    return null
  }
}

/** The JSON pointer of the first step that is missing; null when the path has more than members and indexes. */
const findMissingStep = ({ steps }: CompiledExpression, data: unknown): string | null => {
  let value = data
  let pointer = ''
  for (const step of steps ?? []) {
    value = readStep(value, step)
    pointer += toPointer([step])
    if (value === null) return pointer
  }
  return null
}

const compileAll = <Name extends string>(texts: Partial<Record<Name, string | undefined>>) =>
  new Map(
    Object.entries<string | undefined>(texts).flatMap(([name, text]) =>
      text === undefined ? [] : [[name as Name, compileExpression(text)]],
    ),
  )

const compileCounts = (usage: FormatPaths['usage']): ((data: unknown) => TokenCounts) => {
  if (typeof usage === 'string') {
    const expression = compileExpression(usage)
    return (data) => {
      const fields = evaluateOrNull(expression, data)
      return readTokenCounts((name) => readStep(fields, name))
    }
  }
  const expressions = compileAll(usage ?? {})
  return (data) => readTokenCounts((name) => evaluateOrNull(expressions.get(name), data))
}

const mediaPaths: readonly PathName[] = [
  'images',
  'video',
  'audio',
  'embedding',
  'ranking',
  'job_id',
  'status',
]

/** Throws JmesPathError when a path is not an expression. */
export const compilePaths = ({ usage, ...paths }: FormatPaths) => {
  const expressions = compileAll<PathName>(paths)
  return {
    /** Whether there is a path for media, vectors, rankings or jobs. */
    hasMediaPaths: mediaPaths.some((name) => expressions.has(name)),
    has: (name: PathName): boolean => expressions.has(name),
    /** The value of a path; null when it finds nothing, or there is no such path. */
    find: (name: PathName, data: unknown): unknown => {
      const expression = expressions.get(name)
      try {
        return expression?.evaluate(data) ?? null
      } catch (error) {
        const message = toErrorMessage(error)
        throw new UnreadableResponseError(name, `${name} (${expression?.text}) cannot be applied: ${message}`)
      }
    },
    counts: compileCounts(usage),
    /** For messages: the path, and the first step that is missing in the data. */
    describe: (name: PathName, data: unknown): string => {
      const expression = expressions.get(name)
      if (expression === undefined) return name
      const missing = data === undefined ? null : findMissingStep(expression, data)
      return `${name} (${expression.text})${missing === null ? '' : `: there is no ${missing}`}`
    },
  }
}
/** The paths of a format, compiled. */
export type CompiledPaths = ReturnType<typeof compilePaths>
