// backends: either

import { describe, expect } from 'vitest'
import type { ActionView } from '../../../src/state/run-view.ts'
import { unique } from '../../support/backend.ts'
import type { TestServer } from '../../support/http.ts'
import { adminToken, runtimeTest } from '../../support/integration-test.ts'
import { until } from '../../support/runs.ts'
import { addVendor } from '../../support/vendors.ts'

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, { models: null })
const calculate = { tool_calls: [{ name: 'calculate', arguments: { expression: '1+1' } }] }
const session = unique('s')
const path = `/v1/sessions/${session}`
const vendorName = unique('vendor')
let server: TestServer

const get = (of: string, token: string = adminToken) => server.call('GET', of, { token })
const idsOf = async (query: string): Promise<[ids: number[], more: boolean]> => {
  const { status, body } = await get(`${path}/actions?${query}`)
  expect(status).toBe(200)
  return [body.data.map(({ id }: ActionView) => id), body.has_more]
}

test.beforeAll(async ({ server: s, runtime, model }) => {
  server = s
  const { id } = await addVendor(runtime, vendorName, model.baseUrl, { keys: ['k'], models: ['m'] })
  expect(id).not.toBe('')
  for (const planner of [[calculate, { text: 'Two.' }], [{ text: 'Bye.' }]]) {
    model.reset()
    model.script({ planner } as never)
    await runtime.complete({ prompt: 'one and one', session_id: session, models: { planner: 'm' } })
  }
})

describe('the actions of a session', () => {
  test('have their times, their worker and the requests to vendors that each visit made', async ({
    runtime,
  }) => {
    const read = async (): Promise<ActionView[]> => (await get(`${path}/actions`)).body.data
    // the ledger is written behind the commit
    await until(
      'three model calls',
      async () => (await read()).flatMap(({ model_calls }) => model_calls).length >= 3,
    )
    const actions = await read()
    for (const { at, started_at, ms, attempt, worker } of actions) {
      expect([attempt, worker]).toEqual([1, expect.stringMatching(/^worker_/)])
      expect(Date.parse(at) - Date.parse(started_at ?? '')).toBe(ms)
    }
    const called = actions.filter(({ model_calls }) => model_calls.some(({ model }) => model === 'm'))
    expect(called.map(({ node }) => node)).toEqual(['planner', 'planner', 'planner'])
    for (const { model_calls, usage } of called)
      expect(model_calls).toEqual([
        {
          ...{ at: expect.any(String), role: 'planner', model: 'm', vendor: vendorName },
          ...{ status: 'succeeded', error_code: null, ms: expect.any(Number) },
          ...{ tokens: usage.total_tokens, cost: 0, currency: null },
        },
      ])
    const streamed: unknown[] = []
    for await (const event of runtime
      .of('default')
      .events({ run_id: actions[0]?.run_id ?? '' }, 0, AbortSignal.timeout(120_000)))
      if (event.event === 'action') streamed.push(event.data)
    expect(streamed).toEqual(
      actions.filter(({ turn }) => turn === 1).map(({ model_calls: _, ...action }) => action),
    )
  })

  test('come in pages of both directions, by turn and by node', async () => {
    const [all] = await idsOf('')
    const last = all.length
    expect(all).toEqual(Array.from({ length: last }, (_, at) => at + 1))
    expect(await idsOf('limit=3')).toEqual([[1, 2, 3], true])
    expect(await idsOf('limit=3&after=3')).toEqual([[4, 5, 6], true])
    expect(await idsOf(`limit=2&before=${last + 1}`)).toEqual([[last - 1, last], true])
    expect(await idsOf('limit=2&before=3')).toEqual([[1, 2], false])
    expect(await idsOf('after=1&before=4')).toEqual([[2, 3], false])
    expect(await idsOf(`after=${last}`)).toEqual([[], false])
    const [second, more] = await idsOf('turn=2')
    expect([second.at(-1), more]).toEqual([last, false])
    expect(second.length).toBeLessThan(last)
    expect((await idsOf('node=calculate'))[0]).toHaveLength(1)
    expect(await idsOf('node=calc%25')).toEqual([[], false])
  })

  test('are read one by one with what they changed, and give the state as each left it', async () => {
    const { body: opening } = await get(`${path}/actions/1`)
    expect(opening).toMatchObject({ id: 1, node: 'load-session', patch: { prompts: 'one and one' } })
    const states = await Promise.all(
      ['?action=0', '?action=1', ''].map(async (query) => (await get(`${path}/state${query}`)).body),
    )
    expect(states.map(({ action_history }) => action_history?.flat().length)).toEqual([
      0,
      1,
      (await idsOf(''))[0].length,
    ])
  })

  test('are not found where there are none, or for another business', async ({ runtime }) => {
    const { token } = await runtime.admin.tokens.create(
      {},
      {
        business_id: unique('b'),
        label: 't',
        roles: ['read'],
      },
    )
    for (const [of, code] of [
      ['/v1/sessions/none/actions', 404],
      ['/v1/sessions/none/state', 404],
      ['/v1/sessions/none/state?action=0', 404],
      [`${path}/actions/999`, 404],
      [`${path}/state?action=999`, 404],
      [`${path}/actions/0`, 422],
      [`${path}/actions?limit=501`, 422],
      [`${path}/actions?after=-2`, 422],
    ] as const)
      expect([of, (await get(of)).status]).toEqual([of, code])
    for (const of of [`${path}/actions`, `${path}/actions/1`, `${path}/state`])
      expect([of, (await get(of, token)).status]).toEqual([of, 404])
  })
})
