// backends: either

import { beforeAll, describe, expect } from 'vitest'
import { unique } from '../../support/backend.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import type { Reply, TestServer } from '../../support/http.ts'
import type { Vendor } from '../../support/http-vendor.ts'
import { adminToken, closing, runtimeTest } from '../../support/integration-test.ts'
import { parrotKey, startOddVendor } from '../../support/odd-vendor.ts'
import { until } from '../../support/runs.ts'
import { calling, say } from '../../support/script.ts'

/** From an empty registry to runs that use it, with nothing but the API. */

let fake: FakeModel
let parrot: Vendor
let server: TestServer
const answers: string[] = []

const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, { models: null })
  .extend('parrot', { scope: 'file' }, closing(startOddVendor))
test.beforeAll(({ model, parrot: p, server: s }) => {
  ;[fake, parrot, server] = [model, p, s]
})

const call = async (method: string, path: string, json?: unknown): Promise<Reply> => {
  const reply = await server.call(method, path, { token: adminToken, ...(json !== undefined && { json }) })
  answers.push(reply.text)
  return reply
}
const make = async (path: string, json: unknown): Promise<string> => {
  const { status, body, text } = await call('POST', `/admin/v1${path}`, json)
  expect([status, text]).toEqual([201, text])
  return body.id
}
const run = async (prompt: string) => (await call('POST', '/v1/runs/wait', { prompt, user_id: 'u1' })).body

describe('a vendor that speaks as OpenAI does', () => {
  const secret = 'sk-of-this-vendor-0123456789'
  let vendor: string
  let key: string
  let model: string

  beforeAll(async () => {
    vendor = await make('/vendors', { name: unique('acme') })
    key = await make(`/vendors/${vendor}/keys`, { label: 'main', secret })
    const endpoint_id = await make(`/vendors/${vendor}/endpoints`, {
      name: 'main',
      base_url: fake.baseUrl,
      protocol: 'openai',
    })
    model = await make(`/vendors/${vendor}/models`, { name: 'acme-1', upstream_name: 'big', endpoint_id })
    await make('/routes', { role: 'planner', models: [{ model: 'acme-1' }] })
  })

  test('serves the next run of its role, with its own key', async () => {
    fake.script({ planner: [{ text: 'Hello from acme.' }] } as never)
    expect(await run('Say hello')).toMatchObject({ status: 'completed', answer: 'Hello from acme.' })
    expect(fake.requests('planner')).toHaveLength(1)
    // the ledger is written behind the answer
    const booked = async () => JSON.stringify((await call('GET', '/admin/v1/usage?group_by=model')).body)
    await expect.poll(booked).toContain('acme-1')
  })

  test('can be tested: the raw response is shown beside what was read in it, without the secret', async () => {
    fake.script({ test: [{ text: 'OK' }], probe: [{ text: 'OK' }] } as never)
    const tested = await call('POST', `/admin/v1/vendors/${vendor}/models/${model}/test`, {
      prompt: 'Say OK',
    })
    expect(tested.body).toMatchObject({ ok: true, parsed: { text: 'OK' }, error: null })
    expect(JSON.stringify(tested.body.raw)).toContain('chatcmpl-')
    expect((await call('POST', `/admin/v1/vendors/${vendor}/keys/${key}/probe`)).body).toMatchObject({
      ok: true,
    })
    fake.script({
      test: [{ failure: { status: 401, body: { error: { message: `no ${secret}` } } } }],
    } as never)
    const refused = await call('POST', `/admin/v1/vendors/${vendor}/models/${model}/test`)
    expect(refused.body).toMatchObject({ ok: false, error: { code: 'model_unauthorized' } })
    expect((await call('GET', `/admin/v1/vendors/${vendor}/keys/${key}`)).body.health.state).toBe('disabled')
    const enabled = await call('POST', `/admin/v1/vendors/${vendor}/keys/${key}/enable`)
    expect(enabled.body.health.state).toBe('healthy')
    expect(answers.join('\n')).not.toContain(secret)
  })

  test('says when it is tested that a limit of its key is under one reservation', async () => {
    const path = `/admin/v1/vendors/${vendor}/keys/${key}`
    const testWith = async (limits: object) => {
      await call('PATCH', path, { limits })
      return (await call('POST', `/admin/v1/vendors/${vendor}/models/${model}/test`)).body.error
    }
    expect(await testWith({ daily_tokens: 4000 })).toEqual({
      code: 'model_rate_limited',
      message: expect.stringMatching(/^of the key "main", daily_tokens 4000 is under the 41\d\d tokens/),
      place: null,
    })
    expect((await testWith({ daily_tokens: null, tpm: 1 })).message).toContain('tpm 1 is under the')
    await call('PATCH', path, { limits: { tpm: null } })
  })

  test('charges a test by an admin to no business, and counts it for the vendor', async () => {
    const sums = async (by: string) => {
      const { body } = await call('GET', `/admin/v1/usage?group_by=${by}`)
      return body.data as { business_id?: string | null; requests: number; total_tokens: number }[]
    }
    const tried = () => fake.requests('test').length + fake.requests('probe').length
    // the ledger is written behind the answer
    const booked = () =>
      until(`${tried()} probes are in the ledger`, async () => {
        const all = await sums('business')
        return all.find(({ business_id }) => business_id === null)?.requests === tried() && all
      })
    const before = await booked()
    fake.script({ test: [{ text: 'OK' }] } as never)
    await call('POST', `/admin/v1/vendors/${vendor}/models/${model}/test`)
    expect(tried()).toBeGreaterThan(2)
    const after = await booked()
    const others = (all: typeof before) => all.filter(({ business_id }) => business_id !== null)
    expect(others(after)).toEqual(others(before))
    const [whole] = await sums('')
    expect(whole?.requests).toBe(after.reduce((sum, { requests }) => sum + requests, 0))
    expect((await call('POST', '/admin/v1/tokens', { business_id: '_admin', label: 'x' })).status).toBe(422)
  })

  test('a run ends once it has cost as much as it may', async () => {
    await call('PATCH', `/admin/v1/vendors/${vendor}/models/${model}`, {
      prices: { input: 1000, output: 2000 },
    })
    // two hundredths a call: 10 tokens in, 5 out
    const endless = Array.from({ length: 50 }, (_, n) => calling(['calculate', { expression: `${n}+${n}` }]))
    const limited = async (max_cost: number) => {
      say(fake, { planner: endless })
      const limits = { max_cost, max_steps: 30 }
      return (await call('POST', '/v1/runs/wait', { prompt: 'on and on', user_id: 'u1', limits })).body
    }
    const before = fake.requests('planner').length
    const ended = await limited(0.03)
    expect(ended).toMatchObject({ status: 'completed', finish_reason: 'cost', usage: { total_tokens: 30 } })
    expect(ended.answer).toMatch(/limit of cost was reached/)
    expect(fake.requests('planner')).toHaveLength(2 + before)
    await call('PATCH', `/admin/v1/vendors/${vendor}/models/${model}`, { prices: null })
    expect(await limited(0.000001)).toMatchObject({ finish_reason: 'steps' })
  })

  test('serves no more once its key is disabled', async () => {
    await call('POST', `/admin/v1/vendors/${vendor}/keys/${key}/disable`)
    const failed = await run('Say hello')
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'no_model_available' } })
    await call('POST', `/admin/v1/vendors/${vendor}/keys/${key}/enable`)
    fake.script({ planner: [{ text: 'Back again.' }] } as never)
    expect(await run('Say hello')).toMatchObject({ status: 'completed', answer: 'Back again.' })
    const { body } = await call('GET', '/admin/v1/routes?role=planner')
    await call('DELETE', `/admin/v1/routes/${body.data[0].id}`)
  })
})

