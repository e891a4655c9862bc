import type { MeteredUsage, MicroPrices } from '../models/ports.ts'

const million = 1_000_000n

/**
 * Millionths of the currency: the sum of tokens times their prices, rounded half up once. Cached tokens of the prompt
 * cost `cached_input`; without prices nothing costs anything.
 */
export const costMicro = (
  prices: MicroPrices | null,
  usage: Pick<MeteredUsage, 'prompt_tokens' | 'completion_tokens' | 'cached_tokens'>,
): bigint => {
  if (!prices) return 0n
  const cached = Math.min(usage.cached_tokens, usage.prompt_tokens)
  const sum =
    BigInt(usage.prompt_tokens - cached) * BigInt(prices.input) +
    BigInt(cached) * BigInt(prices.cached_input) +
    BigInt(usage.completion_tokens) * BigInt(prices.output)
  return (sum + million / 2n) / million
}

/** Millionths as people write money. Exact up to a billion, where numbers end to tell millionths apart. */
export const moneyOf = (micro: bigint): number => {
  const digits = String(micro < 0n ? -micro : micro).padStart(7, '0')
  return Number(`${micro < 0n ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`)
}

/** Money as people write it in whole millionths. */
export const microOf = (money: number): bigint => BigInt(Math.round(money * 1_000_000))
