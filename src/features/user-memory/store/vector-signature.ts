/**
 * The signs of a vector as text of 0 and 1, after a fixed rotation: padded to a power of two, signs flipped at random, then a
 * Walsh-Hadamard transform. Near vectors differ in few bits (Charikar 2002); without the rotation the zeros of a sparse
 * vector would carry no information.
 */
export const computeSignature = (vector: readonly number[]): string => {
  const rotated = new Float64Array(2 ** Math.ceil(Math.log2(Math.max(1, vector.length))))
  rotated.set(vector)
  flipSigns(rotated)
  rotate(rotated)
  let text = ''
  for (const number of rotated) text += number > 0 ? '1' : '0'
  return text
}

/** Flips signs by a fixed sequence: the highest bit of a linear congruential generator (Numerical Recipes). */
const flipSigns = (numbers: Float64Array): void => {
  let state = 1
  for (let at = 0; at < numbers.length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    if (state >>> 31 === 0) numbers[at] = -(numbers[at] as number)
  }
}

/** The Walsh-Hadamard transform, in place. */
const rotate = (numbers: Float64Array): void => {
  for (let half = 1; half < numbers.length; half *= 2)
    for (let start = 0; start < numbers.length; start += 2 * half)
      for (let at = start; at < start + half; at++) {
        const a = numbers[at] as number
        const b = numbers[at + half] as number
        numbers[at] = a + b
        numbers[at + half] = a - b
      }
}
