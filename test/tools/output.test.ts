import { describe, expect, test } from 'vitest'
import type { ModelRequest } from '../../src/state/ports/models.ts'
import type { AdmittedRequest } from '../../src/state/run-request.ts'
import { checkInvariants } from '../support/invariants.ts'
import { memoryRun, modelsOf, type Said, workOn } from '../support/memory-run.ts'
import { graphWith } from '../support/parts.ts'

/** A run whose planner gives this draft at once, and whose output model says these, the last one again and again. */
const finish = async (draft: string, request: Partial<AdmittedRequest>, ...said: Said[]) => {
  const memory = memoryRun({ prompt: 'How many?', ...request })
  const models = modelsOf(({ role }, nth) =>
    role === 'planner' ? { text: draft } : (said[Math.min(nth, said.length) - 1] ?? { text: '' }),
  )
  const { state } = await workOn(await graphWith(), memory, { models })
  checkInvariants(state)
  const requests = models.requests.filter(({ role }) => role === 'output')
  return { memory, state, requests, answer: memory.ended?.result.answer, outcome: memory.ended?.outcome }
}
const json = (value: unknown): Said => ({ text: JSON.stringify(value) })
const promptOf = (request: ModelRequest | undefined) => JSON.stringify(request?.messages)
const properties = (request: ModelRequest | undefined) =>
  Object.keys((request?.schema as { properties: object } | undefined)?.properties ?? {})

describe('answer', () => {
  const draft = '  # 42\n\n\twith "quotes", \u0000, \ud800 and 汉字  '

  test('passes the draft through byte for byte, without a call', async () => {
    const { answer, requests, state } = await finish(draft, {})
    expect(answer).toBe(draft)
    expect(requests).toEqual([])
    expect(state.chat_history.at(-1)).toEqual({ role: 'assistant', content: draft, turn: 1 })
  })

  test('passes a draft of any length through whole', async () => {
    const long = 'Ein längerer Satz. '.repeat(20_000)
    expect((await finish(long, {})).answer).toBe(long)
  })

  test('a style costs one call, which sees the draft and the style', async () => {
    const { answer, requests } = await finish(
      '42',
      { output: { style: 'as a poem' } },
      json({ answer: 'O 42!' }),
    )
    expect(answer).toBe('O 42!')
    expect(requests).toHaveLength(1)
    expect(requests[0]?.messages[1]?.content).toMatch(
      /# Output style\nas a poem.*# Draft\n<data-\w+ agent>\n42\n/s,
    )
  })

  test('a model of its own for the output is used', async () => {
    const { answer, requests } = await finish('42', { models: { output: 'poet' } }, json({ answer: 'O!' }))
    expect(answer).toBe('O!')
    expect(requests[0]?.model).toBe('poet')
  })

  test('a reply that cannot be read leaves the draft, and its tokens count', async () => {
    const { answer, state } = await finish('42', { output: { style: 'x' } }, { text: 'no JSON' })
    expect(answer).toBe('42')
    expect(state.usage[0]?.total_tokens).toBe(30)
  })
})

describe('structured answer', () => {
  const structure = [
    { id: 'count', expected: 'how many', type: 'number' as const },
    { id: 'since', expected: 'first day', type: 'date' as const },
    { id: 'names', expected: 'who', type: 'list' as const },
  ]
  const request = { output: { structure } }

  test('one call fills all pieces; each gets the one form of its type', async () => {
    const { answer, requests, state, memory } = await finish(
      'draft',
      request,
      json({ count: '1,234', since: '2025/1/3', names: ['a'] }),
    )
    expect(answer).toBe('{"count":1234,"since":"2025-01-03","names":["a"]}')
    expect(requests).toHaveLength(1)
    expect(state.output_structure.map(({ content }) => content)).toEqual([1234, '2025-01-03', ['a']])
    expect(memory.ended?.result.output_structure).toEqual(state.output_structure)
  })

  test('only the pieces that failed are asked for again, with what was wrong', async () => {
    const { answer, requests } = await finish(
      'draft',
      request,
      json({ count: 'many', since: '2025-01-03', names: ['a'] }),
      json({ count: 7, since: 'overwritten?' }),
    )
    expect(answer).toBe('{"count":7,"since":"2025-01-03","names":["a"]}')
    expect(properties(requests[0])).toEqual(['count', 'since', 'names'])
    expect(properties(requests[1])).toEqual(['count'])
    expect(requests[1]?.messages[1]?.content).toMatch(
      /# Correction\n<data-\w+ agent>\n- count: must be a number/,
    )
  })

  test('says what is expected of each piece, beside the form of its type', async () => {
    const { requests } = await finish('draft', request, json({ count: 1, since: '2025-01-03', names: [] }))
    const { properties: asked } = (requests[0]?.schema ?? {}) as {
      properties: Record<string, { description: string }>
    }
    expect(asked.count?.description).toBe('how many')
    expect(asked.since?.description).toMatch(/^first day \(ISO 8601 date/)
  })

  test('after three calls the run ends with what there is, and says what is missing', async () => {
    const { answer, requests, state, outcome } = await finish('draft', request, json({ count: 1 }))
    expect(requests).toHaveLength(3)
    expect(answer).toBe('{"count":1,"since":null,"names":null}')
    expect(outcome).toEqual({ status: 'completed', reason: 'answered' })
    const appended = state.action_history[0]?.find(({ node }) => node === 'structured_answer')
    expect(appended?.result.errors).toEqual([
      { id: 'since', error: 'is missing' },
      { id: 'names', error: 'is missing' },
    ])
    expect(state.usage[0]?.total_tokens).toBe(60)
  })

  test('`answer` gives plain text also with a structure, which no prompt shows then', async () => {
    const { answer, requests, state } = await finish(
      'd',
      { output: { structure, style: 'short', tool: 'answer' } },
      json({ answer: 'Three.' }),
    )
    expect(answer).toBe('Three.')
    expect(state.output_structure).toEqual([])
    expect(promptOf(requests[0])).not.toContain('how many')
  })
})
