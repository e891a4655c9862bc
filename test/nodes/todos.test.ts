// backends: either

import { fileURLToPath } from 'node:url'
import { afterAll, expect } from 'vitest'
import type { RunLimits } from '../../src/state/run-request.ts'
import type { RunView } from '../../src/state/run-view.ts'
import type { RuntimeState } from '../../src/state/runtime-state.ts'
import { waitedFor } from '../support/clock.ts'
import type { FakeModel, FakeReply } from '../support/fake-model/fake-model.ts'
import { startGate } from '../support/gate-server.ts'
import { runtimeTest } from '../support/integration-test.ts'
import { checkInvariants } from '../support/invariants.ts'
import { endLease, until } from '../support/runs.ts'
import { calling } from '../support/script.ts'
import { deadline, type TestRuntime } from '../support/test-runtime.ts'

/** Scripted conversations through the real runtime. What was really done in each is written by hand. */

const gate = await startGate()
afterAll(() => gate.close())
/** `door!2` refuses two knocks, `door!` all. */
gate.onKnock(({ tool, key }, nth) => {
  const [name, refusals] = key.split('!')
  if (refusals === undefined || (refusals !== '' && nth > Number(refusals)))
    return { text: `${name} is open` }
  return tool === 'gate_write' ? { text: `refused: ${name} is shut` } : { error: `${name} is shut` }
})

type Call = [name: string, args: object]
type Change = { id: string; [field: string]: unknown }

const plan = (...todos: Change[]): Call => ['update_todos', { todos }]
const finish = (answer: string, ...todos: Change[]): Call => ['finish', { answer, todos }]
const sum = (n: number): Call => ['calculate', { expression: `${n}+${n}` }]
/** Pure: a failed try is repeated at once, and rules judge a good one. */
const look = (key: string): Call => ['gate_read', { url: gate.url, key }]
/** Changes something: a failed try is repeated after a second, and a model judges all. */
const push = (key: string): Call => ['gate_write', { url: gate.url, key }]
const grep = (action_id: number, pattern: string): Call => ['read_result', { action_id, pattern }]
const task = (id: string, more: object = {}): Change => ({ id, task: `task ${id}`, ...more })
const done = (id: string, reason = `${id} was seen`): Change => ({ id, status: 'completed', reason })
const lost = (id: string, reason: string): Change => ({ id, status: 'failed', reason })
const judging = (...todos: Change[]): FakeReply => ({ text: JSON.stringify({ is_sufficient: true, todos }) })

/** What became of a task; `open` is the reason in `open_todos` of one that was not done. */
type Fate = { todo: object; open?: string | RegExp }

const errorsLike = (errors: readonly string[]) =>
  errors.map((error) => expect.objectContaining({ error: expect.stringContaining(error) }))
const completed = (tool_used: string, output: string, ...errors: string[]): Fate => ({
  todo: {
    ...{ status: 'completed', retry_after: null, error_history: errorsLike(errors) },
    completion_details: { tool_used, output: expect.stringContaining(output) },
  },
})
const failed = (...errors: string[]): Fate => ({
  todo: { status: 'failed', retry_after: null, completion_details: null, error_history: errorsLike(errors) },
})
const inWork = (...errors: string[]): Fate => ({
  todo: { status: 'processing', completion_details: null, error_history: errorsLike(errors) },
  open: 'in work: nothing has named it completed',
})
const pending = (open: string | RegExp, ...errors: string[]): Fate => ({
  todo: { status: 'pending', completion_details: null, error_history: errorsLike(errors) },
  open,
})
const notStarted = pending('not started')

type Turn = {
  planner: FakeReply[]
  reflection?: FakeReply[]
  limits?: RunLimits
  tasks: Record<string, Fate>
  /** Status and finish reason; answered when left out. */
  ends?: [RunView['status'], RunView['finish_reason']]
  /** What a request to the planner has shown its model. */
  shown?: RegExp
  /** A note of a plan about what was dropped. */
  noted?: RegExp
  /** What happens while the run works: its planner's second request is held, or it waits for a person or a retry. */
  meanwhile?: 'cancelled' | 'answered' | 'taken over'
  /** The run waited for so many milliseconds, which are no part of its tasks' time. */
  waited?: number
}
type Talk = [title: string, turns: Turn[]]

