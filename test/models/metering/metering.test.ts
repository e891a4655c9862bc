import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toMicro, toMoney } from '../../../src/infra/lib/money.ts'
import { toCostMicro } from '../../../src/models/metering/cost.ts'
import { toSettleRow } from '../../../src/models/metering/ledger-rows.ts'
import { estimateTokens } from '../../../src/state/text/tokens.ts'
import { modelOf, prices, reservationOf, settlementOf, usageOf } from '../../support/meter.ts'

describe('counting tokens without a vendor', () => {
  test.each([
    ['', 0],
    ['a', 1],
    ['the quick brown fox jumps over the lazy dog.', 11],
    ['你好，世界', 4],
    ['ab\u4f60\u597d\u4e16cd', 3],
    ['👍', 2],
  ])('%j is about %i', (text, tokens) => expect(estimateTokens(text)).toBe(tokens))

  test('grows with the text, and by parts comes to the same within a token a part', () => {
    const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 400 }), fc.string({ maxLength: 400 }))
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 5 }), (parts) => {
        const whole = estimateTokens(parts.join(''))
        const sum = parts.reduce((all, part) => all + estimateTokens(part), 0)
        expect(Number.isSafeInteger(whole)).toBe(true)
        expect(whole).toBeGreaterThanOrEqual(Math.max(...parts.map(estimateTokens)))
        expect(whole).toBeLessThanOrEqual(sum)
        expect(sum - whole).toBeLessThanOrEqual(parts.length)
        expect(whole).toBeLessThanOrEqual(parts.join('').length)
      }),
    )
  })
})

describe('cost', () => {
  const price = fc.nat(2 ** 53 - 1)
  const tokens = fc.nat(2_000_000_000)

  test('is the sum of tokens by their prices, rounded half up once', () => {
    fc.assert(
      fc.property(
        fc.record({ input: price, output: price, cached_input: price }),
        fc.record({ prompt_tokens: tokens, completion_tokens: tokens, cached_tokens: tokens }),
        (paid, usage) => {
          const cost = toCostMicro({ ...paid, currency: 'USD' }, usage)
          const cached = BigInt(Math.min(usage.cached_tokens, usage.prompt_tokens))
          const exact =
            (BigInt(usage.prompt_tokens) - cached) * BigInt(paid.input) +
            cached * BigInt(paid.cached_input) +
            BigInt(usage.completion_tokens) * BigInt(paid.output)
          // within half a millionth, a half goes up
          const off = exact - cost * 1_000_000n
          expect(off >= -500_000n && off < 500_000n).toBe(true)
        },
      ),
    )
    const once = (prompt_tokens: number, input: number) =>
      toCostMicro({ ...prices, input }, { prompt_tokens, completion_tokens: 0, cached_tokens: 0 })
    expect([once(1, 499_999), once(1, 500_000), once(3, 500_000)]).toEqual([0n, 1n, 2n])
  })

  test('is nothing without prices', () => {
    expect(toCostMicro(null, usageOf(1000, 1000))).toBe(0n)
    const row = toSettleRow(reservationOf(null, { model: modelOf('v', { prices: null }) }), settlementOf())
    expect(row).toMatchObject({ cost_micro: '0', entry: { currency: 'XXX' } })
  })

  test('goes to people and back without loss', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n }), (micro) => {
        expect(toMicro(toMoney(micro))).toBe(Number(micro))
      }),
    )
    expect([toMoney(1n), toMoney(-1_500_000n), toMoney(123_456_789_012_345n)]).toEqual([
      0.000001, -1.5, 123456789.012345,
    ])
  })
})

test('what vendors say never breaks the ledger', () => {
  const odd = fc.oneof(
    fc.double(),
    fc.integer(),
    fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, -1, 1e300),
  )
  fc.assert(
    fc.property(fc.tuple(odd, odd, odd, odd, odd, odd), ([a, b, c, d, e, ms]) => {
      const usage = {
        prompt_tokens: a,
        completion_tokens: b,
        total_tokens: c,
        cached_tokens: d,
        reasoning_tokens: e,
      }
      const row = toSettleRow(reservationOf(null), settlementOf({ usage, ms }))
      for (const count of [
        row.prompt_tokens,
        row.completion_tokens,
        row.total_tokens,
        row.cached_tokens,
        row.ms,
      ]) {
        expect(Number.isSafeInteger(count)).toBe(true)
        expect(count).toBeGreaterThanOrEqual(0)
      }
      expect(BigInt(row.cost_micro ?? -1)).toBeLessThanOrEqual(10n ** 15n)
    }),
  )
})
