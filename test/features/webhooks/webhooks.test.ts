// backends: either
// asserts: invariants

import { describe, expect } from 'vitest'
import { unique } from '../../support/backend.ts'
import { minutesUntil } from '../../support/clock.ts'
import { adminToken, closing, runtimeTest } from '../../support/integration-test.ts'
import { until } from '../../support/runs.ts'
import { calling, say } from '../../support/script.ts'
import { isSignedBy, startWebhookReceiver } from '../../support/webhook-receiver.ts'

const test = runtimeTest
  .extend(
    'receiver',
    { scope: 'file' },
    closing(() => startWebhookReceiver(({ path }) => (path.startsWith('/gone') ? 410 : 204))),
  )
  .extend(
    'admin',
    { scope: 'file' },
    ({ server }) =>
      (method: string, path: string, json?: object) =>
        server.call(method, `/admin/v1/${path}`, { token: adminToken, ...(json && { json }) }),
  )
  .extend('business', async ({ admin }) => {
    const id = unique('hooks')
    await admin('POST', 'businesses', { id })
    return id
  })

const ask = calling(['ask_user', { question: 'Which year?' }])

describe('webhooks of runs', () => {
  test('a question and the end are sent to the address of the run, signed, with status and metadata', async ({
    runtime,
    model,
    receiver,
    admin,
    business,
  }) => {
    await admin('PATCH', `businesses/${business}/webhook`, { allow_private: true })
    const { secret } = (await admin('POST', `businesses/${business}/webhook/rotate`)).body
    say(model, { planner: [ask, { text: 'It was 1984.' }] })
    const path = `/${business}`
    const api = runtime.of(business)
    const request = {
      prompt: 'When?',
      user_id: 'ann',
      metadata: { order: 7 },
      webhook_url: receiver.url + path,
    }
    const { run } = await api.submit(request)
    const question = await until('the question', () => receiver.of(path)[0])
    expect(question.body).toMatchObject({
      type: 'run.input_required',
      timestamp: expect.stringMatching(/^20.*Z$/),
      data: {
        id: run.id,
        session_id: run.session_id,
        business_id: business,
        user_id: 'ann',
        turn: 1,
        status: 'input_required',
        finish_reason: null,
        error: null,
        input_request: { question: 'Which year?' },
        metadata: { order: 7 },
        ended_at: null,
      },
    })
    await api.answer(run.id, question.body.data.input_request.id, '1984')
    const end = await until('the end', () => receiver.of(path)[1])
    expect(end.body).toMatchObject({
      type: 'run.completed',
      data: { id: run.id, status: 'completed', finish_reason: 'answered', input_request: null },
    })
    expect(new Set(receiver.of(path).map(({ headers }) => headers['webhook-id'])).size).toBe(2)
    for (const webhook of receiver.of(path)) expect(isSignedBy(secret, webhook)).toBe(true)

    const listed = await until('both delivered', async () => {
      const { body } = await admin('GET', `webhooks?run_id=${run.id}&status=delivered`)
      return body.data.length === 2 && body.data
    })
    expect(listed[0]).toMatchObject({ type: 'run.completed', attempts: 1, last_status: 204, due_at: null })
  })

  test('the address of the business gets those of runs without one; failed and cancelled runs too', async ({
    runtime,
    model,
    receiver,
    admin,
    business,
  }) => {
    const path = `/${business}`
    const url = `${receiver.url}${path}?key=a-key-of-theirs`
    const refused = await admin('PATCH', `businesses/${business}/webhook`, { url })
    expect(refused.body).toMatchObject({ code: 'invalid_request', errors: [{ pointer: '/url' }] })
    const set = await admin('PATCH', `businesses/${business}/webhook`, { url, allow_private: true })
    expect(set.body).toMatchObject({ url, allow_private: true, secrets: [] })

    say(model, { planner: [{ failure: { status: 401 } }] })
    const api = runtime.of(business)
    const { run } = await api.submit({ prompt: 'Fail', user_id: 'ann' })
    const failed = await until('the failure', () => receiver.of(`${path}?key=a-key-of-theirs`)[0])
    expect(failed.body).toMatchObject({
      type: 'run.failed',
      data: { id: run.id, error: { code: 'model_unauthorized', message: expect.any(String) } },
    })
    const waiting = await api.submit({ prompt: 'Later', user_id: 'ann', delay_ms: 1_000_000 })
    await api.cancel(waiting.run.id, 'not needed')
    const cancelled = await until('the cancellation', () => receiver.of(`${path}?key=a-key-of-theirs`)[1])
    expect(cancelled.body).toMatchObject({ type: 'run.cancelled', data: { id: waiting.run.id } })
    // signed from the first one on; an admin sees neither the secret nor the values of the query
    const settings = await admin('GET', `businesses/${business}/webhook`)
    expect(settings.body.secrets).toEqual([
      { secret: expect.stringMatching(/^….{4}$/), created_at: expect.any(String), expires_at: null },
    ])
    const { body } = await admin('GET', `webhooks?business_id=${business}`)
    expect(body.data.map(({ url }: { url: string }) => url)).toEqual([
      `${receiver.url}${path}?key=[redacted]`,
      `${receiver.url}${path}?key=[redacted]`,
    ])
  })

  test('a run cannot have an address on a private network unless its business may; a name is looked up later', async ({
    runtime,
    server,
    admin,
    business,
  }) => {
    const { token } = (await admin('POST', 'tokens', { business_id: business, label: 'l' })).body
    const submit = (webhook_url: string) =>
      server.call('POST', '/v1/runs', { token, json: { prompt: 'p', user_id: 'u', webhook_url } })
    for (const url of [
      'http://127.0.0.1/',
      'http://[::1]/',
      'http://169.254.169.254/',
      'http://localhost/x',
    ]) {
      const reply = await submit(url)
      expect([url, reply.status, reply.body.errors?.[0].pointer]).toEqual([url, 422, '/webhook_url'])
    }
    // a special address not even with permission
    await admin('PATCH', `businesses/${business}/webhook`, { allow_private: true })
    expect((await submit('http://169.254.169.254/')).status).toBe(422)
    expect((await runtime.of(business).runs({ limit: 10 })).data).toEqual([])
  })
})

