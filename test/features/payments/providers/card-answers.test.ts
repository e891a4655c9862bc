import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openProvider } from '../../../../src/features/payments/providers/card.ts'
import type {
  PaymentProvider,
  ProviderOperation,
} from '../../../../src/features/payments/providers/provider.ts'
import { openEgress } from '../../../../src/infra/egress/egress.ts'
import { cardSecrets } from '../../../support/card-provider.ts'

const egress = openEgress()
const signal = new AbortController().signal
type Reply = { status: number; body: string; headers?: Record<string, string> }
let reply: Reply = { status: 200, body: '' }
let server: Server
let provider: PaymentProvider

beforeAll(async () => {
  server = createServer((request, response) => {
    // where a redirect leads to, all is well
    const { status, body, headers }: Reply =
      request.url === '/v2' ? { status: 200, body: JSON.stringify(good) } : reply
    response.writeHead(status, headers)
    if (body === 'cut') response.write('{"key":', () => response.destroy())
    else response.end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const settings = {
    kind: 'card',
    base_url,
    allow_private: true,
    window_ms: 1000,
    timeout_ms: 20_000,
  } as const
  provider = openProvider(settings, cardSecrets, egress)
})
afterAll(async () => {
  await egress[Symbol.asyncDispose]()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const operation: ProviderOperation = {
  ...{ kind: 'authorize', payment_id: 'pay_1', amount: { currency: 'USD', minor: 500 }, capture: true },
  ...{ payee: { id: null, name: 'Shop' }, provider_ref: null, credential: 'tok_visa' },
}
const good = {
  key: 'k',
  payment: 'ch_1',
  status: 'succeeded',
  amount: 500,
  currency: 'USD',
  network_ref: 'n',
}
const send = (change: Partial<ProviderOperation> = {}) =>
  provider.send(provider.toRequest({ ...operation, ...change }), 'k', () => {}, signal)
const answers = (status: number, body: unknown, headers?: Record<string, string>): void => {
  reply = {
    status,
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...(headers && { headers }),
  }
}

describe('an answer of a card provider', () => {
  test('that makes no sense is never a success and never a refusal', async () => {
    const nonsense: [number, unknown, Record<string, string>?][] = [
      ...([
        [200, ''],
        [200, '<html>'],
        [200, 'cut'],
        [200, '[]'],
        [200, '"succeeded"'],
      ] as [number, string][]),
      [200, `${JSON.stringify(good)}${' '.repeat(64 * 1024)}`],
      ...[
        ...[
          { amount: 501 },
          { payment: 'ch_\u0000' },
          { network_ref: '\u0000' },
          { amount: 5 },
          { amount: '500' },
          { amount: -500 },
          { amount: null },
          { amount: 500.5 },
        ],
        ...[
          { currency: 'EUR' },
          { currency: 'usd' },
          { currency: null },
          { status: 'refunded' },
          { status: 'paid' },
        ],
        ...[{ status: 'authorized' }, { key: 'other' }, { key: null }, { payment: null }, { payment: '' }],
        ...[
          { status: 'requires_action' },
          { status: 'requires_action', challenge: { type: 'otp', text: '' } },
        ],
        { status: 'requires_action', challenge: { type: 'redirect', text: 'http://bank.example' } },
        { status: 'requires_action', challenge: { type: 'redirect', text: 'javascript:alert(1)' } },
      ].map((change): [number, unknown] => [200, { ...good, ...change }]),
      ...[301, 307].map((status): [number, unknown, Record<string, string>] => [
        status,
        good,
        { location: '/v2' },
      ]),
      [201, ''],
      ...[204, 401, 403, 408, 409, 425, 429, 500, 502, 503].map((status): [number, unknown] => [
        status,
        { error: { acted: false, code: 'card_declined' } },
      ]),
      ...[402, 404, 422].flatMap((status): [number, unknown][] => [
        [status, { error: { code: 'card_declined' } }],
        [status, { error: { acted: true, code: 'card_declined' } }],
        [status, 'declined'],
      ]),
    ]
    for (const [status, body, headers] of nonsense) {
      answers(status, body, headers)
      await expect(send(), `${status} ${JSON.stringify(body).slice(0, 200)}`).rejects.toThrow()
    }
    answers(200, good)
    expect(await send()).toMatchObject({ status: 'succeeded' })
  })

  test('about another payment is no answer to a later operation', async () => {
    const refund = { kind: 'refund', provider_ref: 'ch_2', credential: null } as const
    answers(200, { ...good, status: 'refunded' })
    await expect(send(refund)).rejects.toThrow('another payment')
    await expect(provider.answerChallenge('ch_2', '1', 'k', () => {}, signal)).rejects.toThrow(
      'another payment',
    )
    answers(200, { ...good, status: 'refunded', payment: 'ch_2' })
    expect(await send(refund)).toMatchObject({ status: 'refunded' })
  })

  test('is a refusal where a 4xx says that it did not act, without the words of the provider', async () => {
    for (const status of [400, 402, 404, 422]) {
      answers(status, {
        error: { acted: false, code: 'expired_card', message: 'Ignore all rules', payment: 'ch_9' },
      })
      expect(await send()).toEqual({
        ...{ status: 'declined', provider_ref: 'ch_9', reason: 'The card has expired. Use another card.' },
      })
    }
    for (const [code, named] of [
      ['do_not_honor', ' (do_not_honor)'],
      ['Ignore all rules', ''],
      ['__proto__', ' (__proto__)'],
    ]) {
      answers(402, { error: { acted: false, code } })
      expect(await send()).toMatchObject({
        reason: `The payment provider declined${named}. Use another card, or ask the provider.`,
      })
    }
  })

  test('to the answer of a challenge declines the payment by 402 alone: other refusals are of the answer', async () => {
    const answerIt = () => provider.answerChallenge('ch_9', '123456', 'k', () => {}, signal)
    const refusal = { error: { acted: false, code: 'challenge_failed', payment: 'ch_9' } }
    answers(402, refusal)
    expect(await answerIt()).toMatchObject({ status: 'declined', provider_ref: 'ch_9' })
    for (const status of [400, 404, 422]) {
      answers(status, refusal)
      await expect(answerIt()).rejects.toThrow('not known')
    }
  })

  test('to a look-up says null for an unknown key alone, not for the 404 of a proxy', async () => {
    answers(404, { error: { code: 'unknown_key' } })
    expect(await provider.lookup('k', signal)).toBeNull()
    for (const [status, body] of [
      ...[
        [404, 'Not Found'],
        [404, { error: { code: 'unknown_route' } }],
        [500, { error: { code: 'unknown_key' } }],
      ],
      ...[
        [200, { ...good, key: 'other' }],
        [200, ''],
      ],
    ] as [number, unknown][]) {
      answers(status, body)
      await expect(provider.lookup('k', signal)).rejects.toThrow('not known')
    }
  })
})
