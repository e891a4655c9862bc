import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../../../src/features/payments/mandates/tokens/encoding.ts'
import { signJws } from '../../../../../src/features/payments/mandates/tokens/jws.ts'
import {
  signReceipt,
  toReferences,
  verifyReceipt,
} from '../../../../../src/features/payments/mandates/verify/receipts.ts'
import {
  createParty,
  expected,
  issueCheckoutChain,
  issuePaymentChain,
  mandateTime,
  parties,
} from '../../../../support/mandate-parties.ts'

const { processor, merchant } = parties
const chain = await issuePaymentChain()
const { chain: checkoutChain } = await issueCheckoutChain()
const base = { iss: 'https://psp.example', iat: mandateTime }
const paid = {
  ...{ status: 'Success' as const, ...base, reference: toReferences(chain).jwtHash, payment_id: 'pay-1' },
  ...{ psp_confirmation_id: 'psp-1', network_confirmation_id: 'net-1' },
}
const ordered = {
  status: 'Success' as const,
  ...base,
  reference: toReferences(checkoutChain).jwtHash,
  order_id: 'o-1',
}
const failed = { status: 'Error' as const, ...base, error: 'invalid_mandate', error_description: 'too much' }
const codesOf = (token: string, kind: 'payment' | 'checkout' = 'payment', of = chain): string[] =>
  verifyReceipt(token, kind, of, expected).violations.map(({ code, field }) => `${field} ${code}`)

describe('a receipt', () => {
  test('of success and of an error, about a payment and a checkout, is verified', async () => {
    const verdict = verifyReceipt(await signReceipt(paid, processor.signing), 'payment', chain, expected)
    expect(verdict).toMatchObject({ ok: true, value: paid })
    const error = { ...failed, reference: paid.reference, payment_id: 'pay-1' }
    expect(codesOf(await signReceipt(error, processor.signing))).toEqual([])
    expect(codesOf(await signReceipt(ordered, merchant.signing), 'checkout', checkoutChain)).toEqual([])
    const refused = { ...failed, reference: ordered.reference }
    expect(codesOf(await signReceipt(refused, merchant.signing), 'checkout', checkoutChain)).toEqual([])
  })

  test('may refer to the text of the mandate with its disclosures, and say `result: success`', async () => {
    const { status: _, ...rest } = paid
    const other = { ...rest, result: 'success', reference: toReferences(chain).sdHash }
    expect(codesOf(await signJws(other, processor.signing))).toEqual([])
  })

  test('about another mandate, of another key or not of its time is refused', async () => {
    const sign = (changes: JsonObject) => signJws({ ...paid, ...changes }, processor.signing)
    expect(codesOf(await sign({ reference: ordered.reference }))).toEqual([
      'receipt.reference wrong_reference',
    ])
    expect(codesOf(await sign({ iat: mandateTime + 301 }))).toEqual(['receipt.iat issued_in_future'])
    expect(codesOf(await signReceipt(paid, createParty('processor-1').signing))).toEqual([
      'receipt.signature wrong_signature',
    ])
    expect(codesOf('no token')).toEqual(['receipt malformed_token'])
  })

  test.for(Object.keys(paid))('whose %s is changed after it was signed is refused', async (name) => {
    const [head, , signature] = (await signReceipt(paid, processor.signing)).split('.')
    const body = Buffer.from(JSON.stringify({ ...paid, [name]: 'changed' })).toString('base64url')
    expect(codesOf([head, body, signature].join('.'))).toEqual(['receipt.signature wrong_signature'])
  })

  test.for(Object.keys(paid).filter((name) => name !== 'reference'))(
    'that lacks %s is refused',
    async (name) => {
      const { [name]: _, ...rest } = paid as JsonObject
      expect(codesOf(await signJws(rest, processor.signing))).not.toEqual([])
    },
  )
})
