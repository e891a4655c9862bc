// backends: either

import { describe, expect } from 'vitest'
import type { RunRequest } from '../../src/state/run-request.ts'
import type { RuntimeState } from '../../src/state/runtime-state.ts'
import { scenarioSchemas } from '../../src/state/scenario.ts'
import { estimateTokens } from '../../src/state/text/tokens.ts'
import { unique } from '../support/backend.ts'
import type { FakeModel, FakeReply } from '../support/fake-model/fake-model.ts'
import { runtimeTest } from '../support/integration-test.ts'
import { calling, say } from '../support/script.ts'
import type { TestRuntime } from '../support/test-runtime.ts'
import { addVendor } from '../support/vendors.ts'

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, { models: null })

/** Ten short requests that ask for a form: the style in their own words, and the names of the pieces. */
const requests: [prompt: string, style: string, pieces: string[]][] = [
  ['List our plans as a table, in a formal tone.', 'as a table, in a formal tone', []],
  ['Order 17: name, price, total', '', ['name', 'price', 'total']],
  ['Explain DNS in ten words.', 'in ten words', []],
  ['Give me the laptop as name, price and total, briefly.', 'briefly', ['name', 'price', 'total']],
  ['Unsere Tarife bitte als Tabelle, in förmlichem Ton.', 'als Tabelle, in förmlichem Ton', []],
  ['Bestellung 17: Name, Preis, Summe', '', ['Name', 'Preis', 'Summe']],
  ['Erkläre DNS kurz und knapp in Stichpunkten.', 'kurz und knapp in Stichpunkten', []],
  ['用表格列出套餐，语气正式。', '用表格列出套餐，语气正式', []],
  ['订单17：名称、价格、总计', '', ['名称', '价格', '总计']],
  ['用三句话解释DNS。', '用三句话', []],
]

const scripted = { models: { planner: 'm' } }
const output: FakeReply[] = [{ text: '{"answer":"Written."}' }]
const calculate: [string, object] = ['calculate', { expression: '1+1' }]

/** The state as the first action of this node left it. */
const stateAfter = async (runtime: TestRuntime, session: string, node: string): Promise<RuntimeState> => {
  const whole = await runtime.of('default').sessionState(session, { inline: false })
  const action = whole?.action_history.flat().find((one) => one.node === node)?.id ?? 0
  const state = await runtime.of('default').sessionState(session, { action, inline: false })
  if (!state) throw new Error(`no action of ${node}`)
  return state
}
const ask = async (runtime: TestRuntime, prompt: string, more: Partial<RunRequest> = scripted) => {
  const session_id = unique('s')
  const run = await runtime.complete({ prompt, session_id, ...more })
  expect(run).toMatchObject({ status: 'completed', error: null })
  return { session_id, run }
}
const formOf = ({ output_style, output_structure }: RuntimeState) => [
  output_style,
  output_structure.map(({ expected }) => expected),
]
const plannerTexts = (model: FakeModel): string[] =>
  model
    .requests('planner')
    .map(({ body }) => (body.messages as { content: string }[]).map(({ content }) => content).join('\n'))

describe('the offline model', () => {
  test.for(requests)('reads the form of: %s', async ([prompt, style, pieces], { runtime }) => {
    const { session_id } = await ask(runtime, prompt, {})
    expect(formOf(await stateAfter(runtime, session_id, 'planner'))).toEqual([style, pieces])
  })

  test('says it beside its first calls, and answers in it', async ({ runtime }) => {
    const { session_id, run } = await ask(runtime, '12 * 12? Briefly, in bullet points.', {})
    const state = await stateAfter(runtime, session_id, 'planner')
    expect(state.action_history.flat().at(-1)?.next).toEqual(['calculate'])
    expect(state.output_style).toBe('Briefly, in bullet points')
    expect(run.answer).toBe('- 12 * 12 = **144**')
  })
})

