// backends: either

import { beforeEach, describe, expect } from 'vitest'
import { distillRuns } from '../../src/features/user-memory/store/distill-run.ts'
import type { Database } from '../../src/infra/database/database.ts'
import { silentLog } from '../../src/infra/lib/silent-log.ts'
import { unique } from '../support/backend.ts'
import type { TestServer } from '../support/http.ts'
import { startVendor, type Vendor, type VendorAnswer } from '../support/http-vendor.ts'
import { adminToken, closing, runtimeTest } from '../support/integration-test.ts'
import { claimDistillation, hashOnly } from '../support/memory.ts'
import { modelsOf } from '../support/memory-run.ts'
import { never } from '../support/models.ts'
import { eventsOf, type TestRuntime } from '../support/test-runtime.ts'

/** Replies as vendors send them, in runs and at the OpenAI-compatible endpoint. */

type Message = { role: string; content?: unknown; tool_calls?: { id: string }[]; tool_call_id?: string }
type Body = { messages: Message[]; tools?: { function: Record<string, unknown> }[]; max_tokens?: number }
type Script = (body: Body, nth: number) => VendorAnswer

const chunk = (delta: object | null, finish: string | null = null, more: object = {}) => ({
  ...{ id: 'c-1', object: 'chat.completion.chunk', created: 1, model: 'm' },
  choices: [
    {
      index: 0,
      ...(delta && { delta }),
      finish_reason: finish,
      ...('choice' in more && (more.choice as object)),
    },
  ],
  ...('usage' in more && { usage: more.usage }),
})
const usage = (prompt: number, completion: number) => ({
  usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
})
const whole = (message: object, more: object = usage(61, 7)) => ({
  ...{ id: 'c-1', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', ...message } }],
  ...more,
})
const call = (name: string, args: string, { id = 'call_aaaaaaaaaaaaaaaaaaaaaaaa', index = 0 } = {}) => ({
  ...{ index, id, type: 'function', function: { name, arguments: args } },
})
const stream = (...frames: unknown[]): VendorAnswer => ({
  headers: { 'content-type': 'text/event-stream' },
  body: [...frames, '[DONE]']
    .map((one) => `data: ${typeof one === 'string' ? one : JSON.stringify(one)}\n\n`)
    .join(''),
})
const says = (text: string, finish = 'stop') =>
  stream(chunk({ role: 'assistant', content: text }), chunk({}, finish, usage(10, 5)))
const calls = (...list: object[]) =>
  stream(chunk({ role: 'assistant', content: null, tool_calls: list }), chunk({}, 'tool_calls', usage(10, 5)))
const hasResults = ({ messages }: Body): boolean => messages.some(({ role }) => role === 'tool')

let runtime: TestRuntime
let database: Database
let server: TestServer
let vendor: Vendor
let second: Vendor
/** What the vendor answers by role; other roles get an answer that none can read, so that rules decide. */
let script: Record<string, Script> = {}
let others: Script = () => says('{}')

const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, { models: null })
  .extend(
    'vendor',
    { scope: 'file' },
    closing(() =>
      startVendor(({ headers, body }) => {
        const role = String(headers['x-mason-role'])
        const nth = vendor.requests.filter((one) => one.headers['x-mason-role'] === role).length
        return (script[role] ?? (() => says('{}')))(body as Body, nth)
      }),
    ),
  )
  .extend(
    'second',
    { scope: 'file' },
    closing(() => startVendor(({ body }, nth) => others(body as Body, nth))),
  )

const admin = async (path: string, json: unknown): Promise<string> => {
  const { status, body, text } = await server.call('POST', `/admin/v1${path}`, { token: adminToken, json })
  expect([status, text]).toEqual([201, text])
  return body.id
}
const addModel = async (name: string, base_url: string, more: object = {}): Promise<void> => {
  const id = await admin('/vendors', { name: unique(name) })
  await admin(`/vendors/${id}/keys`, { label: 'main', secret: 'sk-of-this-vendor-0123456789' })
  const endpoint_id = await admin(`/vendors/${id}/endpoints`, { name: 'main', base_url, protocol: 'openai' })
  await admin(`/vendors/${id}/models`, { name, upstream_name: 'command', endpoint_id, ...more })
}

