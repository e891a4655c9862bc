// backends: either

import { expect } from 'vitest'
import type { RunRequest } from '../../../src/state/run-request.ts'
import type { RunView } from '../../../src/state/run-view.ts'
import { unique } from '../../support/backend.ts'
import type { FakeReply } from '../../support/fake-model/fake-model.ts'
import { runtimeTest as test } from '../../support/integration-test.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { calling, say } from '../../support/script.ts'
import { deadline, nodesOf } from '../../support/test-runtime.ts'
import { isGate } from '../../support/tier.ts'

type Turn = {
  request?: Partial<RunRequest>
  planner: readonly FakeReply[]
  ends: Partial<Pick<RunView, 'status' | 'finish_reason'>>
  /** Nodes that must have been visited. */
  visits?: readonly string[]
}

const answered = { status: 'completed', finish_reason: 'answered' } as const
const sum = calling(['calculate', { expression: '1+1' }])
const file = {
  name: 'notes.txt',
  type: 'text/plain',
  content_base64: Buffer.from('the gate code is 4711').toString('base64'),
}
const long = 'Tell me how the work of this week went, and what is left to do. '.repeat(8)

/** Six kinds of turn, again and again: plain, with tools, with a plan, with a file, analysed, and one that ends badly. */
const kinds: readonly ((nth: number) => Turn)[] = [
  (nth) => ({ planner: [{ text: `Answer ${nth}.` }], ends: answered }),
  () => ({
    planner: [
      { tool_calls: [...(sum.tool_calls ?? []), ...(sum.tool_calls ?? [])] },
      calling(['calculate', { expression: 'not a sum' }]),
      { text: 'Two.' },
    ],
    ends: answered,
    visits: ['calculate', 'reflection'],
  }),
  () => ({
    planner: [
      calling(['update_todos', { todos: [{ id: '1', task: 'add' }] }], ['calculate', { expression: '2+2' }]),
      { text: 'Four.' },
    ],
    ends: answered,
    visits: ['calculate'],
  }),
  (nth) => ({
    request: { files: [{ ...file, name: `notes-${nth}.txt` }] },
    planner: [calling(['read_file', { file_path: `notes-${nth}.txt` }]), { text: '4711.' }],
    ends: answered,
    visits: ['read_file'],
  }),
  () => ({
    request: { prompt: long, output: { style: 'short' } },
    planner: [{ text: 'All went well.' }],
    ends: answered,
    visits: ['understand'],
  }),
  (nth) =>
    nth % 2 === 0
      ? { request: { limits: { max_steps: 5 } }, planner: [sum], ends: { finish_reason: 'steps' } }
      : {
          planner: [calling(['no_such_tool', {}])],
          ends: { status: 'failed' },
        },
]

const turns = isGate ? 12 : 30

test(`a conversation of ${turns} turns keeps the invariants at each turn, and loses nothing`, async ({
  model,
  runtime,
}) => {
  const session_id = unique('s')
  const runs: RunView[] = []
  for (let nth = 1; nth <= turns; nth++) {
    const turn = (kinds[(nth - 1) % kinds.length] as (nth: number) => Turn)(nth)
    model.reset()
    say(model, {
      planner: turn.planner,
      understand: [{ text: `{"scenario":"work","task_goal":"Goal ${nth}"}` }],
      reflection: [{ text: '{"is_sufficient":true}' }],
      output: [{ text: `{"answer":"Said ${nth}."}` }],
    })
    const run = await runtime.complete({ prompt: `Question ${nth}`, session_id, ...turn.request })
    expect(run).toMatchObject({ turn: nth, ...turn.ends })
    const state = await runtime.stateOf(run.id)
    expect(nodesOf(state)).toEqual(expect.arrayContaining([...(turn.visits ?? [])]))
    runs.push(run)
  }

  const state = await runtime.stateOf(runs.at(-1)?.id ?? '')
  expect(state.prompts).toHaveLength(turns)
  expect(state.prompts[0]).toBe('Question 1')
  expect(state.usage).toEqual(runs.map((run) => run.usage))
  const withFile = [4, 10, 16, 22, 28].filter((turn) => turn <= turns)
  expect(state.origin_files.map(({ name }) => name)).toEqual(withFile.map((turn) => `notes-${turn}.txt`))
  expect(state.task_goals).toEqual(
    // turns with a file, and long ones, are analysed; the goal of the others is their request
    runs.map(({ turn }) => ([4, 5].includes(turn % 6) ? `Goal ${turn}` : `Question ${turn}`)),
  )
  expect(state.todos.map((todos) => todos.length)).toEqual(runs.map((_, at) => (at % 6 === 2 ? 1 : 0)))
  // the free text that understand proposed held for its own turns only
  expect([state.scenario, state.output_style]).toEqual(['', 'short'])
  const said = state.chat_history.filter(({ role }) => role === 'user')
  expect(said.map(({ turn }) => turn)).toEqual(runs.map((run) => run.turn))
  expect(state.chat_history.filter(({ role }) => role === 'assistant').map(({ content }) => content)).toEqual(
    runs.flatMap(({ answer }) => (answer === null ? [] : [answer])),
  )

  const session = await runtime.of('default').session(session_id)
  expect(session?.turns.map(({ goal }) => goal)).toEqual(state.task_goals)
  expect(session?.turns.map(({ answer }) => answer)).toEqual(runs.map(({ answer }) => answer))

  // every turn of a fork in the middle is what it was, and the fork goes on from there
  const middle = turns / 2
  const at = await runtime.stateOf(runs[middle - 1]?.id ?? '')
  const last = at.action_history.flat().at(-1)?.id ?? 0
  const fork = await runtime.of('default').fork(session_id, last)
  const forked = await runtime.stateOf(fork?.turns[middle - 1]?.run_id ?? '')
  expect(forked).toEqual(at)
  model.reset()
  say(model, { planner: [{ text: 'On.' }], output: [{ text: '{"answer":"On."}' }] })
  const { run } = await runtime
    .of('default')
    .submit({ prompt: 'go on', user_id: 'u1', session_id: fork?.id ?? '' })
  expect(await runtime.of('default').wait(run.id, deadline())).toMatchObject({
    turn: middle + 1,
    ...answered,
  })
  checkInvariants(await runtime.stateOf(run.id))
})
