import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { renderTrajectory } from '../../src/features/trajectories/trajectory.ts'
import type { Graph } from '../../src/graph/build.ts'
import { checkProgress } from '../../src/graph/progress.ts'
import { MasonError } from '../../src/state/errors.ts'
import type { ModelMessage } from '../../src/state/ports/model-messages.ts'
import type { DialectName, ModelRequest, Models } from '../../src/state/ports/models.ts'
import type { AdmittedRequest } from '../../src/state/run-request.ts'
import type { Action } from '../../src/state/runtime-state.ts'
import { checkInvariants } from '../support/invariants.ts'
import { type MemoryRun, memoryRun, modelsOf, type Said, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

/** The planner over both dialects: what a model writes in the language, and the same decisions natively. */

let graph: Graph
beforeAll(async () => {
  graph = await graphWith([
    callTool('look', ({ q }) => (q === 'big' ? 'x'.repeat(20_000) : `seen ${String(q)}`)),
    {
      ...callTool('note', () => 'noted'),
      server: 'note_server',
      raw: { field: 'text' },
      input: z.strictObject({ text: z.string() }),
    },
  ] as never)
})

const models = (
  dialects: readonly DialectName[],
  think: (request: ModelRequest, nth: number) => Said | Error,
): Models & { requests: ModelRequest[] } => ({
  ...modelsOf((request, nth) => (request.role === 'planner' ? think(request, nth) : { text: '' })),
  dialects: () => dialects,
})

const run = async (
  dialects: readonly DialectName[],
  said: readonly (Said | Error)[],
  request: Partial<AdmittedRequest> = {},
) => {
  const memory = memoryRun({ prompt: 'What now?', ...request })
  const port = models(dialects, (_, nth) => said[Math.min(nth, said.length) - 1] as Said)
  const { state } = await workOn(graph, memory, { models: port })
  checkInvariants(state)
  const actions = (state.action_history[0] ?? []) as Action[]
  return {
    memory,
    state,
    actions,
    plans: actions.filter(({ node }) => node === 'planner'),
    requests: port.requests.filter(({ role }) => role === 'planner'),
  }
}
const readBlob = ({ blobs }: MemoryRun, action: Action | undefined): Action['result'] =>
  JSON.parse(Buffer.from(blobs.get(String(action?.result.blob)) ?? '').toString())

const written = (...texts: string[]) =>
  run(
    ['xml'],
    texts.map((text) => ({ text })),
  )

const look = (q: string) => `<mason_server><look>{"q":"${q}"}</look></mason_server>`
const go = '<execute_tools />'
const answer = (text: string) => `<answer>${text}</answer>`
const todos = (text: string) => `<mason_server><update_todos>${text}</update_todos></mason_server>`

describe('a model that writes its calls', () => {
  test('is asked with the tools in its instructions, a stop and no native tools', async () => {
    const { requests } = await written(answer('4'))
    expect(requests[0]).toMatchObject({ tools: [], dialect: 'xml', end: { stop: ['<result'] } })
    const [system] = requests[0]?.messages ?? []
    expect(system?.content).toMatch(/<note_server><note>: .*\nthe text of text as it is, or JSON/)
    expect(system?.content).toContain('<mason_server><look>: ')
  })

  test('has its call run and its result put back, and its answer passed on', async () => {
    const said = `<think>Easy.</think>\n${look('a')}\n${go}`
    const { plans, requests, memory, actions } = await written(`${said}\n`, answer('It is <b>a</b>.'))
    expect(memory.ended?.result.answer).toBe('It is <b>a</b>.')
    expect(plans[0]?.result).toMatchObject({
      dialect: 'xml',
      wrote: said,
      reasoning: 'Easy.',
      calls: [{ tool: 'look', args: { q: 'a' } }],
    })
    expect(requests[1]?.messages.slice(-2)).toEqual([
      { role: 'assistant', content: said },
      { role: 'user', content: '<result index="0">seen a</result>' },
    ])
    expect(renderTrajectory(actions, { serverOf: () => undefined, answer: 'It is <b>a</b>.' })).toEqual({
      text: `${said}\n<result index="0">seen a</result>\n${answer('It is <b>a</b>.')}`,
      origin: 'written',
    })
  })

  test('writes a raw body into the field of its tool, as it is', async () => {
    const body = 'a < b && c > d </b> & "x"'
    const { plans } = await written(`<note_server><note>${body}</note></note_server>\n${go}`, answer('ok'))
    expect(plans[0]?.result.calls).toMatchObject([{ tool: 'note', args: { text: body } }])
  })

  test('runs a block in the way it asks for', async () => {
    const block = (kind: string) => `<${kind}>${look('a')}${look('b')}</${kind}>\n${go}`
    const { plans: parallel } = await written(block('parallel'), answer('ok'))
    expect(parallel[0]?.result).toMatchObject({
      ...{ block: 'parallel', on_failure: 'go_on' },
      calls: [{ index: 0 }, { index: 1 }],
    })
    const { plans: sequential, requests } = await written(block('sequential'), answer('ok'))
    expect(sequential[0]?.result).toMatchObject({ block: 'sequential', on_failure: 'stop' })
    expect(requests[1]?.messages.at(-1)?.content).toBe(
      '<result index="0">seen a</result>\n<result index="1">seen b</result>',
    )
  })

  test('streams its answer alone, without half a tag', async () => {
    const text = `<think>secret</think>\nsaid\n${answer('It is 4.')}`
    const memory = memoryRun({ prompt: 'What?' })
    const chars: Models = {
      ...models(['xml'], () => ({ text })),
      async call(request) {
        if (request.role === 'planner') for (const char of text) request.onText?.(char, 1)
        return {
          text,
          reasoning: '',
          tool_calls: [],
          finish: 'stop',
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
          model: 'm',
        }
      },
    }
    await workOn(graph, memory, { models: chars })
    expect(
      memory.texts
        .filter(({ node }) => node === 'planner')
        .map((one) => one.text)
        .join(''),
    ).toBe('It is 4.')
  })

  test('keeps a plan and finishes in the language', async () => {
    const { plans, memory, state } = await written(
      `<parallel>${todos('{"todos":[{"id":"a","task":"do a"}]}')}${look('a')}</parallel>${go}`,
      `<mason_server><finish>{"answer":"done","todos":[{"id":"a","status":"completed","reason":"seen"}]}</finish></mason_server>${go}`,
    )
    expect(memory.ended?.result.answer).toBe('done')
    expect(plans[0]?.result.calls).toMatchObject([{ index: 0, tool: 'look', todos: ['a'] }])
    expect(state.todos[0]).toMatchObject([{ id: 'a', status: 'completed' }])
  })

  test('that only plans is asked to go on, and both are stored whole', async () => {
    const plan = `${todos('{"todos":[{"id":"a","task":"do a"}]}')}\n${go}`
    const { plans, requests } = await written(plan, `${look('a')}${go}`, answer('ok'))
    const put_back = '<result index="0">The plan is updated. Go on: call tools or finish.</result>'
    expect(plans[0]?.result.exchange).toEqual([{ wrote: plan, put_back }])
    expect(requests[1]?.messages.slice(-2).map(({ content }) => content)).toEqual([plan, put_back])
  })

  test('what is put back of a long result ends with how to read the rest', async () => {
    const { requests } = await written(`${look('big')}${go}`, answer('ok'))
    expect(requests[1]?.messages.at(-1)?.content).toMatch(
      /x{1000}…\n\[cut: 20000 characters in all; read_result with action_id \d+ reads the rest\]<\/result>$/,
    )
  })

  test('is judged by rule', async () => {
    const { actions } = await written(`${look('a')}${go}`, answer('ok'))
    expect(actions.find(({ node }) => node === 'reflection')?.result.by).toBe('rules')
  })
})

describe('bad input of such a model', () => {
  test.each([
    ['calls without the order to run them', look('a'), /Note: <?.?execute_tools \/> was missing/],
    [
      'an answer beside calls',
      `${look('a')}${answer('no')}${go}`,
      /Note: the answer beside calls was dropped/,
    ],
    [
      'two blocks',
      `${look('a')}\n${look('b')}\n${go}`,
      /Note: only the block right before .*execute_tools \/> runs; 1 before it did not run/,
    ],
    [
      'an answer behind the order',
      `${look('a')}${go}${answer('no')}`,
      /Note: \d+ characters after the end of the reply were not taken/,
    ],
  ])('%s: the calls run, with a note in a result', async (_, text, note) => {
    const { requests, plans, memory } = await written(text, answer('ok'))
    expect(plans[0]?.result.calls).toHaveLength(1)
    expect(requests[1]?.messages.at(-1)?.content).toMatch(note)
    expect(memory.ended?.result.answer).toBe('ok')
  })

  test.each([
    ['the order without a block', go, /Error: there is no call before .execute_tools \/>/],
    [
      'an unknown tool',
      `<a_server><fly>x</fly></a_server>${go}`,
      /Error: no tool 'fly' on server 'a_server'; the tools are: .*mason_server\/look, note_server\/note, mason_server\/update_todos/,
    ],
    [
      'a tool of another server',
      `<mason_server><note>x</note></mason_server>${go}`,
      /Error: no tool 'note' on server 'mason_server'/,
    ],
    ['an unclosed block', `<parallel>${look('a')}`, /Error: line 1: .parallel> is not closed/],
    [
      'a block in a block',
      `<parallel><sequential>${look('a')}</sequential></parallel>${go}`,
      /Error: line 1/,
    ],
    ['an empty block', `<parallel></parallel>${go}`, /Error: line 1/],
    ['65 calls', `<parallel>${look('a').repeat(65)}</parallel>${go}`, /Error: a reply has at most 64 calls/],
    [
      'a body that is no JSON',
      `<mason_server><look>a</look></mason_server>${go}`,
      /Error: the body of look is not a JSON object/,
    ],
    ['an empty reply', ' \n', /Error: the reply was empty/],
    [
      'a reference outside of a sequence',
      `${look('{results[0]}')}${go}`,
      /Error: \{results\[0\]\} stands for a result only inside/,
    ],
  ])('%s is refused in a result', async (_, text, message) => {
    const { requests, plans } = await written(text, answer('ok'))
    expect(requests[1]?.messages.at(-1)).toMatchObject({
      role: 'user',
      content: expect.stringMatching(message),
    })
    expect(requests[1]?.messages.at(-1)?.content).toMatch(/^<result index="0">Error: .*<\/result>$/s)
    expect(plans[0]?.result.exchange).toEqual([
      { wrote: text.trimEnd(), put_back: requests[1]?.messages.at(-1)?.content },
    ])
  })

  test('calls whose reply ended for an unknown reason are refused with that reason', async () => {
    const said = [{ text: `${look('a')}${go}`, finish: 'unknown' as const }, { text: answer('ok') }]
    const { requests } = await run(['xml'], said)
    expect(requests[1]?.messages.at(-1)?.content).toMatch(
      /Error: the reply ended for a reason that is not known, so none of its calls was made/,
    )
  })

  test('an unknown tool before a step that refers to its result is the one error', async () => {
    const steps = `<sequential><a_server><fly>x</fly></a_server>${look('{results[0]}')}</sequential>${go}`
    const { requests } = await written(steps, answer('ok'))
    expect(requests[1]?.messages.at(-1)?.content.match(/Error: /g)).toHaveLength(1)
  })

  test('text alone is the answer, and of two answers the last one', async () => {
    expect((await written('Plain text.')).memory.ended?.result.answer).toBe('Plain text.')
    expect(
      (await written(`${answer('one')}\n<think>no</think>\n${answer('two')}`)).memory.ended?.result.answer,
    ).toBe('two')
  })

  test('2 MB are cut at 1 MB, with a note', async () => {
    const { plans, memory } = await written(`${look('a')}\n${answer('x'.repeat(2 * 1024 * 1024))}\n${go}`)
    const stored = readBlob(memory, plans[0])
    expect(String(stored.wrote).length).toBe(1024 * 1024)
    expect(stored.cut).toBeGreaterThan(1024 * 1024)
    expect(stored.notes).toContainEqual(expect.stringMatching(/cut at 1 MB/))
  })

  test('after three corrections the run fails, with the whole exchange in the action, however large', async () => {
    const text = `<parallel>${'x'.repeat(20_000)}</parallel>`
    const { memory, plans } = await written(text)
    expect(memory.ended?.outcome).toMatchObject({ status: 'failed', reason: 'bad_tool_call' })
    const stored = readBlob(memory, plans[0]) as { exchange: { wrote: string; put_back: string }[] }
    expect(stored.exchange.map(({ wrote }) => wrote)).toEqual([text, text, text, text])
    expect(stored.exchange.every((one) => one.put_back.startsWith('<result index="0">Error: '))).toBe(true)
  })
})

describe('a turn in the language', () => {
  test('has a next prompt that begins with the last one, byte for byte, refused replies included', async () => {
    const { requests } = await written(
      `${look('a')}${go}`,
      '<parallel>',
      `<parallel>${look('b')}${look('c')}</parallel>${go}`,
      `${look('d')}${answer('no')}${go}`,
      answer('ok'),
    )
    for (const [at, { messages }] of requests.entries()) {
      const next = requests[at + 1]?.messages ?? messages
      expect(next.slice(0, messages.length)).toEqual(messages)
    }
  })

  test('and so it is with a plan, which is said again where it has changed', async () => {
    const plans = (...changes: object[]) => todos(JSON.stringify({ todos: changes }))
    const isPlan = ({ role, content }: ModelMessage) =>
      role === 'user' && content.startsWith('# CURRENT PLAN')
    const { requests, memory } = await written(
      `<parallel>${plans({ id: 'first', task: 'look' }, { id: 'then', task: 'look again' })}${look('a')}</parallel>${go}`,
      `${look('b')}${go}`,
      `<parallel>${plans({ id: 'first', status: 'completed' })}${look('c')}</parallel>${go}`,
      `<parallel>${plans({ id: 'then', status: 'completed' })}${look('d')}</parallel>${go}`,
      answer('ok'),
    )
    expect(memory.ended?.result.answer).toBe('ok')
    const said = requests.map(({ messages }) => messages.filter(isPlan).map(({ content }) => content))
    expect(said.at(-1)?.length).toBeGreaterThan(2)
    expect(new Set(said.at(-1)).size).toBe(said.at(-1)?.length)
    for (const [at, { messages }] of requests.entries())
      expect((requests[at + 1]?.messages ?? messages).slice(0, messages.length)).toEqual(messages)
  })

  test('and so it is after a refused reply that is too long to go back, or is white space', async () => {
    const { requests, plans, memory } = await written(
      `<parallel>${'x'.repeat(250_000)}`,
      ' \n',
      `${look('a')}${go}`,
      answer('ok'),
    )
    expect(memory.ended?.result.answer).toBe('ok')
    expect(requests).toHaveLength(4)
    for (const [at, { messages }] of requests.entries()) {
      expect((requests[at + 1]?.messages ?? messages).slice(0, messages.length)).toEqual(messages)
      // vendors refuse a message without a text
      expect(messages.filter(({ content }) => content.trim() === '')).toEqual([])
    }
    const { exchange } = readBlob(memory, plans[0]) as { exchange: { wrote: string }[] }
    expect(exchange.map(({ wrote }) => wrote.length)).toEqual([250_010, 0])
  })

  test('reads what it wrote back out of a blob', async () => {
    const long = 'y'.repeat(40_000)
    const { requests, plans } = await written(
      `<note_server><note>${long}</note></note_server>${go}`,
      answer('ok'),
    )
    expect(plans[0]?.result.wrote).toBeUndefined()
    expect(requests[1]?.messages.at(-2)?.content).toBe(`<note_server><note>${long}</note></note_server>${go}`)
  })
})

describe('a route with models of both dialects', () => {
  const down = new MasonError('model_unavailable', 'down')

  test('goes on with the other dialect in the same action, and the trajectory is mixed', async () => {
    const first = `<think>mine</think>${look('a')}${go}`
    const { plans, requests, memory, actions } = await run(
      ['xml', 'tools'],
      [
        { text: first, by: 'x' },
        down,
        {
          text: 'Then b.',
          tool_calls: [{ name: 'look', arguments: { q: 'b' } }],
          reasoning: 'private',
          by: 'n',
        },
        { text: answer('both') },
      ],
    )
    expect(memory.ended?.result.answer).toBe('both')
    expect(requests.map(({ dialect, hasOthers }) => [dialect, hasOthers])).toEqual([
      ['xml', true],
      ['xml', true],
      ['tools', undefined],
      ['xml', true],
    ])
    expect(plans.map(({ result }) => result.dialect)).toEqual(['xml', 'tools', 'xml'])
    // the step that was written, as native calls
    expect(requests[2]?.messages.at(-2)).toMatchObject({
      role: 'assistant',
      tool_calls: [{ name: 'look', arguments: '{"q":"a"}' }],
      reasoning: { by: 'x' },
    })
    expect(requests[2]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: expect.stringContaining('seen a'),
    })
    // the native step, written out, without what its model thought
    expect(requests[3]?.messages.at(-2)?.content).toBe(`<think>Then b.</think>\n${look('b')}\n${go}`)
    expect(JSON.stringify(requests[3]?.messages)).not.toContain('private')
    expect(renderTrajectory(actions, { serverOf: () => undefined, answer: 'both' }).origin).toBe('mixed')
  })

  test('keeps apart what each dialect was refused: what was written is in the trajectory, in the next prompt, and nothing else', async () => {
    const broken = `<parallel>${look('a')}`
    const native = (name: string, q: string) => ({ text: '', tool_calls: [{ name, arguments: { q } }] })
    const first = await run(
      ['xml', 'tools'],
      [{ text: broken }, down, native('look', 'b'), { text: answer('ok') }],
    )
    const put_back = expect.stringContaining('‹parallel> is not closed')
    expect(first.plans[0]?.result).toMatchObject({ dialect: 'tools' })
    expect(first.plans[0]?.result.exchange).toEqual([{ wrote: broken, put_back, dialect: 'xml' }])
    const mixed = renderTrajectory(first.actions, { serverOf: () => undefined, answer: 'ok' })
    expect(mixed.text.startsWith(`${broken}\n<result index="0">Error: `)).toBe(true)
    expect(mixed.text).toContain(`</result>\n${look('b')}\n${go}\n<result index="0">seen b</result>\n`)
    expect(mixed.origin).toBe('mixed')

    const second = await run(
      ['tools', 'xml'],
      [native('fly', 'a'), down, { text: `${look('b')}${go}` }, down, { text: answer('ok') }],
    )
    expect(second.memory.ended?.result.answer).toBe('ok')
    expect(second.plans[0]?.result).toMatchObject({ dialect: 'xml', exchange: [{ dialect: 'tools' }] })
    const written = renderTrajectory(second.actions, { serverOf: () => undefined, answer: 'ok' })
    expect(written).toEqual({
      text: `${look('b')}${go}\n<result index="0">seen b</result>\n${answer('ok')}`,
      origin: 'written',
    })
    expect(JSON.stringify(second.requests.at(-1)?.messages)).not.toContain('fly')
  })

  test('does not ask the other dialect where the request itself is refused', async () => {
    const refused = new MasonError('model_content_filtered', 'no')
    const { requests, memory } = await run(['xml', 'tools'], [refused])
    expect(requests).toHaveLength(1)
    expect(memory.ended?.outcome).toMatchObject({ status: 'failed', reason: 'model_content_filtered' })
  })
})