test.beforeAll(async ({ opened, server: s, vendor: v, second: o }) => {
  ;({ runtime, database } = opened)
  ;[server, vendor, second] = [s, v, o]
  await addModel('big-model', vendor.url)
  await addModel('leaving', vendor.url)
  await addModel('other', second.url)
  await addModel('roomy', vendor.url, { max_output: 4000 })
  await addModel('spoken', vendor.url, { dialect: 'xml' })
  await addModel('flagged', vendor.url, { continuation: 'flag' })
  await admin('/routes', { category: 'text', models: [{ model: 'big-model' }] })
})
beforeEach(() => {
  script = {}
  vendor.requests.length = 0
})

const asked = (role: string) =>
  vendor.requests.filter(({ headers }) => headers['x-mason-role'] === role).map(({ body }) => body as Body)
const run = (request: object = {}) =>
  runtime.complete({ prompt: 'What is 12*3?', models: { planner: 'big-model' }, ...request })
const made = async (id: string, node = 'calculate') =>
  (await runtime.stateOf(id)).action_history.flat().filter((action) => action.node === node)
const chat = async (more: object = {}) => {
  const json = { model: 'big-model', messages: [{ role: 'user', content: 'When is high tide?' }], ...more }
  return server.call('POST', '/v1/chat/completions', { token: adminToken, json })
}
/** The endpoint and the planner get the same answer. */
const answerAll = (answer: Script): void => {
  script = { planner: answer, door: answer }
}

describe('a whole message after deltas', () => {
  test('replaces the same text, at the endpoint and in a run', async () => {
    const answer = () =>
      stream(
        chunk({ role: 'assistant', content: 'High at ' }, null, usage(0, 0)),
        chunk({ content: 'noon.' }, null, usage(0, 0)),
        whole({ content: 'High at noon.' }),
      )
    answerAll(answer)
    const { body } = await chat()
    expect(vendor.requests).toHaveLength(1)
    expect(body.choices[0].message.content).toBe('High at noon.')
    expect(body.usage.completion_tokens).toBe(7)
    expect((await run()).answer).toBe('High at noon.')
  })

  test('replaces another text: those who follow see a new attempt', async () => {
    answerAll(() => stream(chunk({ content: 'High at nine.' }), whole({ content: 'High at noon.' })))
    const view = await run()
    expect(view.answer).toBe('High at noon.')
    const events = await eventsOf(runtime.of('default'), view.id)
    expect(events.length).toBeGreaterThan(0)
  })

  test('has its call made once, also under another id', async () => {
    const again = { id: 'call_bbbbbbbbbbbbbbbbbbbbbbbb' }
    answerAll((body) =>
      hasResults(body)
        ? says('36')
        : stream(
            chunk({ tool_calls: [call('calculate', '{"expression":"12*3"}')] }),
            whole({ content: null, tool_calls: [call('calculate', '{"expression":"12*3"}', again)] }),
          ),
    )
    expect(await made((await run()).id)).toHaveLength(1)
  })

  test('comes in each event of some servers, with all that was said so far', async () => {
    const sofar = (content: string) => ({
      ...{ id: 'c-1', object: 'chat.completion.chunk' },
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: null }],
    })
    answerAll(() => stream(sofar('High'), sofar('High at'), sofar('High at noon.')))
    expect((await run()).answer).toBe('High at noon.')
  })
})

describe('a reply that failed', () => {
  test.for([
    [
      'an error in its choice',
      { choice: { error: { code: 502, message: 'Upstream disconnected' } } },
      'error',
    ],
    ['a reason that says so', {}, 'error'],
    ['an engine that was stopped', {}, 'abort'],
    ['no resources', {}, 'insufficient_system_resource'],
  ] as const)('is an error and no answer: %s', async ([, more, finish]) => {
    answerAll(() =>
      stream(
        chunk({ role: 'assistant', content: 'The first three are' }),
        chunk({ content: '' }, finish, more),
      ),
    )
    expect((await chat()).status).toBeGreaterThanOrEqual(500)
    const streamed = await chat({ stream: true })
    expect(streamed.text).not.toContain('[DONE]')
  })
})

