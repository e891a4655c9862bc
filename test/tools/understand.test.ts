import { describe, expect, test } from 'vitest'
import type { AdmittedRequest } from '../../src/state/run-request.ts'
import { checkInvariants } from '../support/invariants.ts'
import { memoryRun, modelsOf, workOn } from '../support/memory-run.ts'
import { graphWith } from '../support/parts.ts'

const long = 'Please look into this. '.repeat(30)
const file = { name: 'a.csv', type: 'text/csv', local_path: 'blob:x', mapping: null }

const opened = async (request: Partial<AdmittedRequest> & { prompt: string }, text = '') => {
  const memory = memoryRun(request)
  const models = modelsOf(({ role }) => ({ text: role === 'understand' ? text : 'Done.' }))
  const { state } = await workOn(await graphWith(), memory, { models })
  checkInvariants(state)
  return {
    state,
    asked: models.requests.filter(({ role }) => role === 'understand'),
    laid: memory.rows.find(({ body }) => body.node === 'understand')?.body,
    status: memory.ended?.outcome.status,
  }
}
const reply = (more: object = {}) =>
  JSON.stringify({ scenario: 'sales', task_goal: 'Count the sales.', direction: 'Count.', ...more })

describe('understand', () => {
  test.each([
    ['a prompt of 400 characters', { prompt: 'x'.repeat(400) }, 0],
    ['a prompt of 401 characters', { prompt: 'x'.repeat(401) }, 1],
    ['a short prompt with a file', { prompt: 'x', files: [file] }, 1],
  ])('%s', async (_, request, calls) => {
    const { asked, laid } = await opened(request, reply())
    expect(asked).toHaveLength(calls)
    expect(laid !== undefined).toBe(calls === 1)
  })

  test('fills goal, scenario, style and structure where they are not set', async () => {
    const { state } = await opened(
      { prompt: long },
      reply({ output_style: 'terse', output_structure: [{ id: 'n', expected: 'count', type: 'number' }] }),
    )
    expect(state).toMatchObject({
      task_goals: ['Count the sales.'],
      scenario: 'sales',
      output_style: 'terse',
      output_structure: [{ id: 'n', expected: 'count', type: 'number' }],
    })
  })

  test('leaves what the request set as it is', async () => {
    const { state } = await opened(
      {
        prompt: long,
        scenario: 'support',
        output: { style: 'kind', structure: [{ id: 'a', expected: 'a', type: 'text' }] },
      },
      reply({ output_style: 'terse', output_structure: [{ id: 'n', expected: 'count', type: 'number' }] }),
    )
    expect(state).toMatchObject({ scenario: 'support', output_style: 'kind' })
    expect(state.output_structure.map(({ id }) => id)).toEqual(['a'])
  })

  test('takes pieces only under ids that can stand as keys, each once', async () => {
    const piece = (id: string) => ({ id, expected: id, type: 'text' })
    const { state } = await opened(
      { prompt: long },
      reply({
        output_structure: [piece('a'), piece('a'), piece('__proto__'), piece('two words'), piece('b')],
      }),
    )
    expect(state.output_structure.map(({ id }) => id)).toEqual(['a', 'b'])
  })

  test('a reply that cannot be read leaves the request as it is, and its tokens count', async () => {
    const { state, laid, status } = await opened({ prompt: long }, 'no idea')
    expect(laid).toMatchObject({ result: { by: 'rules' }, usage: { total_tokens: 15 } })
    expect(state.task_goals).toEqual([''])
    expect(status).toBe('completed')
  })
})