describe('a short request that asks for a form', () => {
  test.beforeAll(async ({ runtime, model }) => {
    await addVendor(runtime, unique('vendor'), model.baseUrl, { keys: ['k'], models: ['m'] })
  })
  test.beforeEach(({ model }) => model.reset())

  test.for(requests)(
    '%s: is taken from it where the first reply is text',
    async ([prompt, style, pieces], { model, runtime }) => {
      say(model, { planner: [{ text: 'Plain.' }], output })
      const { session_id } = await ask(runtime, prompt)
      const before = await stateAfter(runtime, session_id, 'planner')
      expect(formOf(before)).toEqual([style, pieces])
      expect(before.action_history.flat().at(-1)?.next).toEqual([
        pieces.length > 0 ? 'structured_answer' : 'answer',
      ])
    },
  )

  test.for(requests)(
    '%s: is set by the reply that finishes',
    async ([prompt, style, pieces], { model, runtime }) => {
      const structure = pieces.map((name, at) => ({ id: `p${at}`, expected: name, type: 'text' }))
      say(model, {
        planner: [
          calling([
            'finish',
            { answer: 'Plain.', ...(style && { style }), ...(pieces.length > 0 && { structure }) },
          ]),
        ],
        output,
      })
      const { session_id } = await ask(runtime, prompt)
      expect(formOf(await stateAfter(runtime, session_id, 'planner'))).toEqual([style, pieces])
    },
  )

  test.for(requests)(
    '%s: is set beside the first calls, and each prompt begins with the one before',
    async ([prompt, style, pieces], { model, runtime }) => {
      const structure = pieces.map((name, at) => `p${at} (text): ${name}`)
      const changes = {
        goal: 'To know it.',
        ...(style && { style }),
        ...(pieces.length > 0 && { structure }),
      }
      say(model, {
        planner: [
          calling(['update_todos', changes], calculate),
          calling(['calculate', { expression: '2+2' }]),
          { text: 'Four.' },
        ],
        output,
      })
      const { session_id } = await ask(runtime, prompt)
      const state = await stateAfter(runtime, session_id, 'planner')
      expect([...formOf(state), state.task_goals]).toEqual([style, pieces, ['To know it.']])
      const [first = '', second = '', third = ''] = plannerTexts(model)
      expect([second.startsWith(first), third.startsWith(second)]).toEqual([true, true])
      expect(second.slice(first.length)).toContain('# Goal')
      if (style) expect(second.slice(first.length)).toContain(`# Output style\n${style}`)
      expect(model.requests('output').length).toBeGreaterThan(0)
    },
  )

  test('has a style of its own words outside of the fence, and another within', async ({
    model,
    runtime,
  }) => {
    for (const [style, shown] of [
      ['In a Formal tone', /# Output style\nIn a Formal tone/],
      ['terse', /# Output style\n<data-\w+ agent>\nterse\n<\/data/],
    ] as const) {
      model.reset()
      say(model, { planner: [calling(['finish', { answer: 'Plain.', style }])], output })
      await ask(runtime, 'Say it in a  formal tone.')
      expect(JSON.stringify(model.requests('output')[0]?.body.messages).replaceAll('\\n', '\n')).toMatch(
        shown,
      )
    }
  })

  test('holds for its turn, and gives way to what requests have set', async ({ model, runtime }) => {
    const session_id = unique('s')
    const finish = calling([
      'finish',
      { answer: 'Plain.', style: 'terse', structure: ['n (number): count'], goal: 'Count.' },
    ])
    say(model, {
      planner: [calling(['finish', { answer: 'Plain.', style: 'terse', structure: ['n (number): count'] }])],
      output: [{ text: '{"n":7}' }],
    })
    const turn = async (more: Partial<RunRequest> = {}) => {
      const run = await runtime.complete({ prompt: 'How many?', session_id, ...scripted, ...more })
      return [run.answer, (await runtime.stateOf(run.id)).output_style]
    }
    expect(await turn()).toEqual(['{"n":7}', 'terse'])
    say(model, { planner: [{ text: 'Hello.' }], output })
    expect(await turn()).toEqual(['Hello.', ''])
    expect(await turn({ output: { style: 'kind' } })).toEqual(['Written.', 'kind'])
    say(model, { planner: [finish], output })
    expect(await turn({ output: { structure: [] } })).toEqual(['Written.', 'kind'])
    const state = await runtime.of('default').sessionState(session_id, { inline: false })
    expect(state?.task_goals.at(-1)).toBe('Count.')
  })

  test('keeps what a reply that only planned has set, where the next one is text', async ({
    model,
    runtime,
  }) => {
    say(model, {
      planner: [calling(['update_todos', { goal: 'G', style: 'terse' }]), { text: 'Plain.' }],
      output,
    })
    const { session_id } = await ask(runtime, 'Say hello.')
    const state = await stateAfter(runtime, session_id, 'planner')
    expect([state.output_style, state.task_goals]).toEqual(['terse', ['G']])
  })

  test('is no form of a later reply, and a call that says nothing is refused', async ({ model, runtime }) => {
    say(model, {
      planner: [
        calling(['update_todos', {}]),
        calling(calculate),
        calling(['finish', { answer: 'Two.', style: 'terse' }]),
      ],
      output,
    })
    const { run } = await ask(runtime, 'One and one?')
    expect([run.answer, (await runtime.stateOf(run.id)).output_style]).toEqual(['Two.', ''])
    expect(JSON.stringify(model.requests('planner')[1]?.body.messages)).toContain('update_todos says nothing')
  })

  test('makes the request of the planner at most 100 tokens longer', async ({ model, runtime }) => {
    say(model, { planner: [{ text: 'Plain.' }] })
    await ask(runtime, 'Hello')
    const { messages, tools } = (model.requests('planner')[0] as { body: object }).body as {
      messages: { content: string }[]
      tools: { function: { name: string; parameters: { properties: object } } }[]
    }
    const own = ['goal', 'style', 'structure']
    const before = tools.map(({ function: { name, parameters } }) => {
      const fields = Object.entries(parameters.properties)
      const isControl = ['update_todos', 'finish'].includes(name)
      const properties = Object.fromEntries(fields.filter(([field]) => !isControl || !own.includes(field)))
      return { type: 'function', function: { name, parameters: { ...parameters, properties } } }
    })
    const after = tools.map(({ function: { name, parameters } }) => ({
      type: 'function',
      function: { name, parameters },
    }))
    const isOther = (line: string): boolean => !line.includes('style and structure')
    const shorter = messages.map(({ content }) => content.split('\n').filter(isOther).join('\n'))
    const grown =
      estimateTokens(JSON.stringify([messages.map(({ content }) => content), after])) -
      estimateTokens(JSON.stringify([shorter, before]))
    expect(grown).toBeGreaterThan(50)
    expect(grown).toBeLessThanOrEqual(100)
  })
})

describe('a scenario without an embedding model', () => {
  const makeRow = ({ admin }: TestRuntime) =>
    admin.registry.scenarios.create(
      {},
      scenarioSchemas.input.parse({
        ...{ name: unique('garden'), description: 'Plants and watering.', tools: ['calculate'] },
        prompts: { planner: 'Be green.' },
      }),
    )

  test('is chosen by the first reply, which is asked again in it, and holds for the session', async ({
    model,
    runtime,
  }) => {
    model.reset()
    const { name: scenario } = await makeRow(runtime)
    say(model, {
      planner: [calling(['update_todos', { scenario }]), calling(calculate), { text: 'Watered.' }],
    })
    const { session_id, run } = await ask(runtime, 'Water the zinnias.')
    expect(run.answer).toBe('Watered.')
    const [choice, second, third] = model
      .requests('planner')
      .map(({ body }) => body as { messages: { content: string }[]; tools: { function: { name: string } }[] })
    expect(JSON.stringify(choice?.tools)).toContain(`${scenario}: Plants and watering.`)
    expect(choice?.messages[0]?.content).not.toContain('Be green.')
    for (const asked of [second, third]) {
      expect(asked?.messages[0]?.content).toContain('Be green.')
      expect(asked?.tools.map((tool) => tool.function.name)).toEqual(['calculate', 'update_todos', 'finish'])
      expect(JSON.stringify(asked?.tools)).not.toContain(scenario)
    }
    const state = await stateAfter(runtime, session_id, 'planner')
    expect(state.scenario).toBe(scenario)
    say(model, { planner: [{ text: 'Bye.' }] })
    const next = await runtime.complete({ prompt: 'Thanks!', session_id, ...scripted })
    expect((await runtime.stateOf(next.id)).scenario).toBe(scenario)
    expect(model.requests('understand')).toEqual([])
  })

  test('is none where the reply names none that there is', async ({ model, runtime }) => {
    model.reset()
    await makeRow(runtime)
    say(model, { planner: [calling(['update_todos', { scenario: 'nothing' }]), { text: 'Done.' }] })
    const { run } = await ask(runtime, 'Water the zinnias.')
    expect([run.answer, (await runtime.stateOf(run.id)).scenario]).toEqual(['Done.', ''])
  })
})