describe('calls', () => {
  const two = (first: object, other: object) =>
    stream(chunk({ tool_calls: [first] }), chunk({ tool_calls: [other] }), chunk({}, 'tool_calls'))
  const sum = (expression: string) => JSON.stringify({ expression })
  test.for([
    [
      'index 0 and no id',
      two(call('calculate', sum('1+1'), { id: '' }), call('calculate', sum('2+3'), { id: '' })),
    ],
    ['index 0 and one id', two(call('calculate', sum('1+1')), call('calculate', sum('2+3')))],
    [
      'one list, index 0, no id',
      calls(call('calculate', sum('1+1'), { id: '' }), call('calculate', sum('2+3'), { id: '' })),
    ],
    [
      'parts whose name and id are repeated',
      stream(
        chunk({ tool_calls: [call('calculate', '{"expression":', { id: 'a' })] }),
        chunk({ tool_calls: [call('calculate', '"1+1"}', { id: 'a' })] }),
        chunk({ tool_calls: [call('calculate', sum('2+3'), { id: 'b' })] }),
        chunk({}, 'tool_calls'),
      ),
    ],
    [
      'indexes that are texts',
      stream(
        chunk({
          tool_calls: ['0', '1'].map((index) => ({ ...call('calculate', '', { id: index }), index })),
        }),
        chunk({ tool_calls: [{ index: '0', function: { arguments: sum('1+1') } }] }),
        chunk({ tool_calls: [{ index: '1', function: { arguments: sum('2+3') } }] }),
        chunk({}, 'tool_calls'),
      ),
    ],
    [
      'ids and no indexes',
      stream(
        chunk({
          tool_calls: ['a', 'b'].map((id) => ({ id, function: { name: 'calculate', arguments: '' } })),
        }),
        chunk({ tool_calls: [{ id: 'a', function: { arguments: sum('1+1') } }] }),
        chunk({ tool_calls: [{ id: 'b', function: { arguments: sum('2+3') } }] }),
        chunk({}, 'tool_calls'),
      ),
    ],
    [
      'empty arguments that the real ones follow',
      stream(
        chunk({ tool_calls: [call('calculate', '{}', { id: 'a' })] }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: sum('1+1') } }] }),
        chunk({ tool_calls: [call('calculate', sum('2+3'), { id: 'b', index: 1 })] }),
        chunk({}, 'tool_calls'),
      ),
    ],
  ] as const)('are separate: %s', async ([, answer]) => {
    answerAll((body) => (hasResults(body) ? says('2 and 5') : answer))
    const { body } = await chat({
      tools: [{ type: 'function', function: { name: 'calculate', parameters: { type: 'object' } } }],
    })
    const found = body.choices[0].message.tool_calls as { id: string; function: { arguments: string } }[]
    expect(found.map((one) => one.function.arguments)).toEqual([sum('1+1'), sum('2+3')])
    expect(new Set(found.map(({ id }) => id)).size).toBe(2)
    expect(await made((await run()).id)).toHaveLength(2)
  })

  test('have ids of another form where a vendor refuses theirs, the same for a call and its result', async () => {
    const route = await server.call('POST', '/admin/v1/routes', {
      token: adminToken,
      json: { role: 'planner', models: [{ model: 'leaving' }, { model: 'other' }] },
    })
    script = {
      planner: (body) =>
        hasResults(body)
          ? { status: 401, body: { error: { message: 'no' } } }
          : calls(call('calculate', '{"expression":"12*3"}', { id: 'call_PTLP8xhu3uwZk4l3nlnrrJha' })),
    }
    const idsOf = ({ messages }: Body) =>
      messages.flatMap((m) => [
        ...(m.tool_calls ?? []).map(({ id }) => id),
        ...(m.tool_call_id ? [m.tool_call_id] : []),
      ])
    others = (body) => {
      const bad = idsOf(body).find((id) => !/^[A-Za-z0-9]{9}$/.test(id))
      if (bad === undefined) return says('36')
      const message = `Tool call id was ${bad} but must be a-z, A-Z, 0-9, with a length of 9.`
      return { status: 400, body: { object: 'error', message, type: 'invalid_function_call', code: '3280' } }
    }
    expect((await run({ models: {} })).answer).toBe('36')
    const [one, ...rest] = idsOf(second.requests.at(-1)?.body as Body)
    expect(rest).toEqual([one])
    await server.call('DELETE', `/admin/v1/routes/${route.body.id}`, { token: adminToken })
  })

  test('hold integers beyond 2^53 as text with their digits', async () => {
    const digits = '251229204212100001'
    answerAll((body) => (hasResults(body) ? says('done') : calls(call('ask_user', `{"question":${digits}}`))))
    const view = await run()
    expect(view.status).toBe('input_required')
    expect(JSON.stringify(view.input_request)).toContain(digits)
    await runtime.of('default').cancel(view.id, 'seen')
  })
})

