// backends: either

import { describe, expect } from 'vitest'
import { scenarioViewSchema } from '../../src/state/scenario.ts'
import { unique } from '../support/backend.ts'
import type { FakeModel } from '../support/fake-model/fake-model.ts'
import type { Reply, TestServer } from '../support/http.ts'
import { startVendor } from '../support/http-vendor.ts'
import { adminToken, runtimeTest as test } from '../support/integration-test.ts'
import { calling, say } from '../support/script.ts'
import { nodesOf } from '../support/test-runtime.ts'

const call = (server: TestServer, method: string, path: string, json?: unknown): Promise<Reply> =>
  server.call(method, `/admin/v1${path}`, { token: adminToken, ...(json !== undefined && { json }) })
const make = async (server: TestServer, path: string, json: unknown): Promise<string> => {
  const { status, body, text } = await call(server, 'POST', path, json)
  expect([status, text]).toEqual([201, text])
  return body.id
}
const toolsShown = (model: FakeModel): string[] => {
  const tools = (model.requests('planner').at(-1)?.body.tools ?? []) as { function: { name: string } }[]
  return tools.map((tool) => tool.function.name)
}
const finish = (model: FakeModel) => {
  model.reset()
  say(model, { planner: [{ text: 'Done.' }], output: [{ text: '{"answer":"Written."}' }] })
}

describe('scenarios', () => {
  test('are added, shown, changed member by member, listed and deleted', async ({ server }) => {
    const name = unique('support')
    const made = await call(server, 'POST', '/scenarios', {
      name,
      examples: ['Where is my order?', '我的订单在哪里？'],
      prompts: { planner: 'Be kind.\nBe short.', output: 'Sign.' },
      tools: ['calculate'],
      limits: { max_steps: 9, max_tokens: 1000 },
      rules: ['understand'],
    })
    expect(made.status).toBe(201)
    const shown = scenarioViewSchema.parse(made.body)
    expect(shown).toMatchObject({
      name,
      description: '',
      examples: ['Where is my order?', '我的订单在哪里？'],
      output_tool: null,
      models: {},
      status: 'active',
    })
    const path = `/scenarios/${shown.id}`
    expect((await call(server, 'GET', path)).body).toEqual(shown)
    const change = {
      prompts: { output: null },
      limits: { max_tokens: null, timeout_ms: 5000 },
      tools: null,
      examples: ['Track my order'],
    }
    expect((await call(server, 'PATCH', path, change)).body).toMatchObject({
      name,
      prompts: { planner: 'Be kind.\nBe short.' },
      examples: ['Track my order'],
      limits: { max_steps: 9, timeout_ms: 5000 },
      tools: null,
      rules: ['understand'],
    })
    const changed = (await call(server, 'GET', path)).body
    expect([Object.keys(changed.prompts), Object.keys(changed.limits).sort()]).toEqual([
      ['planner'],
      ['max_steps', 'timeout_ms'],
    ])
    expect((await call(server, 'GET', '/scenarios')).body.data.map(({ id }: { id: string }) => id)).toContain(
      shown.id,
    )
    expect((await call(server, 'DELETE', path)).status).toBe(204)
    expect((await call(server, 'GET', path)).status).toBe(404)
  })

  test.for<[object, string]>([
    [{ tools: ['calculate', 'nothing'] }, '/tools/1'],
    [{ tools: ['calculate', 'calculate'] }, '/tools'],
    [{ output_tool: 'calculate' }, '/output_tool'],
    [{ models: { planner: 'unknown' } }, '/models/planner'],
    [{ models: { chef: 'x' } }, '/models/chef'],
    [{ rules: ['planner'] }, '/rules/0'],
    [{ prompts: { planner: 'a\u0000b' } }, '/prompts/planner'],
    [{ limits: { max_steps: 1 } }, '/limits/max_steps'],
    [{ name: '' }, '/name'],
    [{ examples: ['fine', ' '] }, '/examples/1'],
    [{ examples: ['two\nlines'] }, '/examples/0'],
  ])('%j is refused, naming the field', async ([more, pointer], { server }) => {
    const refused = await call(server, 'POST', '/scenarios', { name: unique('s'), ...more })
    expect(refused.status).toBe(422)
    expect(refused.body.errors[0].pointer).toBe(pointer)
  })

  test('have names of their own, and keep the models they name from being deleted', async ({
    model,
    server,
  }) => {
    const vendor = await make(server, '/vendors', { name: unique('acme') })
    const endpoint_id = await make(server, `/vendors/${vendor}/endpoints`, {
      name: 'main',
      base_url: model.baseUrl,
      protocol: 'openai',
    })
    const alias = unique('m')
    const id = await make(server, `/vendors/${vendor}/models`, {
      name: alias,
      upstream_name: 'm',
      endpoint_id,
    })
    const name = unique('s')
    const scenario = await make(server, '/scenarios', { name, models: { output: alias } })
    expect((await call(server, 'POST', '/scenarios', { name })).body.code).toBe('already_exists')
    const refused = await call(server, 'DELETE', `/vendors/${vendor}/models/${id}`)
    expect([refused.status, refused.body.users]).toEqual([409, [{ kind: 'scenario', id: scenario, name }]])
    await call(server, 'DELETE', `/scenarios/${scenario}`)
    expect((await call(server, 'DELETE', `/vendors/${vendor}/models/${id}`)).status).toBe(204)
  })
})

