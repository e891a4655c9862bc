import { describe, expect, test } from 'vitest'
import { type InputRequest, parseAnswer } from '../../../src/app/cli/input-prompt.ts'

const request = (schema: Record<string, string>, options: string[] = []): InputRequest => ({
  id: 'inp_1',
  question: 'Which?',
  schema,
  options,
})

describe('what is typed as an answer', () => {
  test.each([
    ['2', request({ type: 'string' }, ['red', 'blue']), 'blue'],
    ['BLUE', request({ type: 'string' }, ['red', 'blue']), 'blue'],
    ['3', request({ type: 'string' }, ['red', 'blue']), undefined],
    ['2024', request({ type: 'string' }, ['2023', '2024']), '2024'],
    ['y', request({ type: 'boolean' }), true],
    ['No', request({ type: 'boolean' }), false],
    ['perhaps', request({ type: 'boolean' }), undefined],
    [' 4.5 ', request({ type: 'number' }), 4.5],
    ['many', request({ type: 'number' }), undefined],
    ['[1, 2]', request({ type: 'array' }), [1, 2]],
    ['[1', request({ type: 'array' }), undefined],
    ['anything at all ', request({ type: 'string' }), 'anything at all'],
    ['  ', request({ type: 'string' }), undefined],
  ])('%j is parsed by the schema', (typed, asked, wanted) => {
    expect(parseAnswer(typed, asked)).toEqual(wanted)
  })
})
