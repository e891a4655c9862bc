// backends: either
// asserts: invariants

import { expect } from 'vitest'
import type { FakeReply } from '../../support/fake-model/fake-model.ts'
import { runtimeTest } from '../../support/integration-test.ts'
import { deadline } from '../../support/test-runtime.ts'
import { addVendor } from '../../support/vendors.ts'

/** Runs of one business whose content a vendor fails at, beside runs of another: through the queue, counted by requests. */

const poisonous: readonly (readonly [string, FakeReply])[] = [
  ['500', { failure: { status: 500 } }],
  [
    'an error in a 200',
    { failure: { status: 200, body: { error: { message: 'cannot read it', type: 'server_error' } } } },
  ],
  ['429', { failure: { status: 429 } }],
]

// room for the others beside all ten, which wait for seconds between their requests
const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, () => ({
  models: null,
  concurrency: 16,
}))

test.for(poisonous)(
  'ten poisonous runs (%s) of one business keep no run of another waiting',
  async ([, poison], { model, runtime }) => {
    const name = `m${poisonous.findIndex(([, one]) => one === poison)}`
    await addVendor(runtime, name, model.baseUrl, { keys: [`key-of-${name}`], models: [name] })
    const asked = { good: 0 }
    model.script(({ messages }) => {
      if (JSON.stringify(messages).includes('poison')) return poison
      asked.good += 1
      return { text: 'Here I am.' }
    })
    const submit = async (business: string, prompt: string) =>
      (await runtime.of(business).submit({ prompt, user_id: 'u1', models: { planner: name } })).run.id
    const before = model.requests().length
    const flood = await Promise.all(Array.from({ length: 10 }, (_, n) => submit('a', `poison ${n}`)))
    // two of them close the model for their business; the others would ask one by one as it cools
    await model.received(before + 2)
    const runs = await Promise.all(Array.from({ length: 10 }, (_, n) => submit('b', `hello ${n}`)))
    const ended = await Promise.all(runs.map((id) => runtime.of('b').wait(id, deadline())))
    expect(ended.map(({ status, retry_at }) => [status, retry_at])).toEqual(
      Array(10).fill(['completed', null]),
    )
    // none of them was sent twice, or waited for a model that was closed
    expect(asked.good).toBe(10)
    const waited = runtime.held.filter(
      ({ run, left }) => runs.includes(run.claimed.run_id) && left === 'no_model',
    )
    expect(waited).toEqual([])
    for (const id of flood) await runtime.of('a').cancel(id, 'enough')
  },
)
