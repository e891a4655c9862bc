// backends: either

import { describe, expect } from 'vitest'
import { adminToken, runtimeTest as test } from '../../support/integration-test.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { until } from '../../support/runs.ts'
import { calling, say } from '../../support/script.ts'
import { deadline, eventsOf } from '../../support/test-runtime.ts'

const todos = [
  { id: 'a', task: 'add' },
  { id: 'b', task: 'ask', dependencies: ['a'] },
]
const counts = { pending: 2, processing: 0, completed: 0, failed: 0 }
const open = [
  { id: 'a', reason: expect.any(String) },
  { id: 'b', reason: 'waits for a' },
]
const asking = calling(['update_todos', { todos }], ['ask_user', { question: 'Which?' }])
const down = { failure: { status: 503 } }

describe('the todos of a run that ends without a worker are listed as open, in its view, in `done` and in `end`', () => {
  test.for([
    ['cancelled while it waits for a person', 'input_required', 'cancelled'],
    ['cancelled while it is queued', 'queued', 'cancelled'],
    ['failed because five workers were lost to it', 'input_required', 'failed'],
  ] as const)('%s', async ([, waiting, ended], { model, runtime, database, server }) => {
    const api = runtime.of('default')
    const adding = calling(['update_todos', { todos }], ['calculate', { expression: '1+1' }])
    say(model, { planner: waiting === 'queued' ? [adding, down] : [asking] })
    const { id } = (await api.submit({ prompt: 'Work', user_id: 'ann' })).run
    const held = await until('the run to wait', async () => {
      const run = await api.run(id)
      return run?.status === waiting && (run.retry_at ?? run.input_request) !== null && run
    })
    const { pending, processing } = held.todos
    expect({ open: pending + processing, listed: held.open_todos }).toEqual({ open: 2, listed: [] })
    if (ended === 'cancelled') await api.cancel(id, 'enough')
    else {
      await database.query('UPDATE runs SET stalls = 5 WHERE run_id = $1', [id])
      await api.answer(id, held.input_request?.id ?? '', 'that one')
    }
    const run = await api.wait(id, deadline())
    expect(run).toMatchObject({
      ...{ prompt: 'Work', user_id: 'ann', business_id: 'default', status: ended, output_errors: [] },
      ...{ todos: held.todos, open_todos: open },
    })
    const state = await runtime.stateOf(id)
    checkInvariants(state)
    expect(state.action_history[0]?.at(-1)?.result.open_todos).toEqual(run.open_todos)
    expect((await eventsOf(api, id)).at(-1)).toEqual({ event: 'done', data: run })
    const shown = await server.call('GET', `/v1/runs/${id}`, { token: adminToken })
    expect(shown.body).toEqual(run)
  })

  test('cancelled before it began: it has none', async ({ runtime }) => {
    const api = runtime.of('default')
    const { id } = (await api.submit({ prompt: 'Later', user_id: 'ann', delay_ms: 3_600_000 })).run
    await api.cancel(id, undefined)
    const run = await api.run(id)
    expect(run).toMatchObject({
      ...{ prompt: 'Later', status: 'cancelled', todos: { ...counts, pending: 0 }, open_todos: [] },
    })
  })
})
