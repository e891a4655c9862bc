import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeModel, type FakeReply, startFakeModel } from '../../support/fake-model/fake-model.ts'
import { openRoute, twoModels } from '../../support/fallback-models.ts'
import { callWith } from '../../support/vendors.ts'

/** Prompts of one business that a vendor fails at, beside runs of another: counted by requests, never by seconds. */

let server: FakeModel
beforeAll(async () => {
  server = await startFakeModel()
})
afterAll(() => server?.close())

const poisonous: readonly (readonly [string, FakeReply])[] = [
  ['500', { failure: { status: 500 } }],
  [
    'an error in a 200',
    { failure: { status: 200, body: { error: { message: 'cannot tokenize', type: 'server_error' } } } },
  ],
  ['429', { failure: { status: 429 } }],
]

test.each(poisonous)('ten poisonous runs of one business (%s) delay no run of another', async (_, poison) => {
  const { models, keys } = twoModels(server.baseUrl, 'shared')
  const route = openRoute({ models: models.slice(0, 1), keys })
  const asked = { poison: 0, good: 0 }
  server.script(({ messages }) => {
    const isPoison = JSON.stringify(messages).includes('poison')
    asked[isPoison ? 'poison' : 'good'] += 1
    return isPoison ? poison : { text: 'fine' }
  })
  const run = (business_id: string, name: string) =>
    callWith(
      route,
      { role: 'planner', patienceMs: 0 },
      {
        ask: { messages: [{ role: 'user', content: name }] },
        caller: { business_id, user_id: null, run_id: `${business_id} ${name}` },
      },
    ).then(
      ({ result }) => result.text,
      () => 'failed',
    )
  const flood = () => Promise.all(Array.from({ length: 10 }, (_one, n) => run('a', `poison ${n}`)))
  const others = () => Promise.all(Array.from({ length: 20 }, (_one, n) => run('b', `hello ${n}`)))
  expect(await flood()).toEqual(Array(10).fill('failed'))
  // at once, among the probes of the flood, and after it
  expect(await others()).toEqual(Array(20).fill('fine'))
  for (let round = 0; round < 5; round++) {
    route.clock.jump(61_000)
    const [, texts] = await Promise.all([flood(), others()])
    expect(texts).toEqual(Array(20).fill('fine'))
  }
  expect(asked.good).toBe(6 * 20)
  expect(asked.poison).toBeLessThanOrEqual(6 * 10 * 2)
  // its other runs go on once one of them has answered
  route.clock.jump(61_000)
  expect(await run('a', 'hello')).toBe('fine')
})
