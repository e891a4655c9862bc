import { parseJsonOrText } from '../../infra/lib/json-text.ts'
import { type FieldError, toPointer } from '../../state/resource-schema.ts'
import { compileExpression, JmesPathError } from '../expressions/expression.ts'
import type { CanonicalResult } from '../ports/model-ports.ts'
import type { FormatInput, FormatPaths, FormatSample } from '../schemas/response-format.ts'
import { findTemplateErrors } from '../templates/request-template.ts'
import { compileSchema } from './format-compiler.ts'
import { type FormatTestResult, testFormat } from './format-test.ts'
import { listRequiredPaths } from './required-paths.ts'

/** The parts that a sample may expect: those of the result, also under the names of the paths. */
const toParts = (result: CanonicalResult): Record<string, unknown> => ({
  ...result,
  embedding: result.embeddings,
  job_id: result.job?.id ?? null,
  status: result.job?.status ?? null,
})

const toExcerpt = (value: unknown): string => {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 200 ? `${text.slice(0, 199)}…` : text
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const toMismatch = (pointer: string, expected: unknown, actual: unknown): FieldError[] => [
  { pointer, detail: `expected ${toExcerpt(expected)}, found ${toExcerpt(actual)}` },
]

/** Differences from the expected value. Members that are not named may have any value; lists must have the same length. */
const findDifferences = (expected: unknown, actual: unknown, pointer: string): FieldError[] => {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length)
      return toMismatch(pointer, expected, actual)
    return expected.flatMap((item, at) => findDifferences(item, actual[at], `${pointer}/${at}`))
  }
  if (isObject(expected)) {
    // arguments of calls are JSON text; a sample may give them as an object
    const fields = typeof actual === 'string' ? parseJsonOrText(actual) : actual
    if (!isObject(fields)) return toMismatch(pointer, expected, actual)
    return Object.entries(expected).flatMap(([name, item]) =>
      findDifferences(item, fields[name], pointer + toPointer([name])),
    )
  }
  return expected === actual ? [] : toMismatch(pointer, expected, actual)
}

/** The parts of a sample that are not as expected. `pointer` is that of the sample. */
const findSampleErrors = (
  { expected }: FormatSample,
  tested: FormatTestResult,
  pointer: string,
): FieldError[] => {
  if (!tested.ok) {
    const { place, detail } = tested
    if (tested.error !== undefined && Object.hasOwn(expected, 'error')) {
      return findDifferences(expected.error, tested.error, `${pointer}/expected/error`)
    }
    return [{ pointer: `${pointer}/raw`, detail: `cannot be read at ${place || 'its root'}: ${detail}` }]
  }
  const parts = toParts(tested.parsed)
  return Object.entries(expected).flatMap(([name, value]) => {
    const at = pointer + toPointer(['expected', name])
    if (name === 'error') return [{ pointer: at, detail: 'the response was read as a success' }]
    if (Object.hasOwn(parts, name)) return findDifferences(value, parts[name], at)
    return [{ pointer: at, detail: `there is no such part; there are ${Object.keys(parts).join(', ')}` }]
  })
}

const findExpressionErrors = (text: string | undefined, pointer: string): FieldError[] => {
  if (text === undefined) return []
  try {
    compileExpression(text)
    return []
  } catch (error) {
    if (!(error instanceof JmesPathError)) throw error
    return [{ pointer, detail: `${error.message} (at character ${error.position} of ${text.slice(0, 200)})` }]
  }
}

const findPathErrors = ({ usage, ...paths }: FormatPaths, pointer: string): FieldError[] => {
  const counts = typeof usage === 'string' ? { usage } : {}
  const single = { ...paths, ...counts }
  const each = typeof usage === 'object' ? usage : {}
  return [
    ...Object.entries(single).flatMap(([name, text]) => findExpressionErrors(text, `${pointer}/${name}`)),
    ...Object.entries(each).flatMap(([name, text]) => findExpressionErrors(text, `${pointer}/usage/${name}`)),
  ]
}

/** Paths that every response of the category needs. */
const findMissingPaths = ({ category, paths, stream, poll }: FormatInput): FieldError[] => {
  const needed = listRequiredPaths(category)
  const lacks = (some: FormatPaths): boolean => needed.every((name) => some[name] === undefined)
  const names = needed.join(' or ')
  const errors: FieldError[] = []
  if (lacks(paths))
    errors.push({ pointer: '/paths', detail: `a format of category ${category} needs a path for ${names}` })
  if (stream != null && lacks(stream.paths)) {
    errors.push({
      pointer: '/stream/paths',
      detail: `a stream of category ${category} needs a path for ${names}`,
    })
  }
  if (stream != null && stream.done === undefined && stream.paths.finish === undefined) {
    const detail = 'give this or stream.done: without either, an interrupted stream looks complete'
    errors.push({ pointer: '/stream/paths/finish', detail })
  }
  for (const name of ['job_id', 'status'] as const) {
    if (poll == null || paths[name] !== undefined) continue
    errors.push({
      pointer: `/paths/${name}`,
      detail: `a response that is polled needs a path for ${name}`,
    })
  }
  return errors
}

const findPollErrors = ({ poll }: FormatInput): FieldError[] => {
  if (poll == null) return []
  const unknown = [...poll.path.matchAll(/\{\{(.*?)\}\}/g)]
    .map(([, text = '']) => text.trim())
    .filter((text) => text !== 'job_id' && text !== 'model')
  const errors = unknown.map((text) => ({
    pointer: '/poll/path',
    detail: `there is no field ${text.slice(0, 100)}; there are job_id, model`,
  }))
  const both = poll.done.find((word) => poll.failed.includes(word))
  if (both !== undefined) errors.push({ pointer: '/poll/failed', detail: `${both} is in poll.done as well` })
  return errors
}

const findSchemaErrors = ({ schema }: FormatInput): FieldError[] => {
  if (schema == null) return []
  try {
    compileSchema(schema)
    return []
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return [{ pointer: '/schema', detail: `this is not a JSON Schema: ${message}` }]
  }
}

/** All errors of a format, with JSON pointers into it. None: the format is valid and reads each sample as expected. */
export const checkFormat = (format: FormatInput): FieldError[] => {
  const errors = [
    ...(format.request == null
      ? []
      : findTemplateErrors(format.request).map(({ pointer, detail }) => ({
          pointer: `/request${pointer}`,
          detail,
        }))),
    ...findPathErrors(format.paths, '/paths'),
    ...(format.stream == null ? [] : findPathErrors(format.stream.paths, '/stream/paths')),
    ...findMissingPaths(format),
    ...findPollErrors(format),
    ...findSchemaErrors(format),
  ]
  if (errors.length > 0) return errors
  return format.samples.flatMap((sample, at) =>
    findSampleErrors(sample, testFormat(format, sample.raw), `/samples/${at}`),
  )
}