const talk = (title: string, ...turns: Turn[]): Talk => [title, turns]
/** A turn whose first reply is refused with an error that its model sees; nothing of that reply counts. */
const refused = (title: string, shown: RegExp, bad: FakeReply): Talk =>
  talk(title, {
    planner: [bad, calling(plan(task('a')), sum(1)), { text: '2' }],
    tasks: { a: inWork() },
    shown,
  })
/** A turn of one task whose first finish is refused with an error that its model sees. */
const refusedFinish = (title: string, shown: RegExp, ...bad: Call[]): Talk =>
  talk(title, {
    planner: [calling(plan(task('a'), task('b')), sum(1)), calling(...bad), calling(finish('2', done('a')))],
    tasks: { a: completed('calculate', '1+1 = 2'), b: notStarted },
    shown,
  })
const two = [task('a', { calls: [1] }), task('b', { calls: [2] })]
const chain = [task('a', { max_retry: 0 }), task('b', { dependencies: ['a'] })]

const talks: Talk[] = [
  talk('finish names all tasks', {
    planner: [calling(plan(...two), sum(1), sum(2)), calling(finish('2 and 4', done('a'), done('b')))],
    tasks: { a: completed('calculate', '1+1 = 2'), b: completed('calculate', '2+2 = 4') },
  }),
  talk('finish names some tasks', {
    planner: [calling(plan(...two), sum(1), sum(2)), calling(finish('2', done('b')))],
    tasks: { a: inWork(), b: completed('calculate', '2+2 = 4') },
  }),
  talk('finish names no task', {
    planner: [calling(plan(...two), sum(1), sum(2)), calling(finish('2 and 4'))],
    tasks: { a: inWork(), b: inWork() },
  }),
  talk('text ends the run and completes nothing', {
    planner: [calling(plan(task('a'), task('b')), sum(1)), { text: 'All done: 2.' }],
    tasks: { a: inWork(), b: notStarted },
  }),
  talk('text beside finish is the answer, and the task is named', {
    planner: [
      calling(plan(task('a')), sum(1)),
      { ...calling(['finish', { todos: [done('a')] }]), text: 'It is 2.' },
    ],
    tasks: { a: completed('calculate', '1+1 = 2') },
  }),
  talk('a plan alone, and then text', {
    planner: [calling(plan(task('a'), task('b', { dependencies: ['a'] }))), { text: 'I know it: 2.' }],
    tasks: { a: notStarted, b: pending('waits for a') },
  }),
  talk('the planner completes a task beside the calls for the next', {
    planner: [
      calling(plan(task('a'), task('b', { dependencies: ['a'] })), sum(1)),
      calling(plan(done('a'), { id: 'b', calls: [1] }), sum(2)),
      { text: '2 and 4' },
    ],
    tasks: { a: completed('calculate', '1+1 = 2'), b: inWork() },
  }),
  talk('the planner completes a task that needed no call, by its reason', {
    planner: [
      calling(plan(task('a'), task('b')), sum(1)),
      calling(finish('2', done('b', 'it was in the request'))),
    ],
    tasks: { a: inWork(), b: completed('', 'it was in the request') },
  }),
  talk('an output tool that is called by its name completes nothing', {
    planner: [calling(plan(task('a')), sum(1)), calling(['answer', { text: 'It is 2.' }])],
    tasks: { a: inWork() },
  }),
  talk('update_todos and finish of one reply both count', {
    planner: [calling(plan(...two), sum(1), sum(2)), calling(plan(done('a')), finish('2 and 4', done('b')))],
    tasks: { a: completed('calculate', '1+1 = 2'), b: completed('calculate', '2+2 = 4') },
  }),
  talk('a completed task that the planner opens again', {
    planner: [
      calling(plan(task('a')), sum(1)),
      calling(plan(done('a')), sum(2)),
      calling(plan({ id: 'a', status: 'pending' }), finish('not yet')),
    ],
    tasks: { a: notStarted },
  }),
  talk('reflection by model names one of two, by the action of another call', {
    planner: [calling(plan(...two), push('left'), push('right')), { text: 'Both are open.' }],
    reflection: [judging({ ...done('a'), action: 5 })],
    tasks: { a: completed('gate_write', 'right is open'), b: inWork() },
  }),
  talk('reflection names an action that is not there, and a task that is not there', {
    planner: [calling(plan(...two), push('left'), push('right')), { text: 'Both are open.' }],
    reflection: [judging({ ...done('a'), action: 99 }, done('zzz'))],
    tasks: { a: completed('gate_write', 'left is open'), b: inWork() },
  }),
  talk('reflection names a task as failed although its call was good', {
    planner: [calling(plan(task('a', { max_retry: 0 })), push('door')), { text: 'It was the wrong door.' }],
    reflection: [judging(lost('a', 'the wrong door'))],
    tasks: { a: failed('the wrong door') },
  }),
  talk('reflection changes no task that the planner has completed', {
    planner: [
      calling(plan(task('a'), task('b')), sum(1)),
      calling(plan(done('a'), { id: 'b', calls: [1] }), push('door')),
      { text: '2' },
    ],
    reflection: [judging(lost('a', 'no'), done('b'))],
    tasks: { a: completed('calculate', '1+1 = 2'), b: completed('gate_write', 'door is open') },
  }),
  talk('a reflection that cannot be read leaves a good call to rules, which complete nothing', {
    planner: [calling(plan(task('a')), push('door')), { text: 'It is open.' }],
    reflection: [{ text: 'Looks good, a is completed!' }],
    tasks: { a: inWork() },
  }),
  talk('a reflection that cannot be read leaves a failed call to rules, which count the try', {
    planner: [calling(plan(task('a', { max_retry: 0 })), push('door!')), { text: 'It is shut.' }],
    reflection: [{ text: 'Hm.' }],
    tasks: { a: failed('door is shut') },
  }),
  talk('a suggested tool that is called completes nothing', {
    planner: [
      calling(
        plan(task('b', { suggested_tools: ['gate_read'] }), task('a', { suggested_tools: ['calculate'] })),
        sum(1),
      ),
      { text: '2' },
    ],
    tasks: { b: notStarted, a: inWork() },
  }),
  talk('where nothing is found, nothing is completed', {
    planner: [calling(sum(1)), calling(plan(task('a')), grep(4, 'zzz')), { text: 'There is no zzz.' }],
    tasks: { a: inWork() },
  }),
  talk('where nothing is found, finish can say so', {
    planner: [
      calling(sum(1)),
      calling(plan(task('a')), grep(4, 'zzz')),
      calling(finish('There is no zzz.', lost('a', 'zzz is nowhere'))),
    ],
    tasks: { a: failed('zzz is nowhere') },
  }),
  talk('a failed call of a pure tool is repeated at once, and the task is named', {
    planner: [
      calling(plan(task('a')), look('again!1')),
      calling(look('again!1')),
      calling(finish('open', done('a'))),
    ],
    tasks: { a: completed('gate_read', 'again is open', 'again is shut') },
  }),
  talk('a failed call leaves its task open, with the error', {
    planner: [calling(plan(task('a')), look('open-error!1')), { text: 'I give up.' }],
    tasks: { a: pending(/^try 1 of 4 failed: Error: open-error is shut/, 'open-error is shut') },
  }),
  talk('a task out of retries has failed for good', {
    planner: [
      calling(plan(task('a', { max_retry: 1 })), look('never!')),
      calling(look('never!')),
      { text: 'It stays shut.' },
    ],
    tasks: { a: failed('never is shut', 'never is shut') },
  }),
  talk('a retry waits for its time, which is no time of the task', {
    planner: [
      calling(plan(task('a')), push('later!1')),
      calling(push('later!1')),
      calling(finish('open', done('a'))),
    ],
    tasks: { a: completed('gate_write', 'later is open', 'later is shut') },
    waited: 1000,
  }),
  talk('tasks behind a failed one are blocked', {
    planner: [
      calling(plan(...chain, task('c', { dependencies: ['b'] }), task('d')), look('first!')),
      { text: 'The first door stays shut.' },
    ],
    tasks: {
      a: failed('first is shut'),
      b: pending('blocked: it depends on a, and a task before it failed'),
      c: pending('blocked: it depends on b, and a task before it failed'),
      d: notStarted,
    },
  }),
  talk('a blocked task goes another way when the plan says so', {
    planner: [
      calling(plan(...chain), look('front!')),
      calling(plan(task('c', { calls: [1] }), { id: 'b', dependencies: ['c'] }), look('back')),
      calling(plan(done('c'), { id: 'b', calls: [1] }), sum(1)),
      calling(finish('2', done('b'))),
    ],
    tasks: {
      a: failed('front is shut'),
      b: completed('calculate', '1+1 = 2'),
      c: completed('gate_read', 'back is open'),
    },
  }),
  talk('one failure among parallel calls of one task is in its history', {
    planner: [
      calling(plan(task('a', { calls: [1, 2] })), look('l!'), look('r')),
      calling(finish('One is open.', done('a'))),
    ],
    tasks: { a: completed('gate_read', 'r is open', 'l is shut') },
  }),
  talk('one failure among parallel calls of two tasks is in the history of its own', {
    planner: [calling(plan(...two), look('l2!'), look('r2')), calling(finish('One is open.', done('b')))],
    tasks: {
      a: pending(/^try 1 of 4 failed: Error: l2 is shut/, 'l2 is shut'),
      b: completed('gate_read', 'r2 is open'),
    },
  }),
  talk('one call for two tasks completes both where both are named', {
    planner: [
      calling(plan(task('a', { calls: [1] }), task('b', { calls: [1] })), sum(1)),
      calling(finish('2', done('a'), done('b'))),
    ],
    tasks: { a: completed('calculate', '1+1 = 2'), b: completed('calculate', '1+1 = 2') },
  }),
  talk('one call for two tasks completes the one that is named', {
    planner: [
      calling(plan(task('a', { calls: [1] }), task('b', { calls: [1] })), sum(1)),
      calling(finish('2', done('a'))),
    ],
    tasks: { a: completed('calculate', '1+1 = 2'), b: inWork() },
  }),
  talk('the same call three times ends the run without progress', {
    planner: [calling(plan(task('a'), task('b')), sum(1)), calling(sum(1))],
    tasks: { a: inWork(), b: notStarted },
    ends: ['completed', 'no_progress'],
    shown: /Make a different plan/,
  }),
  talk('the limit of steps', {
    planner: [calling(plan(task('a'), task('b')), sum(1)), calling(sum(2)), calling(sum(3)), calling(sum(4))],
    limits: { max_steps: 9 },
    tasks: { a: inWork(), b: notStarted },
    ends: ['completed', 'steps'],
  }),
  talk('the limit of tokens', {
    planner: [calling(plan(task('a')), sum(1)), calling(plan(done('a'), task('b', { calls: [1] })), sum(2))],
    limits: { max_tokens: 30 },
    tasks: { a: completed('calculate', '1+1 = 2'), b: inWork() },
    ends: ['completed', 'tokens'],
  }),
  talk('the limit of time', {
    planner: [calling(plan(task('a'), task('b')), sum(1)), { hold: true }],
    limits: { timeout_ms: 4000 },
    tasks: { a: inWork(), b: notStarted },
    ends: ['completed', 'time'],
  }),
  talk('a run that is cancelled while its model thinks', {
    planner: [calling(plan(task('a'), task('b')), sum(1)), { hold: true }],
    meanwhile: 'cancelled',
    tasks: { a: inWork(), b: notStarted },
    ends: ['cancelled', null],
  }),
  talk('a run that is cancelled while it waits for its user', {
    planner: [calling(plan(task('a')), ['ask_user', { question: 'Which year?' }])],
    meanwhile: 'cancelled',
    tasks: { a: inWork() },
    ends: ['cancelled', null],
  }),
  talk('a run that is cancelled while it waits for a retry', {
    planner: [calling(plan(task('a'), task('b')), push('cancel!')), { hold: true }],
    meanwhile: 'cancelled',
    tasks: {
      a: pending(/^try 1 of 4 failed: Error: cancel is shut/, 'cancel is shut'),
      b: notStarted,
    },
    ends: ['cancelled', null],
  }),
  talk('the wait for an answer of the user is no time of the task', {
    planner: [
      calling(plan(task('a')), ['ask_user', { question: 'Which year?' }]),
      calling(finish('2025', done('a'))),
    ],
    meanwhile: 'answered',
    tasks: { a: completed('ask_user', '2025') },
    waited: 1000,
  }),
  talk('a run whose replies stay unusable fails, and its tasks stay as they were', {
    planner: [calling(plan(task('a')), sum(1)), calling(finish('2', done('zzz')))],
    tasks: { a: inWork() },
    ends: ['failed', null],
    shown: /There is no todo 'zzz'\. The todos are: a\./,
  }),
  talk('a run that another claim takes over in the middle', {
    planner: [
      calling(plan(...two), sum(1), sum(2)),
      { ...calling(finish('too late', done('b'))), hold: true },
      calling(finish('2', done('a'))),
    ],
    meanwhile: 'taken over',
    tasks: { a: completed('calculate', '1+1 = 2'), b: inWork() },
  }),
  talk(
    'a second turn has todos of its own',
    {
      planner: [calling(plan(task('a'), task('old')), sum(1)), calling(finish('2', done('a')))],
      tasks: { a: completed('calculate', '1+1 = 2'), old: notStarted },
    },
    {
      planner: [
        calling(plan(task('a')), sum(2)),
        calling(finish('4', done('a'), done('old'))),
        calling(finish('4', lost('a', 'it was 5'))),
      ],
      tasks: { a: failed('it was 5') },
      shown: /There is no todo 'old'\. The todos are: a\./,
    },
    { planner: [{ text: 'Nothing to do.' }], tasks: {} },
  ),
  talk('tasks in Chinese', {
    planner: [
      calling(
        plan({ id: '求和', task: '计算一加一', calls: [1] }, { id: '开门', task: '把门打开', calls: [2] }),
        sum(1),
        look('大门!'),
      ),
      calling(finish('和是 2，门没有开。', done('求和', '结果是 2'), lost('开门', '门打不开'))),
    ],
    tasks: { 求和: completed('calculate', '1+1 = 2'), 开门: failed('大门 is shut', '门打不开') },
  }),
  talk('finish beside calls is dropped with its todos, and the calls run', {
    planner: [calling(plan(task('a')), sum(1), finish('2', done('a'))), { text: 'It is 2.' }],
    tasks: { a: inWork() },
    noted: /finish was called beside other tools and was dropped/,
  }),
  refused(
    'a dependency that is not there',
    /Unknown dependencies: 'a' depends on 'zzz'\. The todos are: a\./,
    calling(plan(task('a', { dependencies: ['zzz'] })), sum(1)),
  ),
  refused(
    'a suggested tool that is not there',
    /there is no tool \\"fly\\"; the tools are: .*calculate/,
    calling(plan(task('x', { suggested_tools: ['fly'] })), sum(1)),
  ),
  refused(
    'a cycle',
    /The dependencies form a cycle: x -> y -> x\. Take one of them out\./,
    calling(plan(task('x', { dependencies: ['y'] }), task('y', { dependencies: ['x'] })), sum(1)),
  ),
  refused(
    '`calls` out of range',
    /there is no tool call 2 beside update_todos; the first is 1/,
    calling(plan(task('x', { calls: [2] })), sum(1)),
  ),
  refused(
    'a task twice in one change',
    /Each id may stand once; repeated: x\./,
    calling(plan(task('x'), task('x')), sum(1)),
  ),
  refused(
    'a change of a task that is not there',
    /There is no todo 'x'\. The todos are: none yet\. A new todo needs its task\./,
    calling(plan(done('x')), sum(1)),
  ),
  refusedFinish(
    'a task in finish that is not there',
    /There is no todo 'zzz'\. The todos are: a, b\./,
    finish('2', done('a'), done('b'), done('zzz')),
  ),
  refusedFinish(
    'a task twice in finish',
    /Each id may stand once; repeated: b\./,
    finish('2', done('b'), lost('b', 'no')),
  ),
  refusedFinish('an output tool that is not there', /there is no such output tool; name answer or report/, [
    'finish',
    { output: 'letter', answer: '2', todos: [done('b')] },
  ]),
  refusedFinish(
    'two finishes in one reply',
    /the work was finished twice in one reply; finish once/,
    finish('2', done('a')),
    finish('4', done('b')),
  ),
  refusedFinish('a finish without an answer', /finish needs the complete answer/, [
    'finish',
    { todos: [done('b')] },
  ]),
]

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, () => ({
  toolFolders: [fileURLToPath(new URL('../support/gate-tools', import.meta.url))],
  concurrency: 12,
}))

