export type Random = {
  /** From 0 up to and without 1. */
  next(): number
  /** From 0 up to and without `limit`. */
  below(limit: number): number
  pick<T>(from: readonly [T, ...T[]]): T
  /** A generator of its own, so that who draws how often changes nothing for the others. */
  fork(salt: number): Random
}

/** Mulberry32: the same seed gives the same numbers on every machine. */
export const randomFrom = (seed: number): Random => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    next,
    below,
    pick: (from) => from[below(from.length)] ?? from[0],
    fork: (salt) => randomFrom(Math.imul(seed ^ 0x9e3779b9, 2 * salt + 1) ^ salt),
  }
}
