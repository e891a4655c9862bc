import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { formatToken } from '../../../../src/features/payments/ap2/inspect.ts'
import { verifyLines } from '../../../../src/features/payments/ap2/verify.ts'
import type { JsonObject } from '../../../../src/features/payments/mandates/tokens/encoding.ts'
import { appendMandate, issueMandate } from '../../../../src/features/payments/mandates/tokens/issue.ts'
import type { Verdict } from '../../../../src/features/payments/mandates/verify/verdict.ts'
import {
  closedPayment,
  hop,
  issueCheckoutChain,
  issuePaymentChain,
  mandateTime,
  openPayment,
  parties,
  trustedJwks,
} from '../../../support/mandate-parties.ts'
import ap2 from '../ap2-tokens.json' with { type: 'json' }

const now = () => mandateTime
const request = { trust: { keys: trustedJwks }, audience: 'merchant', nonce: 'nonce-1' }

test('mason ap2 verify prints a verdict for each line, also for one that cannot be read, and goes on', async () => {
  const token = await issuePaymentChain()
  const { chain, hash } = await issueCheckoutChain()
  const payment = {
    kind: 'payment',
    token,
    ...request,
    transaction_id: 'checkout-1',
    open_checkout_hash: 'open-checkout',
  }
  const lines = [
    payment,
    { kind: 'checkout', token: chain, ...request, checkout_hash: hash },
    'no JSON',
    { ...payment, audience: 'another' },
    { ...payment, kind: 'refund', nonce: undefined },
    '',
    { ...payment, trust: { keys: [{ kty: 'RSA' }] } },
    'A'.repeat(1_100_000),
    { ...payment, now: mandateTime + 100_000 },
    { ...payment, transaction_id: 'x', spent: { amount_minor: 5, uses: 1, last_used_at: mandateTime } },
  ].map((line) => (typeof line === 'string' ? line : JSON.stringify(line)))
  const bytes = Buffer.from(lines.join('\n'))
  const chunks = Array.from({ length: Math.ceil(bytes.length / 65_521) }, (_, i) =>
    bytes.subarray(i * 65_521, (i + 1) * 65_521),
  )
  const verdicts = []
  for await (const verdict of verifyLines(Readable.from(chunks), now)) verdicts.push(verdict)
  expect(
    verdicts.map(({ stage, code, violations }) => [
      stage,
      code,
      ...violations.map((v) => `${v.field} ${v.code}`),
    ]),
  ).toEqual([
    ['constraints', null],
    ['constraints', null],
    ['crypto', 'invalid_credential', 'line 3 malformed_line'],
    ['crypto', 'invalid_credential', 'hops[1].payload.aud wrong_aud'],
    ['crypto', 'invalid_credential', 'line 5.kind invalid_field', 'line 5.nonce missing_field'],
    ['crypto', 'invalid_credential', 'trust.keys[0] key_not_p256'],
    ['crypto', 'invalid_credential', 'line 8 malformed_line'],
    ['crypto', 'invalid_credential', 'hops[0].exp expired', 'hops[1].exp expired'],
    [
      'constraints',
      'invalid_mandate',
      'hops[1].transaction_id transaction_id_mismatch',
      'hops[0].constraints already_used',
    ],
  ])
})

describe('mason ap2 verify refuses by name', () => {
  const facts = { transaction_id: 'checkout-1', open_checkout_hash: 'open-checkout' }
  const { agent, surface } = parties
  const reference = { type: 'payment.reference', conditional_transaction_id: 'open-checkout' }
  const pay = (payment_amount: unknown) => issuePaymentChain({ payment_amount })
  const limit = async (...constraints: JsonObject[]) => {
    const open = openPayment(agent.jwk, { constraints: [...constraints, reference] })
    return appendMandate(await issueMandate(open, surface.signing), closedPayment(), agent.signing, hop)
  }
  const toJwt = (payload: string) =>
    ['{"alg":"ES256","kid":"surface-1"}', payload, 'x'.repeat(64)]
      .map((text) => Buffer.from(text).toString('base64url'))
      .join('.')
  const amount = 'hops[1].payment_amount.amount'
  const first = 'hops[0].constraints[0]'

  test.for<[what: string, violation: string, token: () => Promise<string> | string]>([
    ['a fraction of a cent', `${amount} invalid_amount`, () => pay({ amount: 199.5, currency: 'USD' })],
    ['less than zero', `${amount} negative_amount`, () => pay({ amount: -1, currency: 'USD' })],
    ['2^53', `${amount} amount_too_large`, () => pay({ amount: 2 ** 53, currency: 'USD' })],
    [
      'an unknown currency',
      'hops[1].payment_amount.currency unknown_currency',
      () => pay({ amount: 1, currency: 'XXA' }),
    ],
    ['another currency', `${first}.currency currency_mismatch`, () => pay({ amount: 1, currency: 'EUR' })],
    [
      'a budget with too many decimals',
      `${first}.max too_many_decimals`,
      () => limit({ type: 'payment.budget', currency: 'USD', max: 250.555 }),
    ],
    [
      'a budget of less than zero',
      `${first}.max negative_amount`,
      () => limit({ type: 'payment.budget', currency: 'USD', max: -1 }),
    ],
    [
      'a budget of 2^53 cents',
      `${first}.max amount_too_large`,
      () => limit({ type: 'payment.budget', currency: 'USD', max: 2 ** 53 / 100 }),
    ],
    [
      'a range that is beyond 2^53',
      `${first}.max amount_too_large`,
      () => limit({ type: 'payment.amount_range', currency: 'USD', max: 2 ** 53 }),
    ],
    ['over 256 KB', 'token token_too_large', async () => (await issuePaymentChain()) + 'A'.repeat(262_144)],
    ['201 disclosures', 'token too_many_disclosures', () => `${toJwt('{}')}~${'A~'.repeat(201)}`],
    [
      '201 disclosures of two hops',
      'token too_many_disclosures',
      async () => (await issuePaymentChain()) + 'A~'.repeat(201),
    ],
    ['a payload that is no JSON', 'hops[0].payload malformed_json', () => `${toJwt('{"a"')}~`],
    [
      'a payload of brackets',
      'hops[0].payload malformed_json',
      () => `${toJwt(`{"a":${'['.repeat(150_000)}`)}~`,
    ],
  ])('%s: %s', async ([, violation, make]) => {
    const line = JSON.stringify({ kind: 'payment', token: await make(), ...request, ...facts })
    const lines = verifyLines(Readable.from([Buffer.from(line)]), now)
    const { violations }: Verdict<unknown> = (await lines.next()).value
    expect(violations.map(({ field, code }) => `${field} ${code}`)).toContain(violation)
  })
})

test('mason ap2 inspect prints the hops of a chain with times, hashes and what is disclosed', () => {
  const text = formatToken(ap2.checkout.chain)
  for (const part of [
    'Nothing of this token is verified',
    'hop 1 of 2: mandate.checkout.open.1',
    'hop 2 of 2: mandate.checkout.1',
    'iat: 2026-04-28T02:12:37.000Z',
    'disclosed: an entry of a list, checkout_jwt',
    'hash with disclosures (sd_hash): FzLoxbbtgQGYZxoSM2NJYJtkFTSsdfUBoVEQ12k7JN8',
    'hash of checkout_jwt: NivWhuqfzcvZNapvIEJ2-3tsdQLkiuIcye2g46WVgX8',
    '"kid": "merchant-key-1"',
  ])
    expect(text).toContain(part)
  expect(() => formatToken('a.b')).toThrow('token is no compact JWS')
})