describe('a run in a scenario', () => {
  test('follows its row, and free text when the row is switched off', async ({ model, runtime, server }) => {
    const scenario = unique('s')
    const id = await make(server, '/scenarios', {
      name: scenario,
      tools: [],
      prompts: { planner: 'Be loud.' },
    })
    finish(model)
    await runtime.complete({ prompt: 'x', scenario })
    expect(toolsShown(model)).toEqual(['update_todos', 'finish'])
    expect(JSON.stringify(model.requests('planner').at(-1)?.body.messages)).toContain('Be loud.')
    await call(server, 'PATCH', `/scenarios/${id}`, { tools: ['calculate'], prompts: { planner: null } })
    finish(model)
    await runtime.complete({ prompt: 'x', scenario })
    expect(toolsShown(model)).toEqual(['calculate', 'update_todos', 'finish'])
    expect(JSON.stringify(model.requests('planner').at(-1)?.body.messages)).not.toContain('Be loud.')
    await call(server, 'PATCH', `/scenarios/${id}`, { status: 'disabled' })
    finish(model)
    const run = await runtime.complete({ prompt: 'x', scenario })
    expect(toolsShown(model).length).toBeGreaterThan(2)
    expect((await runtime.stateOf(run.id)).scenario).toBe(scenario)
  })

  test('holds for the later turns of its session, where the request says nothing else', async ({
    model,
    runtime,
    server,
  }) => {
    const [scenario, session_id] = [unique('s'), unique('ses')]
    await make(server, '/scenarios', { name: scenario, tools: ['calculate'], limits: { max_steps: 5 } })
    finish(model)
    await runtime.complete({ prompt: 'x', scenario, session_id })
    model.reset()
    say(model, { planner: [calling(['calculate', { expression: '1+1' }])] })
    const second = await runtime.complete({ prompt: 'y', session_id })
    expect(second.finish_reason).toBe('steps')
    expect(toolsShown(model)).toEqual(['calculate', 'update_todos', 'finish'])
    finish(model)
    const third = await runtime.complete({
      prompt: 'z',
      session_id,
      tools: ['ask_user'],
      limits: { max_steps: 50 },
    })
    expect(third.finish_reason).toBe('answered')
    expect(toolsShown(model)).toEqual(['ask_user', 'update_todos', 'finish'])
    expect(nodesOf(await runtime.stateOf(third.id))).toContain('planner')
  })

  test('is chosen by the embedding model, and left to the planner when that fails', async ({
    model,
    runtime,
    server,
  }) => {
    await using vendor = await startVendor(({ body }, nth) => {
      const { input } = body as { input: string[] }
      const toVector = (text: string): number[] => (/penguin|bird/.test(text) ? [1, 0] : [0, 1])
      const data = input.map((text, index) => ({ object: 'embedding', index, embedding: toVector(text) }))
      return nth > 2
        ? { status: 500 }
        : { body: { object: 'list', model: 'e', data, usage: { prompt_tokens: 1 } } }
    })
    const id = await make(server, '/vendors', { name: unique('acme') })
    const endpoint_id = await make(server, `/vendors/${id}/endpoints`, {
      name: 'main',
      base_url: `${vendor.url}/v1`,
      protocol: 'openai',
      categories: ['embedding'],
    })
    await make(server, `/vendors/${id}/keys`, { label: 'k', secret: 'sk-embedding' })
    const name = unique('embedder')
    await make(server, `/vendors/${id}/models`, {
      name,
      upstream_name: 'e',
      endpoint_id,
      category: 'embedding',
    })
    await make(server, '/routes', { role: 'embedding', models: [{ model: name }] })
    const scenario = unique('s')
    await make(server, '/scenarios', { name: scenario, examples: ['Feed the penguins in the aquarium'] })
    const ask = async (prompt: string): Promise<string> => {
      finish(model)
      const run = await runtime.complete({ prompt })
      expect(run.status).toBe('completed')
      return (await runtime.stateOf(run.id)).scenario
    }
    const isOffered = () => JSON.stringify(model.requests('planner').at(-1)?.body.tools).includes(scenario)
    expect(await ask('Those birds look hungry.')).toBe(scenario)
    expect(await ask('Who wrote Faust?')).toBe('')
    expect(isOffered()).toBe(false)
    const asked = vendor.requests.map(({ body }) => (body as { input: string[] }).input)
    expect(asked[0]).toEqual(
      expect.arrayContaining(['Those birds look hungry.', 'Feed the penguins in the aquarium']),
    )
    // what was embedded once is not sent again
    expect(asked[1]).toEqual(['Who wrote Faust?'])
    expect(await ask('Those birds are loud.')).toBe('')
    expect(isOffered()).toBe(true)
    expect(vendor.requests.length).toBeGreaterThan(2)
  })
})