test('a vendor with an odd answer shape is added without code, and a run uses it', async () => {
  const pasted = {
    status: 'spoken',
    payload: {
      utterances: [
        { kind: 'thought', words: 'I shall repeat it.' },
        { kind: 'speech', words: 'You said: hello there' },
      ],
      halted_because: 'said_everything',
    },
    meter: { heard_tokens: 12, uttered_tokens: 6 },
  }
  const format = await make('/response-formats', {
    name: 'parrot',
    paths: {
      text: "payload.utterances[?kind=='speech'].words | [0]",
      reasoning: "payload.utterances[?kind=='thought'].words | [0]",
      usage: { prompt_tokens: 'meter.heard_tokens', completion_tokens: 'meter.uttered_tokens' },
    },
    request: {
      path: '/talk',
      body: {
        engine: '{{model}}',
        dialogue:
          "{{messages[].{who: (role=='system' && 'rules') || (role=='user' && 'human') || (role=='assistant' && 'machine') || 'helper', says: content || ''} }}",
        knobs: { heat: '{{temperature}}', ceiling: '{{max_tokens}}' },
      },
    },
    samples: [
      {
        raw: pasted,
        expected: { text: 'You said: hello there', usage: { prompt_tokens: 12, completion_tokens: 6 } },
      },
    ],
  })
  const vendor = await make('/vendors', { name: 'Parrot Systems' })
  await make(`/vendors/${vendor}/keys`, { label: 'main', secret: parrotKey })
  const endpoint_id = await make(`/vendors/${vendor}/endpoints`, {
    name: 'main',
    base_url: `${parrot.url}/v2`,
    protocol: 'http',
    headers: { 'x-parrot-key': '{{key}}' },
  })
  await make(`/vendors/${vendor}/models`, {
    name: 'macaw',
    upstream_name: 'macaw-2',
    endpoint_id,
    response_format_id: format,
  })
  await make('/routes', { role: 'planner', models: [{ model: 'macaw' }] })
  const done = await run('Hello from the jungle')
  expect(done).toMatchObject({ status: 'completed', answer: expect.stringContaining('You said: ') })
  expect(done.usage.completion_tokens).toBeGreaterThan(0)
  expect(answers.join('\n')).not.toContain(parrotKey)
})
