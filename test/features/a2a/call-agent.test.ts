// backends: either

import { describe, expect } from 'vitest'
import { queryOne } from '../../../src/infra/database/database.ts'
import { type Answer, startAgentServer } from '../../support/agent-servers.ts'
import { unique } from '../../support/backend.ts'
import { adminToken, closing, runtimeTest } from '../../support/integration-test.ts'
import { until } from '../../support/runs.ts'
import { calling, say } from '../../support/script.ts'
import { deadline, waitForOperator } from '../../support/test-runtime.ts'

/** Runs that call agents of other makers: servers on the SDK of either version of the protocol, on loopback. */

const secret = 'sk-of-the-agent-0123456789'
const publicUrl = 'https://mason.example'
const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, { config: { publicUrl } })
  .extend(
    'agents',
    { scope: 'file' },
    closing(async () => {
      const [current, legacy] = await Promise.all([startAgentServer('1.0'), startAgentServer('0.3')])
      const close = async () => void (await Promise.all([current.close(), legacy.close()]))
      return { '1.0': current, '0.3': legacy, close }
    }),
  )
  .extend(
    'admin',
    { scope: 'file' },
    ({ server }) =>
      (method: string, path: string, json?: unknown) =>
        server.call(method, `/admin/v1/businesses${path}`, { token: adminToken, json }),
  )
  /** A business with an agent `shop` of a version. */
  .extend(
    'addShop',
    { scope: 'file' },
    ({ agents, admin }) =>
      async (version: '1.0' | '0.3', more: object = {}) => {
        const business = unique('buyer')
        await admin('POST', '', { id: business, secrets: { agent_key: secret } })
        const agent = { name: 'shop', card_url: `${agents[version].url}/`, ...more }
        const { status, body, text } = await admin('POST', `/${business}/agents`, agent)
        expect(status, text).toBe(201)
        return { business, agent: agents[version], id: (body as { id: string }).id }
      },
  )
  /** What a call of a run left. */
  .extend(
    'runWith',
    { scope: 'file' },
    ({ runtime, model }) =>
      async (business: string, ...calls: object[]) => {
        say(model, { planner: [...calls.map((args) => calling(['call_agent', args])), { text: 'Done.' }] })
        const run = await runtime.complete({ prompt: 'Go on' }, { business })
        const actions = (await runtime.stateOf(run.id, business)).action_history.flat()
        return actions.filter(({ node }) => node === 'call_agent').map(({ result }) => result)
      },
  )

test.beforeEach(({ agents, model }) => {
  model.reset()
  for (const agent of [agents['1.0'], agents['0.3']])
    Object.assign(agent, {
      ...{ received: [], requests: [], loses: 0, canPush: false },
      answer: ({ text }: { text: string }): Answer => ({
        state: 'completed',
        artifacts: [[{ text: `You said: ${text}` }, { data: { price: 603.49 } }]],
      }),
    })
})

