import { LRUCache } from 'lru-cache'
import { memoizeByObject } from '../state/memoize.ts'

const maxKept = 1000

/** What changes are seen by: its `view` is another object after each. */
export type Viewed = { readonly view: object }

/**
 * Reads that are kept by key with the view under which they began, and shared by all who ask for them under it. One that fails is
 * not kept. Only for what raises the version of that view.
 */
export const keepWithView = <Value extends NonNullable<unknown>>() => {
  const keptOf = memoizeByObject((_view: object) => new LRUCache<string, Promise<Value>>({ max: maxKept }))
  return ({ view }: Viewed, key: string, read: () => Promise<Value>): Promise<Value> => {
    const kept = keptOf(view)
    const known = kept.get(key)
    if (known) return known
    const value = read()
    kept.set(key, value)
    value.catch(() => kept.delete(key))
    return value
  }
}