/** The turn that a request is about: the last that its messages name. */
const keyOf = (messages: unknown): string =>
  [...JSON.stringify(messages).matchAll(/talk (\d+\.\d+)/g)].at(-1)?.[1] ?? ''
const asksPlanner = (model: FakeModel, key: string) =>
  model.requests('planner').filter(({ messages }) => keyOf(messages) === key)

test.beforeAll(({ model }) => {
  const turns = new Map(talks.flatMap(([, turns], at) => turns.map((turn, nth) => [`${at}.${nth}`, turn])))
  const asked = new Map<string, number>()
  model.script(({ role, messages }) => {
    const turn = turns.get(keyOf(messages))
    const count = `${role} ${keyOf(messages)}`
    const nth = asked.get(count) ?? 0
    asked.set(count, nth + 1)
    const replies = role === 'planner' ? turn?.planner : (turn?.reflection ?? [judging()])
    return replies?.[Math.min(nth, replies.length - 1)]
  })
})

type World = { model: FakeModel; runtime: TestRuntime; endLease(runId: string): Promise<unknown> }

/** Submits a turn and follows it to its end. */
const follow = async ({ model, runtime, endLease }: World, key: string, turn: Turn): Promise<RunView> => {
  const api = runtime.of('default')
  const { run } = await api.submit({
    ...{ prompt: `talk ${key}`, user_id: 'u1', session_id: `talk-${key.split('.')[0]}` },
    ...(turn.limits && { limits: turn.limits }),
  })
  const isHeld = () => asksPlanner(model, key).length >= 2
  if (turn.meanwhile === 'cancelled') {
    await until('a held model, a question or a retry', async () => {
      const now = await api.run(run.id)
      return isHeld() || now?.input_request || (now?.started_at && now.status === 'queued')
    })
    await api.cancel(run.id, 'no more')
  } else if (turn.meanwhile === 'answered') {
    const { input_request, todos } = await api.wait(run.id, deadline())
    expect(todos).toEqual({ pending: 0, processing: 1, completed: 0, failed: 0 })
    const waited = waitedFor()
    await until('a second', () => waited(1000))
    await api.answer(run.id, input_request?.id ?? '', '2025')
  } else if (turn.meanwhile === 'taken over') {
    await until('the held model', isHeld)
    await endLease(run.id)
    await until('another claim', () => asksPlanner(model, key).length >= 3)
  }
  return api.wait(run.id, deadline())
}

