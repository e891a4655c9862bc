import { createHmac } from 'node:crypto'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { openProvider } from '../../../../src/features/payments/providers/card.ts'
import { openEgress } from '../../../../src/infra/egress/egress.ts'
import { cardSecrets, startCardProvider } from '../../../support/card-provider.ts'
import { startWebhookReceiver } from '../../../support/webhook-receiver.ts'

const now = new Date('2026-11-23T12:00:00Z')
const nowS = now.getTime() / 1000
const egress = openEgress()
afterAll(() => egress[Symbol.asyncDispose]())
const settings = {
  kind: 'card',
  base_url: 'https://pay.example',
  allow_private: false,
  window_ms: 1,
  timeout_ms: 1,
} as const
const provider = openProvider(settings, cardSecrets, egress)

const data = {
  key: 'k',
  payment: 'ch_1',
  status: 'succeeded',
  amount: 500,
  currency: 'USD',
  network_ref: null,
}
const event = JSON.stringify({ type: 'operation.updated', data })
const sign = (
  body: string,
  { id = 'evt_1', time = String(nowS), secret = cardSecrets.webhook_secret } = {},
) => {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': `v1,${signature}` }
}
const read = (headers: Record<string, string>, body = event, at = now) =>
  provider.readWebhook(headers, Buffer.from(body), at)

test('a webhook with the signature of the provider is read, each time under the same event id', () => {
  const amount = { currency: 'USD', minor: 500 }
  const answer = { status: 'succeeded', provider_ref: 'ch_1', network_ref: null, amount }
  const genuine = { event_id: 'evt_1', key: 'k', provider_ref: 'ch_1', answer }
  const headers = sign(event)
  expect([read(headers), read(headers)]).toEqual([genuine, genuine])
  const rotated = { ...headers, 'webhook-signature': `v1,${'A'.repeat(43)}= ${headers['webhook-signature']}` }
  expect(read(rotated)).toEqual(genuine)
})

test('a webhook with another body, id, time or secret than was signed is not genuine', () => {
  const headers = sign(event)
  const { 'webhook-signature': signature } = headers
  expect(read(headers, event.replace('500', '501'))).toBeNull()
  expect(read(headers, `${event} `)).toBeNull()
  expect(read({ ...headers, 'webhook-id': 'evt_2' })).toBeNull()
  expect(read({ ...headers, 'webhook-timestamp': String(nowS + 1) })).toBeNull()
  expect(read(sign(event, { secret: `whsec_${'A'.repeat(40)}` }))).toBeNull()
  for (const forged of [
    '',
    'v1,',
    'v1',
    signature.replace('v1,', 'v2,'),
    signature.slice(3),
    `v1,${signature}`,
    signature.slice(0, -4),
  ])
    expect(read({ ...headers, 'webhook-signature': forged }), forged).toBeNull()
  for (const name of Object.keys(headers)) expect(read({ ...headers, [name]: '' }), name).toBeNull()
  expect(read({})).toBeNull()
})

test('a webhook whose border between id and time is moved is not genuine', () => {
  const headers = sign(event, { id: 'evt_1.7', time: String(nowS) })
  expect(read(headers)).toBeNull()
  expect(read({ ...headers, 'webhook-id': 'evt_1', 'webhook-timestamp': `7.${nowS}` })).toBeNull()
})

test('a webhook of more than 300 s ago or ahead is not genuine', () => {
  const times = [-301, -300, 300, 301].map((s) => read(sign(event, { time: String(nowS + s) })) !== null)
  expect(times).toEqual([false, true, true, false])
  for (const time of ['', '-1', '1e9', ' 1', 'now', String(nowS * 1000)])
    expect(read(sign(event, { time })), time).toBeNull()
})

test('a signed webhook that is no operation is no event', () => {
  for (const body of [
    '',
    'null',
    '[]',
    '{',
    JSON.stringify({ type: 'payout.paid', data }),
    JSON.stringify({ type: 'operation.updated', data: { ...data, amount: null } }),
  ])
    expect(read(sign(body), body), body).toBeNull()
})

test('a provider without a webhook secret is refused, since with an empty one anyone could sign', () => {
  for (const webhook_secret of ['', 'whsec_', 'whsec_c2hvcnQ='])
    expect(() => openProvider(settings, { ...cardSecrets, webhook_secret }, egress)).toThrow(
      'less than 24 bytes',
    )
})

test('webhooks that come late, doubled and in another order are all genuine, with two ids for two events', async () => {
  const receiver = await startWebhookReceiver()
  onTestFinished(() => receiver.close())
  const webhooks = { url: receiver.url, delays_ms: [100, 0], copies: 2 }
  const server = await startCardProvider({ webhooks, late_ms: 0 })
  onTestFinished(() => server.close())
  const own = openProvider(server.toSettings(), cardSecrets, egress)
  const request = own.toRequest({
    ...{ kind: 'authorize', payment_id: 'pay_1', amount: { currency: 'USD', minor: 500 }, capture: true },
    ...{ payee: { id: null, name: 'Shop' }, provider_ref: null, credential: 'tok_pending' },
  })
  await own.send(request, 'k', () => {}, new AbortController().signal)
  await expect.poll(() => receiver.received.length).toBe(4)
  const events = receiver.received.map(({ headers, text }) =>
    own.readWebhook(headers as Record<string, string>, Buffer.from(text), new Date()),
  )
  expect(events.map((one) => one?.key)).toEqual(['k', 'k', 'k', 'k'])
  expect(new Set(events.map((one) => one?.event_id)).size).toBe(2)
  expect(events.map((one) => one?.answer.status).sort()).toEqual([
    'pending',
    'pending',
    'succeeded',
    'succeeded',
  ])
})