describe('the secret of a business', () => {
  test('is replaced while the one before signs beside it; of three, two are valid', async ({
    receiver,
    admin,
    business,
  }) => {
    const path = `/${business}`
    const noAddress = await admin('POST', `businesses/${business}/webhook/ping`)
    expect([noAddress.status, noAddress.body.code]).toEqual([422, 'invalid_request'])
    await admin('PATCH', `businesses/${business}/webhook`, { url: receiver.url + path, allow_private: true })
    const rotate = async () => (await admin('POST', `businesses/${business}/webhook/rotate`)).body
    const [first, second, third] = [await rotate(), await rotate(), await rotate()]
    expect(first.previous_expires_at).toBeNull()
    expect(minutesUntil(third.previous_expires_at)).toBe(24 * 60)
    const ping = await admin('POST', `businesses/${business}/webhook/ping`)
    const sent = await until('the test message', () => receiver.of(path)[0])
    expect(sent.body).toEqual({
      type: 'webhook.ping',
      timestamp: expect.any(String),
      data: { business_id: business },
    })
    expect(sent.headers['webhook-id']).toBe(ping.body.id)
    expect([first, second, third].map(({ secret }) => isSignedBy(secret, sent))).toEqual([false, true, true])
    for (const path of ['webhook', 'webhook/ping', 'webhook/rotate'])
      expect((await admin(path === 'webhook' ? 'GET' : 'POST', `businesses/none/${path}`)).status).toBe(404)
  })
})

describe('an address that answers 410', () => {
  test('gets nothing else, visibly, until one of its webhooks is replayed', async ({
    receiver,
    admin,
    business,
  }) => {
    const path = `/gone/${business}`
    await admin('PATCH', `businesses/${business}/webhook`, { url: receiver.url + path, allow_private: true })
    const ping = async () => (await admin('POST', `businesses/${business}/webhook/ping`)).body.id
    const id = await ping()
    const read = async () => (await admin('GET', `webhooks/${id}`)).body
    const dead = await until('the end', async () => {
      const view = await read()
      return view.status === 'dead' && view
    })
    expect(dead).toMatchObject({ last_status: 410, attempts: 1, due_at: null })
    const replayed = await admin('POST', `webhooks/${id}/replay`)
    expect(replayed.body).toMatchObject({ id, status: 'pending' })
    await until('the second attempt', () => receiver.of(path).length === 2)
    expect(receiver.of(path).map(({ headers }) => headers['webhook-id'])).toEqual([id, id])
    expect((await admin('POST', 'webhooks/msg_none/replay')).status).toBe(404)
  })
})
