import { extractWords, normalizeText } from '../../../state/text/words.ts'

/** The name of the space of the built-in embedding. */
export const hashSpace = 'mason-hash-1'
/** The length of its vectors. */
const hashDimensions = 768

const wordWeight = 1
const gramWeight = 0.35

/** FNV-1a, 32 bits, over UTF-16 units, mixed at the end so that the low bits depend on all of them. */
const hash = (text: string): number => {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  return (value ^ (value >>> 13)) >>> 0
}

/** Three characters in a row of a word with its borders: words that differ only in their ending share most. */
const toTrigrams = (word: string): string[] => {
  const bordered = `<${word}>`
  return Array.from({ length: Math.max(0, bordered.length - 2) }, (_, at) => `#${bordered.slice(at, at + 3)}`)
}

/**
 * Embeds a text as 768 numbers without a model, the same on every machine. Each word (weight 1), each pair of adjacent
 * Chinese characters (1) and each character trigram of other words (0.35) adds its weight to one dimension; its hash gives
 * the dimension and the sign (feature hashing, Weinberger et al. 2009). Repeats count by their square root. L2-normalized;
 * a text without words is hashed whole.
 */
export const computeHashEmbedding = (text: string): number[] => {
  const counts = new Map<string, { count: number; weight: number }>()
  const add = (feature: string, weight: number): void => {
    const entry = counts.get(feature)
    if (entry) entry.count++
    else counts.set(feature, { count: 1, weight })
  }
  for (const token of extractWords(text)) {
    add(token, wordWeight)
    if (!/\p{Script=Han}/u.test(token)) for (const gram of toTrigrams(token)) add(gram, gramWeight)
  }
  if (counts.size === 0) add(normalizeText(text), wordWeight)
  const vector = new Array<number>(hashDimensions).fill(0)
  for (const [feature, { count, weight }] of counts) {
    const code = hash(feature)
    const dimension = (code >>> 1) % hashDimensions
    vector[dimension] = (vector[dimension] ?? 0) + (code & 1 ? 1 : -1) * weight * Math.sqrt(count)
  }
  return normalizeVector(vector)
}

/** The vector at length 1; a vector of zeros is unchanged. */
export const normalizeVector = (vector: readonly number[]): number[] => {
  const length = Math.hypot(...vector)
  return length === 0 ? [...vector] : vector.map((number) => number / length)
}

/** The cosine similarity of two vectors of length 1. */
export const computeCosine = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, number, at) => sum + number * (b[at] ?? 0), 0)