test.concurrent.for(talks)('todos are true: %s', async ([title, turns], { model, runtime, database }) => {
  const at = talks.findIndex(([one]) => one === title)
  const before: RuntimeState['todos'][number][] = []
  for (const [nth, turn] of turns.entries()) {
    const key = `${at}.${nth}`
    const world = { model, runtime, endLease: (id: string) => endLease(database, id) }
    const view = await follow(world, key, turn)
    const [status, finish_reason] = turn.ends ?? ['completed', 'answered']
    expect(view).toMatchObject({ status, finish_reason })
    const state = await runtime.stateOf(view.id)
    checkInvariants(state)
    const todos = state.todos[nth] ?? []
    expect(Object.fromEntries(todos.map((todo) => [todo.id, todo]))).toMatchObject(
      Object.fromEntries(Object.entries(turn.tasks).map(([id, { todo }]) => [id, todo])),
    )
    expect(todos.map(({ id }) => id)).toEqual(Object.keys(turn.tasks))
    const open = Object.entries(turn.tasks).flatMap(([id, { open: reason }]) =>
      reason === undefined
        ? []
        : [{ id, reason: typeof reason === 'string' ? reason : expect.stringMatching(reason) }],
    )
    expect(view.open_todos).toEqual(open)
    expect(state.action_history[nth]?.at(-1)?.result.open_todos ?? []).toEqual(open)
    const asks = asksPlanner(model, key).map(({ messages }) => JSON.stringify(messages))
    if (turn.shown) expect(asks.some((said) => turn.shown?.test(said))).toBe(true)
    if (turn.noted) expect(JSON.stringify(state.action_history[nth])).toMatch(turn.noted)
    expect(state.todos.slice(0, nth)).toEqual(before)
    before.push(todos)
    // the whole time of the run, less what it waited, is more than that of its tasks
    if (turn.waited === undefined) continue
    const wholeMs = Date.parse(view.ended_at ?? '') - Date.parse(view.created_at)
    expect(wholeMs).toBeGreaterThan(turn.waited)
    for (const { completion_details } of todos) {
      expect(completion_details?.execution_time).toBeGreaterThan(0)
      expect(completion_details?.execution_time).toBeLessThanOrEqual(wholeMs - turn.waited)
    }
  }
})