describe.each(['1.0', '0.3'] as const)('an agent of protocol %s', (version) => {
  test('is asked once, and its answer is a result that is not trusted', async ({ addShop, runWith }) => {
    const { business, agent } = await addShop(version)
    const [result] = await runWith(business, { agent: 'shop', message: 'Which makers have you?' })
    expect(result?.text).toContain('You said: Which makers have you?')
    expect(result?.text).toContain('{"price":603.49}')
    expect(result?.provenance).toBe('agent')
    expect(agent.received).toHaveLength(1)
    expect(agent.requests[0]?.headers['a2a-version']).toBe(version)
  })

  test('that asks for something is answered with its task', async ({ addShop, runWith, agents }) => {
    const { business, agent } = await addShop(version)
    agents[version].answer = ({ text, nth }) =>
      text === 'Buy one'
        ? { state: 'input-required', says: [{ text: 'Which colour?' }] }
        : { state: 'completed', artifacts: [[{ text: `Sold: ${text} ${nth > 0}` }]] }
    const [first] = await runWith(business, { agent: 'shop', message: 'Buy one' })
    expect(first?.text).toContain('Which colour?')
    const task_id = /task_id: ([\w-]+)/.exec(String(first?.text))?.[1]
    const [second] = await runWith(business, { agent: 'shop', message: 'red', task_id })
    expect(second?.text).toContain('Sold: red')
    expect(agent.received.map(({ taskId }) => taskId)).toEqual([task_id, task_id])
  })

  test('may work on a task while the run waits without a worker', async ({
    addShop,
    runtime,
    model,
    database,
  }) => {
    const { business, agent } = await addShop(version)
    agent.answer = () => ({ state: 'working' })
    say(model, {
      planner: [calling(['call_agent', { agent: 'shop', message: 'Search' }]), { text: 'Done.' }],
    })
    const { run } = await runtime.of(business).submit({ prompt: 'Go on', user_id: unique('user') })
    await until(
      'it waits',
      async () =>
        (await queryOne<{ status: string }>(database, 'SELECT status FROM runs WHERE run_id = $1', [run.id]))
          ?.status === 'waiting',
    )
    await agent.end(agent.received[0]?.taskId ?? '', {
      state: 'completed',
      artifacts: [[{ text: 'Three makers' }]],
    })
    expect((await runtime.of(business).wait(run.id, deadline())).status).toBe('completed')
    const actions = (await runtime.stateOf(run.id, business)).action_history.flat()
    expect(actions.find(({ node }) => node === 'call_agent')?.result.text).toContain('Three makers')
  })

  test('that can push is asked to, and a push lets the run look at once', async ({
    addShop,
    agents,
    runtime,
    model,
    database,
    server,
  }) => {
    agents[version].canPush = true
    const { business, agent } = await addShop(version)
    agent.answer = () => ({ state: 'working' })
    say(model, {
      planner: [calling(['call_agent', { agent: 'shop', message: 'Search' }]), { text: 'Done.' }],
    })
    const { run } = await runtime.of(business).submit({ prompt: 'Go on', user_id: unique('user') })
    const readPollIn = async (): Promise<number> =>
      (
        await queryOne<{ seconds: number }>(
          database,
          'SELECT extract(epoch FROM poll_at - clock_timestamp())::float8 AS seconds FROM waits JOIN runs USING (tenant, run_id) WHERE run_id = $1 AND status = $2',
          [run.id, 'waiting'],
        )
      )?.seconds ?? 0
    await until('it looks again in a minute', async () => (await readPollIn()) > 30)
    const { pushUrl } = agent.requests[0] ?? {}
    expect(pushUrl).toMatch(/^https:\/\/mason\.example\/a2a\/push\/[\w-]+$/)
    await agent.end(agent.received[0]?.taskId ?? '', {
      state: 'completed',
      artifacts: [[{ text: 'Three makers' }]],
    })
    const forged = { id: 'x', kind: 'task', status: { state: 'failed' } }
    const push = (path: string) => server.call('POST', path, { json: forged })
    for (const id of ['no-such-message', 'a%20b', '%00', 'x'.repeat(300)])
      expect([id, (await push(`/a2a/push/${id}`)).status]).toEqual([id, 204])
    expect(await readPollIn()).toBeGreaterThan(30)
    expect((await push(pushUrl?.slice(publicUrl.length) ?? '')).status).toBe(204)
    expect((await runtime.of(business).wait(run.id, deadline())).status).toBe('completed')
    const actions = (await runtime.stateOf(run.id, business)).action_history.flat()
    expect(actions.find(({ node }) => node === 'call_agent')?.result.text).toContain('Three makers')
  })

  test('that refuses, fails or is away is an error for the model', async ({ addShop, runWith, admin }) => {
    const { business, agent, id } = await addShop(version)
    agent.answer = () => ({ state: 'failed', says: [{ text: 'Missing cart_id.' }] })
    const calls = await runWith(
      business,
      { agent: 'shop', message: 'Pay' },
      { agent: 'shop', message: 'Pay', task_id: 'no-such-task' },
      { agent: 'no-such-agent', message: 'Pay' },
    )
    expect(calls.map(({ is_error }) => is_error)).toEqual([true, true, true])
    expect(calls[0]?.text).toContain('Missing cart_id.')
    expect(calls[1]?.text).toContain('shop refused')
    expect(calls[2]?.text).toContain('choose one of these: shop')
    const { body } = await admin('GET', `/${business}/agents/${id}`)
    expect(body).toMatchObject({
      card: { protocol_version: expect.stringContaining(version), binding: 'JSONRPC' },
    })
  })

  test('gets the headers of its row, which neither state nor admin API shows filled in', async ({
    addShop,
    runWith,
    admin,
  }) => {
    const headers = { Authorization: 'Bearer {secrets.agent_key}' }
    const { business, agent } = await addShop(version, { headers, roles: ['merchant'] })
    agent.answer = () => ({ state: 'completed', says: [{ text: `Your key is ${secret}` }] })
    const [result] = await runWith(business, { agent: 'shop', message: 'Hello' })
    expect(agent.requests[0]?.headers.authorization).toBe(`Bearer ${secret}`)
    const extensions = agent.requests[0]?.headers[version === '1.0' ? 'a2a-extensions' : 'x-a2a-extensions']
    expect(extensions).toContain('https://github.com/google-agentic-commerce/ap2/v1')
    expect(JSON.stringify(result)).not.toContain(secret)
    expect((await admin('GET', `/${business}/agents`)).text).not.toContain(secret)
  })
})

