// backends: either

import { describe, expect } from 'vitest'
import type { RunRequest } from '../../src/state/run-request.ts'
import { unique } from '../support/backend.ts'
import { runtimeTest as test } from '../support/integration-test.ts'
import { checkInvariants } from '../support/invariants.ts'
import { say } from '../support/script.ts'
import { eventsOf } from '../support/test-runtime.ts'

const structure = [{ id: 'total', expected: 'the total', type: 'number' as const }]
const filled = '{"total":7}'
const replies = { planner: [{ text: 'Plain.' }], output: [{ text: filled }] }

describe('an output structure', () => {
  test.for<[string, RunRequest['output'], string, string]>([
    ['that a turn does not name holds for no other turn', undefined, 'Plain.', filled],
    ['that a turn empties is none, and none of the session', { structure: [] }, 'Plain.', 'Plain.'],
    ['of the session is kept where a turn asks for it', { structure: 'session' }, filled, filled],
    [
      "is passed over by a turn that wants plain text, and stays the session's",
      { structure: 'session', tool: 'answer' },
      'Plain.',
      filled,
    ],
    [
      "that came with plain text is the session's all the same",
      { structure, tool: 'answer' },
      'Plain.',
      filled,
    ],
  ])('%s', async ([, output, second, fourth], { model, runtime }) => {
    const session_id = unique('s')
    say(model, replies)
    const ask = (prompt: string, wanted?: RunRequest['output']) =>
      runtime.complete({ prompt, session_id, ...(wanted && { output: wanted }) })
    expect((await ask('one', { structure })).answer).toBe(filled)
    const run = await ask('two', output)
    const isFilled = second === filled
    expect(run).toMatchObject({ answer: second, output_errors: [] })
    expect(run.output_structure).toEqual(isFilled ? [{ ...structure[0], content: 7 }] : [])
    // a turn between that has none does not lose it
    expect((await ask('three')).answer).toBe('Plain.')
    const last = await ask('four', { structure: 'session' })
    expect(last.answer).toBe(fourth)
    checkInvariants(await runtime.stateOf(last.id))
  })

  test('of a session that never named one is none', async ({ model, runtime }) => {
    say(model, replies)
    const run = await runtime.complete({ prompt: 'one', output: { structure: 'session' } })
    expect(run).toMatchObject({ answer: 'Plain.', output_structure: [] })
  })

  test('of more than 32 KB is kept for the session too', async ({ model, runtime }) => {
    const large = Array.from({ length: 50 }, (_, at) => ({
      ...{ id: `f${at}`, expected: `${at} `.repeat(400), type: 'number' as const },
    }))
    const values = JSON.stringify(Object.fromEntries(large.map(({ id }) => [id, 1])))
    const session_id = unique('s')
    say(model, { ...replies, output: [{ text: values }] })
    await runtime.complete({ prompt: 'one', session_id, output: { structure: large } })
    const run = await runtime.complete({ prompt: 'two', session_id, output: { structure: 'session' } })
    expect(run.answer).toBe(values)
  })

  test('that understand proposed never reaches the next turn', async ({ model, runtime }) => {
    const session_id = unique('s')
    const analysis = {
      ...{ task_goal: 'Count', scenario: '', output_style: '', start: 'planner' },
      output_structure: structure,
    }
    say(model, { ...replies, understand: [{ text: JSON.stringify(analysis) }] })
    // long enough for the model to be asked
    const first = await runtime.complete({ prompt: 'Count all of it. '.repeat(40), session_id })
    expect(first.answer).toBe(filled)
    for (const output of [undefined, { structure: 'session' as const }]) {
      const run = await runtime.complete({ prompt: 'Thanks', session_id, ...(output && { output }) })
      expect(run).toMatchObject({ answer: 'Plain.', output_structure: [] })
    }
  })

  test('of a turn that wants plain text is not proposed by understand either', async ({ model, runtime }) => {
    const analysis = {
      ...{ task_goal: 'Count', scenario: '', output_style: '', start: 'planner' },
      output_structure: structure,
    }
    say(model, { ...replies, understand: [{ text: JSON.stringify(analysis) }] })
    const run = await runtime.complete({
      ...{ prompt: 'Count all of it. '.repeat(40), output: { tool: 'answer' } },
    })
    expect(run).toMatchObject({ answer: 'Plain.', output_structure: [] })
  })

  test('names the fields that never had a valid content, in the view and in `done`', async ({
    model,
    runtime,
  }) => {
    say(model, { planner: [{ text: 'Plain.' }], output: [{ text: '{"total":"many"}' }] })
    const { id } = await runtime.complete({ prompt: 'one', output: { structure } })
    const api = runtime.of('default')
    const run = await api.run(id)
    expect(run).toMatchObject({
      prompt: 'one',
      user_id: 'u1',
      business_id: 'default',
      output_structure: [{ id: 'total', content: null }],
      output_errors: [{ id: 'total', error: expect.stringMatching(/must be a number/) }],
      todos: { pending: 0, processing: 0, completed: 0, failed: 0 },
    })
    expect((await eventsOf(api, id)).at(-1)).toEqual({ event: 'done', data: run })
  })
})
