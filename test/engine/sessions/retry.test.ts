// backends: either
// asserts: invariants

import { expect } from 'vitest'
import { unique } from '../../support/backend.ts'
import { adminToken, runtimeTest as test } from '../../support/integration-test.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { codeOf, count } from '../../support/runs.ts'
import { calling, say } from '../../support/script.ts'
import { deadline } from '../../support/test-runtime.ts'

const file = {
  name: 'a.txt',
  type: 'text/plain',
  content_base64: Buffer.from('blue whale').toString('base64'),
}

test('a failed run is retried as the next turn of its session, whose prompts see the failed turn', async ({
  model,
  runtime,
  server,
  database,
}) => {
  const business = unique('b')
  const api = runtime.of(business)
  say(model, { planner: [calling(['calculate', { expression: '6*7' }]), { failure: { status: 401 } }] })
  const request = { prompt: 'how much', user_id: 'u1', files: [file], metadata: { order: 7 }, priority: 3 }
  const { run } = await api.submit(request)
  const failed = await api.wait(run, deadline())
  expect(failed).toMatchObject({ status: 'failed', retry_of: null })
  const before = await api.state(run.id, false)

  say(model, { planner: [{ text: 'It is 42.' }] })
  const post = (id: string, key?: string) =>
    server.call('POST', `/v1/runs/${id}/retry?business_id=${business}`, {
      token: adminToken,
      ...(key && { headers: { 'idempotency-key': key } }),
    })
  const first = await post(run.id, 'once')
  expect(first).toMatchObject({ status: 202, body: { session_id: run.session_id, turn: 2 } })
  expect(first.headers.get('location')).toBe(`/v1/runs/${first.body.id}`)
  expect(await post(run.id, 'once')).toMatchObject({ status: 200, body: first.body })
  const retried = await api.wait(first.body.id, deadline())
  expect(retried).toMatchObject({
    status: 'completed',
    retry_of: run.id,
    prompt: 'how much',
    metadata: { order: 7 },
  })
  expect((await api.runs({ metadata: { order: '7' }, limit: 9 })).data.map(({ id }) => id)).toEqual([
    retried.id,
    run.id,
  ])
  const prompt = JSON.stringify(model.requests('planner').at(-1)?.messages)
  expect(prompt).toMatch(/6\*7/)
  expect(prompt).toMatch(/42/)
  expect(prompt).toMatch(/a\.txt/)
  checkInvariants(await runtime.stateOf(retried.id, business))
  // the failed turn stays as it was
  expect(await api.run(run.id)).toEqual(failed)
  expect(await api.state(run.id, false)).toEqual(before)

  expect(await post(retried.id)).toMatchObject({ status: 409, body: { code: 'run_not_failed' } })
  expect(await post(retried.id, 'once')).toMatchObject({ status: 409 })
  expect(await post('run_none')).toMatchObject({ status: 404 })
  expect(await codeOf(runtime.of(unique('b')).retry(run.id))).toBe('not_found')
  await api.deleteSession(run.session_id)
  expect(await codeOf(api.retry(run.id))).toBe('not_found')
  expect(await count(database, 'sessions WHERE tenant = $1', [business])).toBe(0)
})

test('ten retries at once with one key are one run, and quotas hold for retries', async ({
  model,
  runtime,
}) => {
  const business = unique('b')
  const api = runtime.of(business)
  say(model, { planner: [{ failure: { status: 401 } }] })
  const { run } = await api.submit({ prompt: 'x', user_id: 'u1' })
  await api.wait(run, deadline())
  const retries = await Promise.all(Array.from({ length: 10 }, () => api.retry(run.id, 'key')))
  expect(new Set(retries.map((retry) => retry.run.id)).size).toBe(1)
  const { id } = retries[0]?.run ?? { id: '' }
  expect(await api.wait(id, deadline())).toMatchObject({ status: 'failed', retry_of: run.id })
  // a retry can be retried, and another run under its key is a conflict
  expect(await codeOf(api.retry(id, 'key'))).toBe('idempotency_conflict')
  expect((await api.retry(id)).run.turn).toBe(3)
})