describe('the same decisions in both dialects', () => {
  type Step = { thinks?: string; says?: string; calls?: string[]; answer?: string; plan?: object }
  const native = ({ thinks = '', says = '', calls = [], answer: text, plan }: Step): Said => ({
    text: text ?? says,
    reasoning: thinks,
    tool_calls: [
      ...(plan ? [{ name: 'update_todos', arguments: plan }] : []),
      ...calls.map((q) => ({ name: 'look', arguments: { q } })),
    ],
  })
  const xml = ({ thinks, says = '', calls = [], answer: text, plan }: Step): Said => {
    const made = [...(plan ? [todos(JSON.stringify(plan))] : []), ...calls.map(look)]
    const block = made.length > 1 ? `<parallel>\n${made.join('\n')}\n</parallel>` : made[0]
    const parts = [
      thinks && `<think>${thinks}</think>`,
      says,
      block && `${block}\n${go}`,
      text && answer(text),
    ]
    return { text: parts.filter(Boolean).join('\n') }
  }
  /** Actions without what may differ. */
  const compare = (actions: readonly Action[]): unknown =>
    JSON.parse(
      JSON.stringify(actions, (key, value) =>
        [
          'wrote',
          'dialect',
          'started_at',
          'ended_at',
          'retry_after',
          'worked_ms',
          'exchange',
          'plan_calls',
          'usage',
        ].includes(key) ||
        (key === 'id' && typeof value === 'string' && value.startsWith('call_'))
          ? undefined
          : value,
      ),
    )
  const loops: Step[][] = Array.from({ length: 20 }, (_, nth) => {
    const period = 1 + (nth % 4)
    const width = 1 + (nth % 3)
    return Array.from({ length: 14 }, (_, at) => ({
      calls: Array.from({ length: width }, (_, one) =>
        nth % 5 === 4 && at < 6 ? `new ${at} ${one}` : `q${at % period} ${one}`,
      ),
      ...(nth % 2 === 0 && { thinks: `step ${at}` }),
      ...(nth % 3 === 0 && { says: `I look again, ${at}.` }),
    }))
  })

  test('give the same actions but for what was written, the dialect and the ids of calls', async () => {
    const steps: Step[] = [
      {
        thinks: 'A plan.',
        plan: {
          todos: [
            { id: 'a', task: 'do a' },
            { id: 'b', task: 'do b', dependencies: ['a'] },
          ],
        },
        calls: ['a'],
      },
      { says: 'Then two.', calls: ['b', 'c'] },
      { plan: { todos: [{ id: 'a', status: 'completed', reason: 'seen' }] }, calls: ['d'] },
      { thinks: 'Enough.', answer: 'Done.' },
    ]
    const a = await run(['tools'], steps.map(native))
    const b = await run(['xml'], steps.map(xml))
    expect(compare(b.actions)).toEqual(compare(a.actions))
    expect(b.memory.ended?.result.answer).toBe('Done.')
  })

  test.each(loops.map((steps, nth) => [nth + 1, steps] as const))(
    'loop %i ends after the same step',
    async (_, steps) => {
      const a = await run(['tools'], steps.map(native))
      const b = await run(['xml'], steps.map(xml))
      expect(checkProgress(b.state)).toEqual(checkProgress(a.state))
      expect(checkProgress(b.state).verdict).toBe('stop')
      expect(b.plans).toHaveLength(a.plans.length)
      expect(b.memory.ended?.outcome).toEqual(a.memory.ended?.outcome)
      expect(compare(b.actions)).toEqual(compare(a.actions))
    },
  )
})