describe('a lost answer', () => {
  test('of 1.0 is found by the id of the message, which is not carried out again', async ({
    addShop,
    runWith,
    agents,
  }) => {
    const { business, agent } = await addShop('1.0')
    agents['1.0'].loses = 1
    const [result] = await runWith(business, { agent: 'shop', message: 'Buy one' })
    expect(result?.text).toContain('You said: Buy one')
    expect(agent.received).toHaveLength(1)
    expect(agent.requests.map(({ method }) => method)).toEqual(['SendMessage', 'ListTasks'])
  })

  test('in an open task is found by the task, in both versions', async ({ addShop, runWith, agents }) => {
    for (const version of ['1.0', '0.3'] as const) {
      const { business, agent } = await addShop(version)
      agents[version].answer = ({ text }) =>
        text === 'Buy'
          ? { state: 'input-required', says: [{ text: 'Colour?' }] }
          : { state: 'completed', says: [{ text: 'Sold' }] }
      const [first] = await runWith(business, { agent: 'shop', message: 'Buy' })
      const task_id = /task_id: ([\w-]+)/.exec(String(first?.text))?.[1]
      agents[version].loses = 1
      const [second] = await runWith(business, { agent: 'shop', message: 'red', task_id })
      expect(second?.text).toContain('Sold')
      expect(agent.received).toHaveLength(2)
    }
  })

  test('of 0.3 is unknown: an operator says what happened, and nothing is sent again', async ({
    addShop,
    runtime,
    model,
    agents,
  }) => {
    const { business, agent } = await addShop('0.3')
    agents['0.3'].loses = 1
    say(model, { planner: [calling(['call_agent', { agent: 'shop', message: 'Buy' }]), { text: 'Done.' }] })
    const api = runtime.of(business)
    const { run } = await api.submit({ prompt: 'Go on', user_id: unique('user') })
    const { effect_id } = await waitForOperator(runtime, run.id, business)
    await runtime.admin.effects.resolve(effect_id, { took_place: true })
    expect((await api.wait(run.id, deadline())).status).toBe('completed')
    expect(agent.received).toHaveLength(1)
  })
})

describe('the agents of a business', () => {
  test('are added, changed and deleted; bad ones are refused with the field', async ({
    admin,
    addShop,
    agents,
  }) => {
    const { business, id } = await addShop('1.0')
    const url = agents['1.0'].url
    const refused = async (agent: object) => {
      const { status, text } = await admin('POST', `/${business}/agents`, { name: 'x', ...agent })
      return [status, text] as const
    }
    expect(await refused({ card_url: url, name: 'shop' })).toEqual([409, expect.stringContaining('already')])
    for (const agent of [
      { card_url: 'ftp://x.example' },
      { card_url: url, allow_private: false },
      { card_url: 'http://127.0.0.1:1/' },
    ])
      expect(await refused(agent)).toEqual([422, expect.stringContaining('/card_url')])
    expect(await refused({ card_url: url, roles: ['king'] })).toEqual([
      422,
      expect.stringContaining('/roles/0'),
    ])
    expect(await refused({ card_url: url, headers: { Authorization: '{secrets.none}' } })).toEqual([
      expect.any(Number),
      expect.stringContaining('secret that is missing'),
    ])
    const changed = await admin('PATCH', `/${business}/agents/${id}`, {
      roles: ['merchant'],
      card_url: agents['0.3'].url,
    })
    expect(changed.body).toMatchObject({ roles: ['merchant'], card: { protocol_version: '0.3.0' } })
    expect((await admin('DELETE', `/${business}/agents/${id}`)).status).toBe(204)
    expect((await admin('GET', `/${business}/agents/${id}`)).status).toBe(404)
  })

  test('are offered to its runs alone', async ({ addShop, runWith, model, runtime }) => {
    const { business } = await addShop('1.0')
    const offers = () =>
      JSON.stringify(model.requests('planner').at(-1)?.tools ?? []).includes('"call_agent"')
    await runWith(business, { agent: 'shop', message: 'Hello' })
    expect(offers()).toBe(true)
    say(model, { planner: [{ text: 'Done.' }] })
    await runtime.complete({ prompt: 'Go on' })
    expect(offers()).toBe(false)
  })
})