describe('thoughts in the text', () => {
  test.for([
    ['between tags that are split', ['<thi', 'nk>\nSimple product', '.\n</th', 'ink>\n\n', 'It is 36.']],
    ['of two blocks', ['<THINKING>One.</THINKING>\n<think>', 'Two.</think>It is 36.']],
    ['before a closing tag alone', ['12*3 is 36.\n', '</think>', '\n\nIt is 36.']],
    ['between other tags', ['[THINK]12*3[/THINK]It is 36.']],
  ] as const)('are not the answer: %s', async ([, parts]) => {
    answerAll(() => stream(...parts.map((content) => chunk({ content })), chunk({}, 'stop')))
    expect((await run()).answer).toBe('It is 36.')
    const { message } = (await chat()).body.choices[0]
    expect(message.content).toBe('It is 36.')
    expect(message.reasoning_content).not.toBe('')
  })

  test.for([
    'Write `<think>` and `</think>` around it.',
    'Like this:\n```\n<think>\nno\n</think>\n```\nThat is all.',
    'A < b, and the tag </think> ends it.',
  ])('stay where they are part of an answer: %s', async (text) => {
    answerAll(() => stream(...[...text].map((content) => chunk({ content })), chunk({}, 'stop')))
    expect((await run()).answer).toBe(text)
  })
})

