import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createJsonRenderer, createRenderer, createStreamedText } from '../../../src/app/cli/renderer.ts'
import { cutToWidth, openTerminal } from '../../../src/app/cli/terminal.ts'
import type { ActionEvent, RunEvent, RunView } from '../../../src/state/run-view.ts'
import type { Todo, TodoStatus } from '../../../src/state/runtime-state.ts'
import { todo as todoOf } from '../../support/actions.ts'

const action = (id: number, node: string, more: Partial<ActionEvent> = {}): RunEvent => ({
  event: 'action',
  id,
  data: {
    id,
    run_id: 'run_1',
    turn: 1,
    node,
    preparation: '',
    summary: `did ${node}`,
    result: {},
    context: null,
    relevance: 0,
    usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    next: [],
    ...{ at: '2026-01-02T03:04:05.678Z', started_at: null, ms: null, attempt: 1, worker: null },
    ...more,
  },
})

const todo = (id: string, status: TodoStatus): Todo => todoOf(id, { task: `task ${id}`, status })
const todos = (...list: Todo[]): RunEvent => ({
  event: 'todos',
  id: 1,
  data: { run_id: 'run_1', turn: 1, todos: list },
})

const done = (more: Partial<RunView> = {}): RunEvent => ({
  event: 'done',
  data: {
    id: 'run_1',
    session_id: 'ses_1',
    business_id: 'default',
    user_id: 'u1',
    turn: 1,
    prompt: 'What is it?',
    status: 'completed',
    finish_reason: 'answered',
    answer: 'It is **42**.',
    output_structure: [],
    output_errors: [],
    todos: { pending: 0, processing: 0, completed: 0, failed: 0 },
    open_todos: [],
    usage: { prompt_tokens: 1000, completion_tokens: 234, total_tokens: 1234 },
    error: null,
    input_request: null,
    consent_request: null,
    operator_request: null,
    retry_at: null,
    retry_reason: null,
    retry_of: null,
    metadata: {},
    created_at: '',
    started_at: null,
    ended_at: null,
    ...more,
  },
})

/** What a person sees where lines can't be redrawn. */
const shown = (...events: RunEvent[]): string => {
  const out = new PassThrough()
  let clock = 0
  const terminal = openTerminal({}, out as unknown as NodeJS.WriteStream)
  const renderer = createRenderer(terminal, () => {
    clock += 100
    return clock
  })
  for (const event of events) renderer.event(event)
  renderer.close()
  return String(out.read() ?? '')
}

describe('a run in plain text', () => {
  test('is one line per action, one per changed todo, the answer and the usage', () => {
    const text = shown(
      action(1, 'load-session'),
      todos(todo('a', 'processing'), todo('b', 'pending')),
      action(2, 'planner', { usage: { prompt_tokens: 1000, completion_tokens: 234, total_tokens: 1234 } }),
      todos(todo('a', 'completed'), todo('b', 'pending')),
      done(),
    )
    expect(text).toBe(
      [
        '    0.1 s  load-session          did load-session',
        '    0.2 s                        [>] task a',
        '    0.3 s                        [ ] task b',
        '    0.4 s  planner               did planner  · 1,234 tokens',
        '    0.5 s                        [x] task a',
        '',
        '  It is **42**.',
        '',
        'completed · 1 of 2 todos · 2 actions · 1,234 tokens (1,000 in, 234 out) · 0.6 s',
        '',
      ].join('\n'),
    )
  })

  test('that failed or was cut short says why', () => {
    const error = { code: 'model_unauthorized', message: 'the key is refused', node: 'planner' }
    expect(shown(done({ status: 'failed', answer: null, error }))).toContain(
      'failed in planner: the key is refused (model_unauthorized)',
    )
    expect(shown(done({ finish_reason: 'steps' }))).toContain(
      'completed early: the limit of steps was reached',
    )
  })

  test('that waits for a model says until when and why', () => {
    const retry_reason = { code: 'model_unavailable', message: 'the model server\ncannot be reached' }
    const data = { run_id: 'run_1', turn: 1, status: 'queued', retry_at: '2026-01-02T03:04:05Z' } as const
    expect(shown({ event: 'status', id: 2, data: { ...data, retry_reason } })).toBe(
      'no model is available; next try at 2026-01-02T03:04:05Z: the model server cannot be reached\n',
    )
  })

  test('shows a structured answer formatted', () => {
    const output_structure = [{ id: 'n', expected: 'a number', content: 42, type: 'number' as const }]
    expect(shown(done({ answer: '{"n":42}', output_structure }))).toContain('  {\n    "n": 42\n  }\n')
  })

  test('keeps control sequences of models from the terminal', () => {
    const text = shown(
      action(1, 'answer', { summary: 'a\u001b[2Jb\nc' }),
      done({ answer: 'x\u001b]0;t\u0007y' }),
    )
    expect(text).toContain('a[2Jb c')
    expect(text).toContain('x]0;ty')
  })
})

test('a run as JSON is one object per event and nothing else', () => {
  const [out, err] = [new PassThrough(), new PassThrough()]
  const renderer = createJsonRenderer(out, err)
  renderer.event(action(1, 'planner'))
  renderer.note('a notice')
  renderer.event(done())
  const lines = String(out.read()).trim().split('\n')
  expect(lines.map((line) => (JSON.parse(line) as RunEvent).event)).toEqual(['action', 'done'])
  expect(String(err.read())).toBe('a notice\n')
})

test('a new attempt voids the text that streamed before it', () => {
  const streamed = createStreamedText()
  const delta = { run_id: 'run_1', node: 'planner', call: null }
  streamed.add({ ...delta, attempt: 1, text: 'wrong ' })
  streamed.add({ ...delta, attempt: 2, text: 'right' })
  streamed.add({ ...delta, attempt: 1, text: 'late' })
  streamed.add({ ...delta, attempt: 2, text: ' so' })
  expect(streamed.tail({})).toBe('  right so')
  streamed.settle('planner')
  expect(streamed.tail({})).toBe('')
})

test.each([
  ['abcde', 5, 'abcde'],
  ['abcdef', 5, 'abcd…'],
  ['订单数量', 8, '订单数量'],
  ['订单数量', 7, '订单数…'],
])('%j in %i columns is %j', (text, width, wanted) => {
  expect(cutToWidth(text, width)).toBe(wanted)
})

test('colors are written to terminals only, and never with NO_COLOR', () => {
  const tty = Object.assign(new PassThrough(), { isTTY: true }) as unknown as NodeJS.WriteStream
  const pipe = new PassThrough() as unknown as NodeJS.WriteStream
  const hasColors = (env: Record<string, string>, out: NodeJS.WriteStream) =>
    openTerminal(env, out).colors.isColorSupported
  expect([hasColors({}, tty), hasColors({ NO_COLOR: '1' }, tty), hasColors({}, pipe)]).toEqual([
    true,
    false,
    false,
  ])
})
