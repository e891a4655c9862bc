import { createHash } from 'node:crypto'

/** A number from 0 up to 1 that depends on its key alone: what happens at once does not change what is thrown. */
export const seededShare = (...key: readonly (string | number)[]): number =>
  createHash('sha256').update(key.join('/')).digest().readUIntBE(0, 6) / 2 ** 48

/** One of these, by the same rule. */
export const seededPick = <Item>(items: readonly Item[], ...key: readonly (string | number)[]): Item => {
  const item = items[Math.floor(seededShare(...key) * items.length)]
  if (item === undefined) throw new Error('there is nothing to pick from')
  return item
}