describe('a reply that was cut', () => {
  const cut = 'The ten rules are: 1. Be clear. 2. Be'

  test.for([
    ['no arguments', call('calculate', '')],
    ['half of them', call('calculate', '{"expression":"12')],
    ['whole ones', call('calculate', '{"expression":"12*3"}')],
  ] as const)('has no call made, and the model learns why: %s', async ([, cutCall]) => {
    script = {
      planner: (_, nth) =>
        nth === 1
          ? stream(
              chunk({ content: 'I calculate.', tool_calls: [cutCall] }),
              chunk({}, 'length', usage(10, 4096)),
            )
          : says('done'),
    }
    const view = await run()
    expect(await made(view.id)).toEqual([])
    expect(view).toMatchObject({ status: 'completed', answer: 'done', finish_reason: 'answered' })
    expect(JSON.stringify(asked('planner')[1]?.messages)).toContain('cut at the output limit')
  })

  test('is continued once, and what the continuation repeats is dropped', async () => {
    script = {
      planner: (_, nth) => says(nth === 1 ? cut : '2. Be brief. 3. Be kind.', nth === 1 ? 'length' : 'stop'),
    }
    const view = await run()
    expect(view).toMatchObject({
      answer: 'The ten rules are: 1. Be clear. 2. Be brief. 3. Be kind.',
      finish_reason: 'answered',
    })
    expect(asked('planner')[1]?.messages.at(-2)).toMatchObject({ role: 'assistant', content: cut })
  })

  test('is continued after itself where the model takes a flag', async () => {
    script = { planner: (_, nth) => says(nth === 1 ? cut : ' brief.', nth === 1 ? 'length' : 'stop') }
    expect((await run({ models: { planner: 'flagged' } })).answer).toBe(`${cut} brief.`)
    expect(asked('planner')[1]?.messages.at(-1)).toMatchObject({
      role: 'assistant',
      content: cut,
      prefix: true,
    })
  })

  test('is asked for again with the full limit of its model', async () => {
    script = { planner: (_, nth) => says(nth === 1 ? cut : 'All ten.', nth === 1 ? 'length' : 'stop') }
    expect((await run({ models: { planner: 'roomy' } })).answer).toBe('All ten.')
    expect(asked('planner').map(({ max_tokens }) => max_tokens)).toEqual([undefined, 4000])
  })

  test('gets a higher limit where reasoning took all of it', async () => {
    script = {
      planner: (_, nth) =>
        nth === 1
          ? stream(chunk({ reasoning_content: 'Hm.' }), chunk({}, 'max_tokens', usage(10, 6000)))
          : says('It is 36.'),
    }
    expect((await run()).answer).toBe('It is 36.')
    expect(asked('planner').map(({ max_tokens }) => max_tokens)).toEqual([undefined, 12_000])
  })

  test.for([
    ['at the output limit', 'model_length', 'length', 2],
    ['by a content filter', 'content_filter', 'content_filter', 1],
  ] as const)(
    'completes the run with its reason where it stays cut, and nothing is learned from it: %s',
    async ([, said, reason, requests]) => {
      answerAll(() => says(cut, said))
      const prompt = 'I live in Lyon and I like tea. Name the ten rules.'
      const view = await run({ prompt, user_id: unique('u') })
      expect(view).toMatchObject({ status: 'completed', finish_reason: reason, answer: cut })
      expect(asked('planner')).toHaveLength(requests)
      const end = (await runtime.stateOf(view.id)).action_history.flat().at(-1)
      expect(end?.result).toMatchObject({ status: 'completed', reason })
      expect((await chat()).body.choices[0].finish_reason).toBe(reason)
      const models = modelsOf(() => {
        throw new Error('a model was asked what to learn')
      })
      const parts = { database, embedder: hashOnly, log: silentLog, modelsFor: () => models }
      for (
        let claim = await claimDistillation(database, 60_000);
        claim;
        claim = await claimDistillation(database, 60_000)
      )
        if (claim.run_id === view.id) await distillRuns(parts, [claim], never())
      const { rows } = await database.query('SELECT FROM distillations WHERE run_id = $1', [view.id])
      expect(rows).toEqual([])
    },
  )

  test('is not continued where it is JSON: it is asked for once more, shorter', async () => {
    const structure = [{ id: 'total', expected: 'the product', type: 'number' as const }]
    script = {
      planner: () => says('It is 36.'),
      output: (_, nth) => (nth === 1 ? says('{"total": 3', 'length') : says('{"total": 36}')),
    }
    const view = await run({ models: { planner: 'big-model', output: 'big-model' }, output: { structure } })
    expect(view.answer).toBe('{"total":36}')
    expect(asked('output')).toHaveLength(2)
    expect(JSON.stringify(asked('output')[1]?.messages.at(-1))).toContain('shorter')
  })
})

describe('a cut reply in the language of the dialogue', () => {
  const spoken = { models: { planner: 'spoken' } }

  test.for([
    ['within a call', '<mason_server><calculate>{"expression":"12'],
    ['after a call', '<mason_server><calculate>{"expression":"12*3"}</calculate></mason_server>'],
    [
      'after all of it',
      '<mason_server><calculate>{"expression":"12*3"}</calculate></mason_server>\n<execute_tools />',
    ],
  ] as const)('has no call made, and the model learns why: %s', async ([, text]) => {
    script = { planner: (_, nth) => (nth === 1 ? says(text, 'length') : says('<answer>done</answer>')) }
    const view = await run(spoken)
    expect(view).toMatchObject({ answer: 'done', finish_reason: 'answered' })
    expect(await made(view.id)).toEqual([])
    expect(JSON.stringify(asked('planner')[1]?.messages)).toContain('cut at the output limit')
  })

  test('has its call made where the vendor went on behind all of it: that was not written', async () => {
    const calls =
      '<mason_server><calculate>{"expression":"12*3"}</calculate></mason_server>\n<execute_tools />'
    script = {
      planner: (_, nth) => (nth === 1 ? says(`${calls}\nand so on`, 'length') : says('<answer>36</answer>')),
    }
    const view = await run(spoken)
    expect(view).toMatchObject({ answer: '36', finish_reason: 'answered' })
    expect(await made(view.id)).toHaveLength(1)
  })

  test('is continued within its answer, whose thoughts stay what they are', async () => {
    script = {
      planner: (_, nth) =>
        nth === 1
          ? says('<think>Ten of them.</think>\n<answer>The ten rules', 'length')
          : says('ten rules are: be kind.</answer>'),
    }
    expect(await run(spoken)).toMatchObject({
      answer: 'The ten rules are: be kind.',
      finish_reason: 'answered',
    })
  })

  test.for([
    ['length', 2],
    ['content_filter', 1],
  ] as const)(
    'gives the answer as far as it goes where it stays cut: %s',
    async ([finish_reason, requests]) => {
      script = { planner: () => says('<answer>The ten rules', finish_reason) }
      expect(await run(spoken)).toMatchObject({ answer: 'The ten rules', finish_reason })
      expect(asked('planner')).toHaveLength(requests)
    },
  )
})

