import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scenarioViewSchema } from '../../src/state/registry/scenario.ts'
import { type Backend, openBackend, unique } from '../support/backend.ts'
import { type FakeModel, startFakeModel } from '../support/fake-model.ts'
import { type Reply, startServer, type TestServer } from '../support/http.ts'
import { calling, say } from '../support/script.ts'
import { fakeModels, nodesOf, openTestRuntime, type TestRuntime } from '../support/test-runtime.ts'

const admin = 'the-admin-token-of-this-test'
let backend: Backend
let model: FakeModel
let runtime: TestRuntime
let server: TestServer

beforeAll(async () => {
  backend = await openBackend()
  model = await startFakeModel()
  runtime = await openTestRuntime(backend, { models: fakeModels(model.baseUrl) })
  server = await startServer({ runtime, auth: 'required', adminToken: admin })
})
afterAll(async () => {
  await server?.close()
  await runtime?.close()
  await model?.close()
  await backend?.drop()
})

const call = (method: string, path: string, json?: unknown): Promise<Reply> =>
  server.call(method, `/admin/v1${path}`, { token: admin, ...(json !== undefined && { json }) })
const make = async (path: string, json: unknown): Promise<string> => {
  const { status, body, text } = await call('POST', path, json)
  expect([status, text]).toEqual([201, text])
  return body.id
}
const toolsShown = (): string[] => {
  const tools = (model.requests('planner').at(-1)?.body.tools ?? []) as { function: { name: string } }[]
  return tools.map((tool) => tool.function.name)
}
const finish = () => {
  model.reset()
  say(model, { planner: [{ text: 'Done.' }], output: [{ text: '{"answer":"Written."}' }] })
}

describe('scenarios', () => {
  test('are added, shown, changed member by member, listed and deleted', async () => {
    const name = unique('support')
    const made = await call('POST', '/scenarios', {
      name,
      prompts: { planner: 'Be kind.\nBe short.', output: 'Sign.' },
      tools: ['calculate'],
      limits: { max_steps: 9, max_tokens: 1000 },
      rules: ['understand'],
    })
    expect(made.status).toBe(201)
    const shown = scenarioViewSchema.parse(made.body)
    expect(shown).toMatchObject({ name, description: '', output_tool: null, models: {}, status: 'active' })
    const path = `/scenarios/${shown.id}`
    expect((await call('GET', path)).body).toEqual(shown)
    const change = { prompts: { output: null }, limits: { max_tokens: null, timeout_ms: 5000 }, tools: null }
    expect((await call('PATCH', path, change)).body).toMatchObject({
      name,
      prompts: { planner: 'Be kind.\nBe short.' },
      limits: { max_steps: 9, timeout_ms: 5000 },
      tools: null,
      rules: ['understand'],
    })
    const changed = (await call('GET', path)).body
    expect([Object.keys(changed.prompts), Object.keys(changed.limits).sort()]).toEqual([
      ['planner'],
      ['max_steps', 'timeout_ms'],
    ])
    expect((await call('GET', '/scenarios')).body.data.map(({ id }: { id: string }) => id)).toContain(
      shown.id,
    )
    expect((await call('DELETE', path)).status).toBe(204)
    expect((await call('GET', path)).status).toBe(404)
  })

  test.each([
    [{ tools: ['calculate', 'nothing'] }, '/tools/1'],
    [{ tools: ['calculate', 'calculate'] }, '/tools'],
    [{ output_tool: 'calculate' }, '/output_tool'],
    [{ models: { planner: 'nobody' } }, '/models/planner'],
    [{ models: { chef: 'x' } }, '/models/chef'],
    [{ rules: ['planner'] }, '/rules/0'],
    [{ prompts: { planner: 'a\u0000b' } }, '/prompts/planner'],
    [{ limits: { max_steps: 1 } }, '/limits/max_steps'],
    [{ name: '' }, '/name'],
  ])('%j is refused, naming the field', async (more, pointer) => {
    const refused = await call('POST', '/scenarios', { name: unique('s'), ...more })
    expect(refused.status).toBe(422)
    expect(refused.body.errors[0].pointer).toBe(pointer)
  })

  test('have names of their own, and keep the models they name from being deleted', async () => {
    const vendor = await make('/vendors', { name: unique('acme') })
    const endpoint_id = await make(`/vendors/${vendor}/endpoints`, {
      name: 'main',
      base_url: model.baseUrl,
      protocol: 'openai',
    })
    const alias = unique('m')
    const id = await make(`/vendors/${vendor}/models`, { name: alias, upstream_name: 'm', endpoint_id })
    const name = unique('s')
    const scenario = await make('/scenarios', { name, models: { output: alias } })
    expect((await call('POST', '/scenarios', { name })).body.code).toBe('already_exists')
    const refused = await call('DELETE', `/vendors/${vendor}/models/${id}`)
    expect([refused.status, refused.body.users]).toEqual([409, [{ kind: 'scenario', id: scenario, name }]])
    await call('DELETE', `/scenarios/${scenario}`)
    expect((await call('DELETE', `/vendors/${vendor}/models/${id}`)).status).toBe(204)
  })
})

describe('a run in a scenario', () => {
  test('works by its row as it stands, and by free text when it is switched off', async () => {
    const scenario = unique('s')
    const id = await make('/scenarios', { name: scenario, tools: [], prompts: { planner: 'Be loud.' } })
    finish()
    await runtime.complete({ prompt: 'x', scenario })
    expect(toolsShown()).toEqual(['update_todos'])
    expect(JSON.stringify(model.requests('planner').at(-1)?.body.messages)).toContain('Be loud.')
    await call('PATCH', `/scenarios/${id}`, { tools: ['calculate'], prompts: { planner: null } })
    finish()
    await runtime.complete({ prompt: 'x', scenario })
    expect(toolsShown()).toEqual(['calculate', 'update_todos'])
    expect(JSON.stringify(model.requests('planner').at(-1)?.body.messages)).not.toContain('Be loud.')
    await call('PATCH', `/scenarios/${id}`, { status: 'disabled' })
    finish()
    const run = await runtime.complete({ prompt: 'x', scenario })
    expect(toolsShown().length).toBeGreaterThan(2)
    expect((await runtime.stateOf(run.id)).scenario).toBe(scenario)
  })

  test('holds for the later turns of its session, where the request says nothing else', async () => {
    const [scenario, session_id] = [unique('s'), unique('ses')]
    await make('/scenarios', { name: scenario, tools: ['calculate'], limits: { max_steps: 5 } })
    finish()
    await runtime.complete({ prompt: 'x', scenario, session_id })
    model.reset()
    say(model, { planner: [calling(['calculate', { expression: '1+1' }])] })
    const second = await runtime.complete({ prompt: 'y', session_id })
    expect(second.finish_reason).toBe('steps')
    expect(toolsShown()).toEqual(['calculate', 'update_todos'])
    finish()
    const third = await runtime.complete({
      prompt: 'z',
      session_id,
      tools: ['ask_user'],
      limits: { max_steps: 50 },
    })
    expect(third.finish_reason).toBe('answered')
    expect(toolsShown()).toEqual(['ask_user', 'update_todos'])
    expect(nodesOf(await runtime.stateOf(third.id))).toContain('planner')
  })
})
