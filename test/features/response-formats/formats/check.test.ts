import { describe, expect, test } from 'vitest'
import { checkFormat } from '../../../../src/features/response-formats/formats/format-check.ts'
import { testFormat } from '../../../../src/features/response-formats/formats/format-test.ts'
import type { FormatInput } from '../../../../src/models/schemas/response-format.ts'

const format = (more: Partial<FormatInput> = {}): FormatInput => ({
  name: 'odd',
  category: 'text',
  paths: { text: 'says', usage: { prompt_tokens: 'in', completion_tokens: 'out' } },
  samples: [],
  ...more,
})
const pointers = (more: Partial<FormatInput>): string[] =>
  checkFormat(format(more)).map(({ pointer }) => pointer)

describe('a format is refused', () => {
  test('with a path that does not parse, in the words of the parser and with the position', () => {
    const errors = checkFormat(format({ paths: { text: 'a..b', usage: { prompt_tokens: 'x[' } } }))
    expect(errors.map(({ pointer }) => pointer)).toEqual(['/paths/text', '/paths/usage/prompt_tokens'])
    expect(errors[0]?.detail).toMatch(/unexpected token.*character 2/)
    expect(pointers({ paths: { text: 'nope(a)', usage: 'b c' } })).toEqual(['/paths/text', '/paths/usage'])
    const stream = { format: 'sse' as const, done: 'x', paths: { text: '[' } }
    expect(pointers({ stream })).toEqual(['/stream/paths/text'])
  })

  test('with a template that names an unknown field', () => {
    const [error] = checkFormat(format({ request: { body: { q: '{{mesages}}' } } }))
    expect(error?.pointer).toBe('/request/body/q')
    expect(error?.detail).toContain('mesages')
  })

  test('without the paths that its category, its stream or its polling needs', () => {
    expect(pointers({ paths: { model: 'm' } })).toEqual(['/paths'])
    expect(pointers({ category: 'embedding' })).toEqual(['/paths'])
    const stream = { format: 'ndjson' as const, paths: { text: 't' } }
    expect(pointers({ stream })).toEqual(['/stream/paths/finish'])
    const poll = {
      path: '/{{job}}/{{job_id}}',
      method: 'GET',
      interval_ms: 1,
      done: ['ok'],
      failed: ['ok'],
    } as const
    expect(pointers({ poll: { ...poll, done: ['ok'], failed: ['ok'] } })).toEqual([
      '/paths/job_id',
      '/paths/status',
      '/poll/path',
      '/poll/failed',
    ])
  })

  test('with an invalid schema', () => {
    expect(pointers({ schema: { type: 'nope' } })).toEqual(['/schema'])
    expect(pointers({ schema: { $ref: '#/$defs/gone' } })).toEqual(['/schema'])
  })

  test('with a sample that fails, naming the expected and the actual value', () => {
    const samples = [
      { raw: { says: 'hi', in: 1, out: 2 }, expected: { text: 'hi', usage: { total_tokens: 3 } } },
      { raw: { says: 'hi', in: 1, out: 2 }, expected: { text: 'ho', usage: { prompt_tokens: 9 } } },
      { raw: { said: 'hi' }, expected: { text: 'hi' } },
      { raw: { says: 'hi' }, expected: { tool_calls: [{ name: 'f' }], nope: 1, error: 'x' } },
      { raw: 'data: {}', expected: { text: 'hi' } },
    ]
    const errors = checkFormat(format({ samples }))
    expect(errors.map(({ pointer }) => pointer)).toEqual([
      '/samples/1/expected/text',
      '/samples/1/expected/usage/prompt_tokens',
      '/samples/2/raw',
      '/samples/3/expected/tool_calls',
      '/samples/3/expected/nope',
      '/samples/3/expected/error',
      '/samples/4/raw',
    ])
    expect(errors[1]?.detail).toBe('expected 9, found 1')
    expect(errors[2]?.detail).toContain('there is no /says')
  })
})

describe('trying a format', () => {
  const streamed = format({ stream: { format: 'ndjson', paths: { text: 'w', finish: 'end' } } })

  test('shows what it reads in an answer or a stream', () => {
    expect(testFormat(format(), { says: 'hi', in: 1, out: 2 })).toMatchObject({
      ok: true,
      parsed: { text: 'hi', usage: { total_tokens: 3 } },
    })
    expect(testFormat(streamed, '{"w":"a"}\n{"w":"b"}\n{"end":true}\n')).toMatchObject({
      parsed: { text: 'ab' },
    })
  })

  test.each([
    ['text', format(), { said: 1 }],
    ['finish', streamed, '{"w":"a"}\n'],
    ['/1', streamed, '{"w":"a"}\n{"w":'],
    ['error', format({ paths: { text: 'says', error: 'oops' } }), { oops: 'no' }],
    ['stream', format(), 'data: {}\n\n'],
  ])('names the position of an error: %s', (place, which, raw) => {
    expect(testFormat(which, raw)).toMatchObject({ ok: false, parsed: null, place })
  })
})
