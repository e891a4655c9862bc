/** A fixed row of +1 and -1: a linear congruential generator (Numerical Recipes), its highest bit. */
const flipsOf = (count: number): readonly number[] => {
  let state = 1
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state >>> 31 ? 1 : -1
  })
}

/**
 * The signs of a vector as text of 0 and 1, after a fixed rotation: padded to a power of two, signs flipped at random, then a
 * Walsh-Hadamard transform. Vectors that are near differ in few bits (Charikar 2002); without the rotation the zeros of a
 * sparse vector would say nothing.
 */
export const signatureOf = (vector: readonly number[]): string => {
  const size = 2 ** Math.ceil(Math.log2(Math.max(1, vector.length)))
  const flips = flipsOf(size)
  const turned = Float64Array.from(flips, (flip, at) => flip * (vector[at] ?? 0))
  for (let half = 1; half < size; half *= 2)
    for (let start = 0; start < size; start += 2 * half)
      for (let at = start; at < start + half; at++) {
        const [a, b] = [turned[at] ?? 0, turned[at + half] ?? 0]
        turned[at] = a + b
        turned[at + half] = a - b
      }
  return Array.from(turned, (number) => (number > 0 ? '1' : '0')).join('')
}
