import { describe, expect, test } from 'vitest'
import askUser from '../../src/tools/ask-user.tool.ts'
import { visitTool } from '../support/tool-context.ts'

const ask = (input: Record<string, unknown>, answer: unknown) =>
  visitTool(askUser, { input: { question: 'Which one?', ...input }, answer: { kind: 'answered', answer } })

describe('ask_user', () => {
  test('asks with options and writes the answer', async () => {
    const { questions, text, action, isError } = await ask({ options: ['EUR', 'USD', 'EUR'] }, 'EUR')
    expect(questions).toEqual([
      {
        question: 'Which one?',
        schema: { type: 'string', enum: ['EUR', 'USD'] },
        options: ['EUR', 'USD'],
        expires_in_ms: 604_800_000,
      },
    ])
    expect([text, isError]).toEqual(['EUR', false])
    expect(action).toMatchObject({
      summary: 'Asked "Which one?" and got "EUR"',
      result: { text: 'EUR', answer: 'EUR' },
    })
  })

  test.each([
    [undefined, { type: 'string', minLength: 1 }, 'tomorrow', 'tomorrow'],
    ['text', { type: 'string', minLength: 1 }, 'tomorrow', 'tomorrow'],
    ['number', { type: 'number' }, 12.5, '12.5'],
    ['boolean', { type: 'boolean' }, false, 'false'],
  ])('answer_type %s', async (answer_type, schema, answer, read) => {
    const { questions, text, action } = await ask({ answer_type }, answer)
    expect(questions[0]).toMatchObject({ schema, options: [] })
    expect(text).toBe(read)
    expect(action.result.answer).toBe(answer)
  })

  test('no answer in time is an error the model can act on', async () => {
    const visit = await visitTool(askUser, { input: { question: 'When?' }, answer: { kind: 'expired' } })
    expect(visit.isError).toBe(true)
    expect(visit.text).toMatch(/^Error: No answer came within 7 days\./)
    expect(visit.action.summary).toBe('Asked "When?"; no answer came in time')
  })

  test('takes 2 to 20 options', () => {
    const check = (count: number) =>
      askUser.input.safeParse({ question: 'q', options: Array.from({ length: count }, String) }).success
    expect([1, 2, 20, 21].map(check)).toEqual([false, true, true, false])
  })

  test('is not pure: a person is asked once', () => expect(askUser.pure ?? false).toBe(false))
})
