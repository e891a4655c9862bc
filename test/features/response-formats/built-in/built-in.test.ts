import { describe, expect, test } from 'vitest'
import { checkFormat } from '../../../../src/features/response-formats/formats/format-check.ts'
import { formatInputSchema } from '../../../../src/models/schemas/response-format.ts'
import { formatsWithSamples } from './samples/formats-with-samples.ts'

const cases = formatsWithSamples().map((format) => [format.name, format] as const)

describe('the built-in formats', () => {
  test.each(cases)('%s reads each of its samples', (_, format) => {
    expect(format.samples.length).toBeGreaterThan(2)
    expect(checkFormat(format)).toEqual([])
  })

  test.each(cases)('%s is what an admin could send, and comes out of the schema unchanged', (_, format) => {
    expect(formatInputSchema.parse(structuredClone(format))).toEqual(format)
  })

  test.each(cases)('%s notices when one of its samples no longer fits', (_, format) => {
    const [first] = format.samples
    if (first === undefined) throw new Error('no sample')
    const wrong = { ...first, expected: { ...first.expected, model: 'another', nonsense: 1 } }
    const errors = checkFormat({ ...format, samples: [wrong] })
    expect(errors.map(({ pointer }) => pointer).sort()).toEqual([
      '/samples/0/expected/model',
      '/samples/0/expected/nonsense',
    ])
  })
})