describe('a reply that ended for a reason that is not known', () => {
  test('gives its text, and says so', async () => {
    answerAll(() => says('High at noon.', 'moon_phase'))
    expect(await run()).toMatchObject({
      status: 'completed',
      answer: 'High at noon.',
      finish_reason: 'unknown',
    })
    expect((await chat()).body.choices[0].finish_reason).toBe('unknown')
  })

  test('has no call made', async () => {
    script = {
      planner: (_, nth) =>
        nth === 1
          ? stream(
              chunk({ tool_calls: [call('calculate', '{"expression":"1+1"}')] }),
              chunk({}, 'moon_phase'),
            )
          : says('done'),
    }
    const view = await run()
    expect(view.answer).toBe('done')
    expect(await made(view.id)).toEqual([])
  })
})

describe('JSON within words', () => {
  const json = '{"total": 36}'
  test.for([
    `Using {a, b}: ${json}`,
    `${json}\n\nI left {mood} out.`,
    `<think>The fields are {total}.</think>\n${json}`,
    `Here it is {as asked}:\n\`\`\`json\n${json}\n\`\`\``,
    `${json}\n\nNote: {"confidence": 0.9}`,
    `First I had {"total": 35}. Then: ${json}`,
    `{ "answer": ${json} }`,
    JSON.stringify(json),
    `He said { and "}" and then ${json}`,
  ])('is found: %s', async (text) => {
    script = { planner: () => says('It is 36.'), output: () => says(text) }
    const view = await run({
      models: { planner: 'big-model', output: 'big-model' },
      output: { structure: [{ id: 'total', expected: 'the product', type: 'number' }] },
    })
    expect([view.answer, view.output_errors]).toEqual(['{"total":36}', []])
  })
})

describe('on the way to a vendor and back', () => {
  test('`strict` of a tool reaches a vendor that has it', async () => {
    script = { door: () => says('ok') }
    const parameters = { type: 'object', properties: {}, additionalProperties: false }
    const tool = (name: string, more: object) => ({
      type: 'function',
      function: { name, parameters, ...more },
    })
    await chat({ tools: [tool('f', { strict: true }), tool('g', { strict: false }), tool('h', {})] })
    expect(asked('door')[0]?.tools?.map((one) => one.function.strict)).toEqual([true, false, undefined])
  })

  test('an alias replaces the name of a model as a whole word only', async () => {
    const message = "Too many commands; recommanded: one. Model command refused: command's end."
    answerAll(() => ({ status: 400, body: { error: { message, type: 'invalid_request_error' } } }))
    const view = await run()
    const shown = "Too many commands; recommanded: one. Model big-model refused: big-model's end."
    expect(view.error?.message).toContain(shown)
  })

  test('a placeholder of the usage replaces no counts', async () => {
    answerAll(() =>
      stream(chunk({ content: 'High' }, null, usage(61, 7)), chunk({}, 'stop', usage(0, 0)), {
        choices: [],
        ...usage(0, 0),
      }),
    )
    expect((await chat()).body.usage).toMatchObject({
      prompt_tokens: 61,
      completion_tokens: 7,
      total_tokens: 68,
    })
  })
})
