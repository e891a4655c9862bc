import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readCallBody } from '../../src/graph/call-body.ts'

const python = {
  name: 'execute_python',
  input: z.strictObject({ code: z.string(), timeout_s: z.int().optional() }),
  raw: { field: 'code', language: 'python' as const },
}
const research = {
  name: 'research',
  input: z.strictObject({ question: z.string().min(1).max(20) }),
  raw: { field: 'question' },
}
const search = { name: 'search', input: z.strictObject({ pattern: z.string(), max: z.int().optional() }) }

describe('the body of a call', () => {
  test('is JSON where the tool has no raw field', () => {
    expect(readCallBody(search, ' {"pattern": "a<b"}\n')).toEqual({ ok: true, args: { pattern: 'a<b' } })
    expect(readCallBody({ ...search, input: z.strictObject({}) }, ' ')).toEqual({ ok: true, args: {} })
  })

  test.each([
    ['text', 'def main', 'the body of search is not a JSON object; send its arguments as one'],
    ['a list', '["a"]', 'the body of search is not a JSON object; send its arguments as one'],
    ['a wrong field', '{"pattern": 1}', expect.stringContaining('the arguments of search are invalid: ')],
    [
      'JSON that is too deep',
      '['.repeat(1000),
      'the body of search is not a JSON object; send its arguments as one',
    ],
  ])('is refused where it is %s and the tool has no raw field', (_, body, error) => {
    expect(readCallBody(search, body)).toEqual({ ok: false, error })
  })

  test('goes into the raw field as it is, with every sign', () => {
    const code = '\nprint("<b>&amp;</b>")\n'
    expect(readCallBody(python, code)).toEqual({ ok: true, args: { code } })
    expect(readCallBody(research, '{"a": 1}')).toEqual({ ok: true, args: { question: '{"a": 1}' } })
    expect(readCallBody(python, '{"x": "{results[0]}"}')).toEqual({
      ok: true,
      args: { code: '{"x": "{results[0]}"}' },
    })
  })

  test('is JSON too where the tool has a raw field and it is an object that fits', () => {
    expect(readCallBody(python, '{"code": "1", "timeout_s": 5}')).toEqual({
      ok: true,
      args: { code: '1', timeout_s: 5 },
    })
  })

  test('that does not fit the raw field is refused', () => {
    expect(readCallBody(research, 'a question that is too long')).toEqual({
      ok: false,
      error: expect.stringContaining('the arguments of research are invalid: '),
    })
    expect(readCallBody(research, '')).toMatchObject({ ok: false })
  })

  test('that refers to results is checked when it runs', () => {
    const args = { pattern: 'a', max: '{results[0]}' }
    expect(readCallBody(search, JSON.stringify(args))).toEqual({ ok: true, args })
    const timed = { code: '1', timeout_s: '{results[0]}' }
    expect(readCallBody(python, JSON.stringify(timed))).toEqual({ ok: true, args: timed })
  })
})
