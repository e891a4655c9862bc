import type { FormatInput, Paths } from '../../state/registry/response-format.ts'
import { templateFaults } from '../models/http/template.ts'
import { type Fault, sampleFaults } from './expected.ts'
import { compileExpression, ExpressionFault } from './expression.ts'
import { neededBy } from './need.ts'
import { openSchema } from './schema.ts'
import { testFormat } from './test.ts'

const expressionFaults = (text: string | undefined, pointer: string): Fault[] => {
  if (text === undefined) return []
  try {
    compileExpression(text)
    return []
  } catch (error) {
    if (!(error instanceof ExpressionFault)) throw error
    return [{ pointer, detail: `${error.message} (at character ${error.position} of ${text.slice(0, 200)})` }]
  }
}

const pathFaults = ({ usage, ...paths }: Paths, pointer: string): Fault[] => {
  const counts = typeof usage === 'string' ? { usage } : {}
  const single = { ...paths, ...counts }
  const each = typeof usage === 'object' ? usage : {}
  return [
    ...Object.entries(single).flatMap(([name, text]) => expressionFaults(text, `${pointer}/${name}`)),
    ...Object.entries(each).flatMap(([name, text]) => expressionFaults(text, `${pointer}/usage/${name}`)),
  ]
}

/** Paths that answers of the category cannot do without. */
const missingFaults = ({ category, paths, stream, poll }: FormatInput): Fault[] => {
  const needed = neededBy(category)
  const lacks = (some: Paths): boolean => needed.every((name) => some[name] === undefined)
  const names = needed.join(' or ')
  const faults: Fault[] = []
  if (lacks(paths))
    faults.push({ pointer: '/paths', detail: `a format of category ${category} needs a path for ${names}` })
  if (stream != null && lacks(stream.paths)) {
    faults.push({
      pointer: '/stream/paths',
      detail: `a stream of category ${category} needs a path for ${names}`,
    })
  }
  if (stream != null && stream.done === undefined && stream.paths.finish === undefined) {
    const detail = 'give this, or stream.done: without either, a stream that was cut looks like a whole one'
    faults.push({ pointer: '/stream/paths/finish', detail })
  }
  for (const name of ['job_id', 'status'] as const) {
    if (poll == null || paths[name] !== undefined) continue
    faults.push({
      pointer: `/paths/${name}`,
      detail: `an answer that is polled for needs a path for ${name}`,
    })
  }
  return faults
}

const pollFaults = ({ poll }: FormatInput): Fault[] => {
  if (poll == null) return []
  const unknown = [...poll.path.matchAll(/\{\{(.*?)\}\}/g)]
    .map(([, text = '']) => text.trim())
    .filter((text) => text !== 'job_id' && text !== 'model')
  const faults = unknown.map((text) => ({
    pointer: '/poll/path',
    detail: `there is no field ${text.slice(0, 100)}; there are job_id, model`,
  }))
  const both = poll.done.find((word) => poll.failed.includes(word))
  if (both !== undefined) faults.push({ pointer: '/poll/failed', detail: `${both} is in poll.done as well` })
  return faults
}

const schemaFaults = ({ schema }: FormatInput): Fault[] => {
  if (schema == null) return []
  try {
    openSchema(schema)
    return []
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error)
    return [{ pointer: '/schema', detail: `this is no JSON Schema: ${said}` }]
  }
}

/** Everything that is wrong with a format, by JSON pointers into it. None: every one of its samples is read as expected. */
export const checkFormat = (format: FormatInput): Fault[] => {
  const faults = [
    ...(format.request == null
      ? []
      : templateFaults(format.request).map(({ pointer, detail }) => ({
          pointer: `/request${pointer}`,
          detail,
        }))),
    ...pathFaults(format.paths, '/paths'),
    ...(format.stream == null ? [] : pathFaults(format.stream.paths, '/stream/paths')),
    ...missingFaults(format),
    ...pollFaults(format),
    ...schemaFaults(format),
  ]
  if (faults.length > 0) return faults
  return format.samples.flatMap((sample, at) =>
    sampleFaults(sample, testFormat(format, sample.raw), `/samples/${at}`),
  )
}
