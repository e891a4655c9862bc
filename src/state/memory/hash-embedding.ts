import { normalise, wordsOf } from './words.ts'

/** The name under which vectors of the built-in embedding are kept. */
export const hashSpace = 'mason-hash-1'
/** Numbers of one such vector. */
const hashDimensions = 768

const wordWeight = 1
const gramWeight = 0.35

/** FNV-1a, 32 bits, over UTF-16 units, mixed at the end so that the low bits depend on all. */
const hash = (text: string): number => {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  return (value ^ (value >>> 13)) >>> 0
}

/** Runs of three characters of a word with its borders; they bring near what differs in its ending only. */
const gramsOf = (word: string): string[] => {
  const bordered = `<${word}>`
  return Array.from({ length: Math.max(0, bordered.length - 2) }, (_, at) => `#${bordered.slice(at, at + 3)}`)
}

/**
 * A text as 768 numbers without any model, the same on every machine: each word (weight 1), each pair of Chinese neighbours
 * (1) and each character trigram of other words (0.35) adds its weight, with a sign, to one place; place and sign are
 * its hash (feature hashing, Weinberger et al. 2009). Repeats count by their square root. L2-normalised; a text without
 * words is hashed as a whole.
 */
export const hashEmbedding = (text: string): number[] => {
  const counts = new Map<string, { count: number; weight: number }>()
  const add = (feature: string, weight: number): void => {
    const known = counts.get(feature)
    if (known) known.count++
    else counts.set(feature, { count: 1, weight })
  }
  for (const token of wordsOf(text)) {
    add(token, wordWeight)
    if (!/\p{Script=Han}/u.test(token)) for (const gram of gramsOf(token)) add(gram, gramWeight)
  }
  if (counts.size === 0) add(normalise(text), wordWeight)
  const vector = new Array<number>(hashDimensions).fill(0)
  for (const [feature, { count, weight }] of counts) {
    const code = hash(feature)
    const place = (code >>> 1) % hashDimensions
    vector[place] = (vector[place] ?? 0) + (code & 1 ? 1 : -1) * weight * Math.sqrt(count)
  }
  return unit(vector)
}

/** The vector at length 1; one of zeros stays as it is. */
export const unit = (vector: readonly number[]): number[] => {
  const length = Math.hypot(...vector)
  return length === 0 ? [...vector] : vector.map((number) => number / length)
}

/** Cosine of two vectors of length 1. */
export const cosine = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, number, at) => sum + number * (b[at] ?? 0), 0)
