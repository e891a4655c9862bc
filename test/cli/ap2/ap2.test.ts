import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { formatToken } from '../../../src/cli/ap2/inspect.ts'
import { verifyLines } from '../../../src/cli/ap2/verify.ts'
import ap2 from '../../payments/ap2-tokens.json' with { type: 'json' }
import {
  issueCheckoutChain,
  issuePaymentChain,
  mandateTime,
  trustedJwks,
} from '../../support/mandate-parties.ts'

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
