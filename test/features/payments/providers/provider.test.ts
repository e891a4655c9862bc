import { describe, expect, test } from 'vitest'
import { findAnswerError, type ProviderAnswer } from '../../../../src/features/payments/providers/provider.ts'

const amount = { currency: 'USD', minor: 60349 }
const succeeded: ProviderAnswer = { status: 'succeeded', provider_ref: 'ch_1', network_ref: null, amount }
const authorize = { kind: 'authorize', amount, capture: true } as const

describe('the check of an answer of a provider', () => {
  test('accepts what was asked, and refuses every other amount and currency', () => {
    expect(findAnswerError(authorize, succeeded)).toBeNull()
    for (const other of [
      { minor: 60348 },
      { minor: 60350 },
      { minor: 603 },
      { currency: 'EUR' },
      { currency: 'usd' },
    ])
      expect(findAnswerError(authorize, { ...succeeded, amount: { ...amount, ...other } })).toMatch(
        /^the amount is .*, not 60349 USD$/,
      )
  })

  test('accepts one final status for each operation, and a challenge of authorize alone', () => {
    const final = ['succeeded', 'authorized', 'voided', 'refunded'] as const
    const accepted = (operation: Parameters<typeof findAnswerError>[0]) =>
      final.filter((status) => findAnswerError(operation, { ...succeeded, status }) === null)
    expect(accepted(authorize)).toEqual(['succeeded'])
    expect(accepted({ ...authorize, capture: false })).toEqual(['authorized'])
    expect(accepted({ ...authorize, kind: 'capture' })).toEqual(['succeeded'])
    expect(accepted({ ...authorize, kind: 'void' })).toEqual(['voided'])
    expect(accepted({ ...authorize, kind: 'refund' })).toEqual(['refunded'])
    const challenge = {
      status: 'challenge',
      provider_ref: 'ch_1',
      challenge: { type: 'otp', text: 'Code?' },
    } as const
    expect(findAnswerError(authorize, challenge)).toBeNull()
    expect(findAnswerError({ ...authorize, kind: 'refund' }, challenge)).toBe(
      'a challenge answers authorize alone, not refund',
    )
  })
})
