import { normalizeVector } from '../../src/memory/policy/hash-embedding.ts'
import { toVectorText } from '../../src/memory/store/search.ts'
import type { Place } from './place.ts'

/** Numbers of a vector. */
export const size = 768
const centreCount = 200
const atOnce = 500

const noise = (): number => Math.random() - 0.5
const centres = Array.from({ length: centreCount }, () => Array.from({ length: size }, noise))
/** Near one of many centres, as texts lie near their topics. */
export const someVector = (): number[] => {
  const centre = centres[Math.floor(Math.random() * centreCount)] ?? []
  return normalizeVector(centre.map((number) => number + 1.2 * noise()))
}
/** Some in every tenth memory, some in one of a thousand; what is more frequent is no word to look for. */
export const someWords = (count: number): string[] => [
  ...new Set(Array.from({ length: count }, () => `w${Math.floor(30 * 100 ** Math.random())}`)),
]

export type Memory = { id: string; user: string; vector: Float32Array }

/** `owned`: how many each user has who is measured; what is left of `all` is of 99 others. In the order of chance. */
export const someMemories = (place: Place, all: number, owned: readonly number[]): Memory[] => {
  const users = owned.flatMap((count) =>
    Array.from({ length: place.count(count) }, () => `measured ${count}`),
  )
  const others = Array.from({ length: Math.max(0, place.count(all) - users.length) }, (_, n) => `u${n % 99}`)
  const order = [...users, ...others].map((user) => ({ user, at: Math.random() }))
  return order
    .toSorted((a, b) => a.at - b.at)
    .map(({ user }, n) => ({ id: `m${n}`, user, vector: Float32Array.from(someVector()) }))
}

/** Makes one batch ready while the one before is written. */
export const inBatches = async <Row>(
  memories: readonly Memory[],
  rowOf: (memory: Memory) => Row,
  write: (rows: string) => Promise<unknown>,
): Promise<void> => {
  let writing: Promise<unknown> = Promise.resolve()
  for (let at = 0; at < memories.length; at += atOnce) {
    const rows = JSON.stringify(memories.slice(at, at + atOnce).map(rowOf))
    await writing
    writing = write(rows)
  }
  await writing
}

export const textOf = ({ vector }: Memory): string => toVectorText([...vector])
