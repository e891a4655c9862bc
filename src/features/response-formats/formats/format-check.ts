import { isJsonObject, parseJsonOrText } from '../../../infra/lib/json-text.ts'
import type { CanonicalResult } from '../../../models/ports/model-ports.ts'
import type { FormatInput, FormatPaths, FormatSample } from '../../../models/schemas/response-format.ts'
import { toErrorMessage } from '../../../state/errors.ts'
import { type FieldError, toPointer } from '../../../state/resource-schema.ts'
import { cutText } from '../../../state/text/cut-text.ts'
import { compileExpression, JmesPathError } from '../expressions/expression.ts'
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

const toExcerpt = (value: unknown): string => cutText(JSON.stringify(value) ?? 'nothing', 200)

/** Differences from the expected value. Members that are not named may have any value; lists must have the same length. */
const findDifferences = (expected: unknown, actual: unknown, pointer: string): FieldError[] => {
  // arguments of calls are JSON text; a sample may give them as an object
  const fields = typeof actual === 'string' ? parseJsonOrText(actual) : actual
  if (Array.isArray(expected) && Array.isArray(actual) && actual.length === expected.length)
    return expected.flatMap((item, at) => findDifferences(item, actual[at], `${pointer}/${at}`))
  if (isJsonObject(expected) && isJsonObject(fields))
    return Object.entries(expected).flatMap(([name, item]) =>
      findDifferences(item, fields[name], pointer + toPointer([name])),
    )
  if (expected === actual) return []
  return [{ pointer, detail: `expected ${toExcerpt(expected)}, found ${toExcerpt(actual)}` }]
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
  const counts = typeof usage === 'object' ? Object.entries(usage) : []
  return [
    ...Object.entries(typeof usage === 'string' ? { ...paths, usage } : paths),
    ...counts.map(([name, text]) => [`usage/${name}`, text] as const),
  ].flatMap(([name, text]) => findExpressionErrors(text, `${pointer}/${name}`))
}

/** Paths that every response of the category needs. */
const findMissingPaths = ({ category, paths, stream, poll }: FormatInput): FieldError[] => {
  const needed = listRequiredPaths(category)
  const lacks = (some: FormatPaths): boolean => needed.every((name) => some[name] === undefined)
  const needs = `of category ${category} needs a path for ${needed.join(' or ')}`
  const errors: FieldError[] = []
  if (lacks(paths) && poll?.content === undefined)
    errors.push({ pointer: '/paths', detail: `a format ${needs}` })
  if (stream != null && lacks(stream.paths))
    errors.push({ pointer: '/stream/paths', detail: `a stream ${needs}` })
  if (stream != null && stream.done === undefined && stream.paths.finish === undefined) {
    const detail = 'give this or stream.done: without either, an interrupted stream looks complete'
    errors.push({ pointer: '/stream/paths/finish', detail })
  }
  return errors
}

const findPollErrors = ({ poll, paths }: FormatInput): FieldError[] => {
  if (poll == null) return []
  const fields = ['job_id', 'model']
  const both = poll.done.find((word) => poll.failed.includes(word))
  return [
    ...(['job_id', 'status'] as const)
      .filter((name) => paths[name] === undefined)
      .map((name) => ({
        pointer: `/paths/${name}`,
        detail: `a response that is polled needs a path for ${name}`,
      })),
    ...(['path', 'content'] as const).flatMap((name) =>
      [...(poll[name] ?? '').matchAll(/\{\{([^{}]*)\}\}/g)]
        .map(([, text = '']) => text.trim())
        .filter((text) => !fields.includes(text))
        .map((text) => ({
          pointer: `/poll/${name}`,
          detail: `there is no field ${text.slice(0, 100)}; there are ${fields.join(', ')}`,
        })),
    ),
    ...(both === undefined ? [] : [{ pointer: '/poll/failed', detail: `${both} is in poll.done as well` }]),
  ]
}

const findSchemaErrors = ({ schema }: FormatInput): FieldError[] => {
  try {
    if (schema != null) compileSchema(schema)
    return []
  } catch (error) {
    return [{ pointer: '/schema', detail: `this is not a JSON Schema: ${toErrorMessage(error)}` }]
  }
}

/** All errors of a format, with JSON pointers into it. None: the format is valid and reads each sample as expected. */
export const checkFormat = (format: FormatInput): FieldError[] => {
  const requestErrors = format.request == null ? [] : findTemplateErrors(format.request)
  const errors = [
    ...requestErrors.map(({ pointer, detail }) => ({ pointer: `/request${pointer}`, detail })),
    ...findPathErrors(format.paths, '/paths'),
    ...findPathErrors(format.stream?.paths ?? {}, '/stream/paths'),
    ...findMissingPaths(format),
    ...findPollErrors(format),
    ...findSchemaErrors(format),
  ]
  if (errors.length > 0) return errors
  return format.samples.flatMap((sample, at) =>
    findSampleErrors(sample, testFormat(format, sample.raw), `/samples/${at}`),
  )
}
