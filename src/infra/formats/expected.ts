import type { Sample } from '../../state/registry/response-format.ts'
import type { CanonicalResult } from '../models/ports.ts'
import { escapePointer } from './paths.ts'
import type { Tested } from './test.ts'

export type Fault = { pointer: string; detail: string }

/** The parts that a sample may expect: those of the result, by the names of the paths too. */
const partsOf = (result: CanonicalResult): Record<string, unknown> => ({
  ...result,
  embedding: result.embeddings,
  job_id: result.job?.id ?? null,
  status: result.job?.status ?? null,
})

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 200 ? `${text.slice(0, 199)}…` : text
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const differs = (pointer: string, expected: unknown, found: unknown): Fault[] => [
  { pointer, detail: `expected ${shown(expected)}, found ${shown(found)}` },
]

/** Where something is not as expected. Members that are not named may be anything; lists must be of one length. */
const differences = (expected: unknown, found: unknown, pointer: string): Fault[] => {
  if (Array.isArray(expected)) {
    if (!Array.isArray(found) || found.length !== expected.length) return differs(pointer, expected, found)
    return expected.flatMap((item, at) => differences(item, found[at], `${pointer}/${at}`))
  }
  if (isObject(expected)) {
    // arguments of calls are JSON text; a sample may show them as the object that they are
    const fields = typeof found === 'string' ? parsed(found) : found
    if (!isObject(fields)) return differs(pointer, expected, found)
    return Object.entries(expected).flatMap(([name, item]) =>
      differences(item, fields[name], `${pointer}/${escapePointer(name)}`),
    )
  }
  return expected === found ? [] : differs(pointer, expected, found)
}

/** What of a sample did not come out as expected. `pointer` is the sample's own. */
export const sampleFaults = ({ expected }: Sample, tested: Tested, pointer: string): Fault[] => {
  if (!tested.ok) {
    const { place, detail } = tested
    const said = tested.error
    if (said !== undefined && Object.hasOwn(expected, 'error')) {
      return differences(expected.error, said, `${pointer}/expected/error`)
    }
    return [{ pointer: `${pointer}/raw`, detail: `cannot be read at ${place || 'its root'}: ${detail}` }]
  }
  const parts = partsOf(tested.parsed)
  return Object.entries(expected).flatMap(([name, value]) => {
    const at = `${pointer}/expected/${escapePointer(name)}`
    if (name === 'error') return [{ pointer: at, detail: 'the answer was read as a good one' }]
    if (Object.hasOwn(parts, name)) return differences(value, parts[name], at)
    return [{ pointer: at, detail: `there is no such part; there are ${Object.keys(parts).join(', ')}` }]
  })
}
