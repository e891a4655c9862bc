import { describe, expect, test } from 'vitest'
import { withScenario } from '../../src/graph/scenario-defaults.ts'
import { MasonError } from '../../src/state/errors.ts'
import type { Embeddings } from '../../src/state/ports/embeddings.ts'
import type { ModelRequest } from '../../src/state/ports/models.ts'
import type { AdmittedRequest } from '../../src/state/run-request.ts'
import type { Scenario, Scenarios } from '../../src/state/scenario.ts'
import { checkInvariants } from '../support/invariants.ts'
import { memoryRun, modelsOf, type Said, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'

const scenario = (more: Partial<Scenario> = {}): Scenario => ({
  name: 'support',
  description: '',
  examples: [],
  prompts: {},
  tools: null,
  output_tool: null,
  limits: {},
  models: {},
  rules: [],
  ...more,
})

const rowsOf = (...rows: Scenario[]) => ({
  list: () => rows,
  find: (name: string) => rows.find((row) => row.name === name) ?? null,
})

const usual = (role: ModelRequest['role'], nth: number): Said =>
  role === 'planner' && nth === 1
    ? { tool_calls: [{ name: 'shout', arguments: {} }] }
    : { text: role === 'output' ? '{"answer":"Written."}' : 'Done.' }

const walked = async (
  request: Partial<AdmittedRequest>,
  row: Scenario,
  think: (request: ModelRequest, nth: number) => Said = ({ role }, nth) => usual(role, nth),
) => {
  const graph = await graphWith([
    callTool('shout', () => 'AH', false),
    callTool('whisper', () => 'ah', false),
  ])
  const memory = memoryRun({ prompt: 'x', ...request })
  const models = modelsOf(think)
  const { state } = await workOn(graph, memory, { models, scenarios: rowsOf(row) })
  checkInvariants(state)
  const asked = (role: string) => models.requests.filter((asked) => asked.role === role)
  return {
    state,
    asked,
    nodes: memory.rows.map(({ body }) => body.node),
    outcome: memory.ended?.outcome,
    memory,
  }
}

describe('a request in a scenario', () => {
  test('takes what it does not set itself from the row, member by member', () => {
    const row = scenario({
      tools: ['a'],
      output_tool: 'report',
      limits: { max_steps: 5, max_tokens: 9 },
      models: { planner: 'p', output: 'o', understand: 'u' },
    })
    const base = { prompt: 'x', user_id: 'u', files: [] }
    expect(withScenario(base, row)).toMatchObject({
      tools: ['a'],
      output: { tool: 'report' },
      limits: { max_steps: 5, max_tokens: 9 },
      models: { planner: 'p', output: 'o' },
    })
    const own = {
      tools: ['b'],
      output: { tool: 'answer', style: 's' },
      limits: { max_steps: 7 },
      models: { planner: 'q' },
    }
    expect(withScenario({ ...base, ...own }, row)).toMatchObject({
      ...own,
      limits: { max_steps: 7, max_tokens: 9 },
      models: { planner: 'q', output: 'o' },
    })
    expect(withScenario(base, null)).toBe(base)
  })

  test('shows the planner the tools of the row only, with its prompt and model', async () => {
    const { asked } = await walked(
      { scenario: 'support' },
      scenario({ tools: ['shout'], prompts: { planner: 'Be loud.' }, models: { planner: 'strong' } }),
    )
    const [first] = asked('planner')
    expect(first?.tools?.map(({ name }) => name)).toEqual(['shout', 'update_todos', 'finish'])
    expect(first?.model).toBe('strong')
    expect(first?.messages[0]?.content).toMatch(/\n\n# Scenario: support\nBe loud\.$/)
  })

  test('answers through the output model and prompt of the row, also where a draft would have done', async () => {
    const { asked, memory } = await walked(
      { scenario: 'support' },
      scenario({ prompts: { output: 'Sign as Mason.' } }),
    )
    expect(asked('output')).toHaveLength(1)
    expect(asked('output')[0]?.messages[0]?.content).toContain('Sign as Mason.')
    expect(memory.ended?.result.answer).toBe('Written.')
  })

  test('ends at the limits of the row', async () => {
    const { outcome } = await walked({ scenario: 'support' }, scenario({ limits: { max_steps: 4 } }))
    expect(outcome).toEqual({ status: 'completed', reason: 'steps' })
  })

  test('has rules in the place of the models of its roles', async () => {
    const long = { prompt: 'Look into this. '.repeat(40), scenario: 'support' }
    const byModel = await walked(long, scenario())
    expect(byModel.asked('understand')).toHaveLength(1)
    expect(byModel.asked('reflection')).toHaveLength(1)
    const byRules = await walked(long, scenario({ rules: ['understand', 'reflection'] }))
    expect(byRules.asked('understand')).toEqual([])
    expect(byRules.asked('reflection')).toEqual([])
    expect(byRules.nodes).not.toContain('understand')
    expect(byRules.nodes).toContain('reflection')
  })

  test('with a name that is no row stays free text', async () => {
    const { state, asked, outcome } = await walked({ scenario: 'anything' }, scenario({ tools: [] }))
    expect(state.scenario).toBe('anything')
    expect(asked('planner')[0]?.tools?.map(({ name }) => name)).toContain('shout')
    expect(outcome).toEqual({ status: 'completed', reason: 'answered' })
  })
})

describe('in the next turn of a session', () => {
  const nextTurn = async (scenarios: Scenarios, first: Partial<AdmittedRequest>, analysed = '') => {
    const graph = await graphWith()
    const memory = memoryRun({ prompt: 'x', ...first })
    const models = modelsOf(({ role }) => ({ text: role === 'understand' ? analysed : 'Done.' }))
    const { state: before } = await workOn(graph, memory, { models, scenarios })
    Object.assign(memory, { turn: 2, ended: null, request: { prompt: 'y', user_id: 'u1', files: [] } })
    const { state } = await workOn(graph, memory, { models, scenarios })
    checkInvariants(state)
    const background = JSON.stringify(models.requests.at(-1)?.messages)
    return { scenarios: [before.scenario, state.scenario], background }
  }

  test('a row still holds, and free text does not', async () => {
    expect((await nextTurn(rowsOf(scenario()), { scenario: 'support' })).scenarios).toEqual([
      'support',
      'support',
    ])
    const named = await nextTurn(rowsOf(scenario()), { scenario: 'a wedding speech' })
    expect(named.scenarios).toEqual(['a wedding speech', ''])
    expect(named.background).not.toContain('wedding')
  })

  test('free text that understand proposed is gone', async () => {
    const proposed = JSON.stringify({ scenario: 'data question', task_goal: 'Count.' })
    const { scenarios } = await nextTurn(rowsOf(), { prompt: 'Count all of it. '.repeat(30) }, proposed)
    expect(scenarios).toEqual(['data question', ''])
  })
})

describe('a scenario that understand chooses', () => {
  const long = { prompt: 'Please help me with my order. '.repeat(20) }
  const chosen = JSON.stringify({ scenario: ' SUPPORT', task_goal: 'Help.' })
  const think = ({ role }: ModelRequest, nth: number): Said =>
    role === 'understand' ? { text: chosen } : usual(role, nth)

  test('has the name of its row, and applies from there on', async () => {
    const row = scenario({
      description: 'Orders and returns.',
      tools: ['shout'],
      prompts: { planner: 'Be kind.' },
    })
    const { state, asked } = await walked(long, row, think)
    expect(asked('understand')[0]?.messages[0]?.content).toContain('- support: Orders and returns.')
    expect(state.scenario).toBe('support')
    expect(asked('planner')[0]?.tools?.map(({ name }) => name)).toEqual(['shout', 'update_todos', 'finish'])
    expect(asked('planner')[0]?.messages[0]?.content).toContain('Be kind.')
  })

  test('brings its limits, the time among them', async () => {
    const { outcome, nodes } = await walked(long, scenario({ limits: { timeout_ms: 1 } }), think)
    expect(outcome).toEqual({ status: 'completed', reason: 'time' })
    expect(nodes).toEqual(['load-session', 'user-context', 'understand', 'end'])
  })

  test('is not searched for when the request names one, or the session has one', async () => {
    const { state, asked } = await walked({ ...long, scenario: 'own words' }, scenario(), think)
    expect(asked('understand')[0]?.messages[0]?.content).not.toContain('- support')
    expect(state.scenario).toBe('own words')
  })
})

describe('a short request without a scenario', () => {
  const orders = scenario({
    description: 'Orders and deliveries.',
    examples: ['Where is my order?', 'Wo ist meine Bestellung?', '我的订单什么时候发货？'],
    tools: ['shout'],
    prompts: { planner: 'Be kind.' },
  })
  const noOrders = 'Why do cats purr?'
  const played = async (prompt: string, rows: Scenario[], compare?: Embeddings['compare']) => {
    const memory = memoryRun({ prompt })
    const models = modelsOf(({ role }, nth) => usual(role, nth))
    const graph = await graphWith([callTool('shout', () => 'AH'), callTool('whisper', () => 'ah')])
    const settings = {
      models,
      scenarios: rowsOf(...rows),
      ...(compare && { services: { embeddings: { compare } } }),
    }
    const { state } = await workOn(graph, memory, settings)
    checkInvariants(state)
    const planner = models.requests.find(({ role }) => role === 'planner')
    return {
      scenario: state.scenario,
      status: memory.ended?.outcome.status,
      roles: new Set(models.requests.map(({ role }) => role)),
      tools: planner?.tools?.map(({ name }) => name),
      understood: memory.rows.find(({ body }) => body.node === 'understand')?.body.result,
    }
  }

  test('gets none by its words alone, and no model of understand is asked', async () => {
    const { scenario, roles, understood } = await played('Where is my order?', [orders])
    expect([scenario, understood]).toEqual(['', { by: 'rules' }])
    expect(roles).not.toContain('understand')
  })

  test('that fits no row stays without one', async () => {
    expect(await played(noOrders, [orders])).toMatchObject({ scenario: '', understood: { by: 'rules' } })
  })

  test('takes no step to choose where no row says what it is for', async () => {
    expect((await played(noOrders, [scenario()])).understood).toBeUndefined()
  })

  test('gets the row that is closest by the embedding model', async () => {
    const compare: Embeddings['compare'] = async (_text, standing) =>
      standing.map((one) => (one.includes('order') ? 0.8 : 0.3))
    const { scenario, tools, understood } = await played('Has it been dispatched yet?', [orders], compare)
    expect([scenario, understood]).toEqual(['support', { by: 'embedding', scenario: 'support' }])
    expect(tools).toEqual(['shout', 'update_todos', 'finish'])
  })

  test('is left to the planner where the embedding model fails', async () => {
    const compare = () => Promise.reject(new MasonError('model_unavailable', 'it is down'))
    expect(await played(noOrders, [orders], compare)).toMatchObject({ scenario: '', status: 'completed' })
  })
})
