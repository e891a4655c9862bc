import { LRUCache } from 'lru-cache'
import type { KeyEntry, ModelCaller } from '../ports/model-ports.ts'

/** A list of keys that share the load: the next call begins at index `next`. */
type KeyPool = { keys: readonly KeyEntry[]; next: number }

/** The keys of one vendor that a caller may use: those granted to it first, then the shared ones. */
export type CallerKeyPools = {
  pools: readonly KeyPool[]
  /** How many more keys the vendor has, all granted to other callers. */
  grantedToOthers: number
}

const maxCallers = 10_000

const getOrAddList = <Key>(lists: Map<Key, KeyEntry[]>, key: Key): KeyEntry[] => {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}

const toPairKey = (businessId: string, userId: string | null): string => JSON.stringify([businessId, userId])

/** The keys of one vendor, by caller. */
export type VendorKeyPools = {
  forCaller(caller: ModelCaller): CallerKeyPools
  /** The shared key whose turn it is. */
  nextSharedKey(): string | null
}

/**
 * Groups the keys of a vendor by the callers that may use them. A caller's pools are built at its first call and cached.
 * `turn` is the id of the shared key to begin with.
 */
export const createKeyPools = (keys: readonly KeyEntry[], turn: string | null): VendorKeyPools => {
  const order = new Map(keys.map((key, index) => [key, index]))
  const sharedKeys = keys.filter(({ grants }) => grants.length === 0)
  const shared: KeyPool = {
    keys: sharedKeys,
    next: Math.max(
      0,
      sharedKeys.findIndex(({ id }) => id === turn),
    ),
  }
  const byBusiness = new Map<string, KeyEntry[]>()
  const byUser = new Map<string | null, KeyEntry[]>()
  const byPair = new Map<string, KeyEntry[]>()
  for (const key of keys)
    for (const { business_id, user_id } of key.grants)
      if (business_id === null) getOrAddList(byUser, user_id).push(key)
      else if (user_id === null) getOrAddList(byBusiness, business_id).push(key)
      else getOrAddList(byPair, toPairKey(business_id, user_id)).push(key)

  const grantedTo = ({ business_id, user_id }: ModelCaller): KeyEntry[] => {
    const granted = new Set(byBusiness.get(business_id))
    if (user_id !== null) {
      for (const key of byUser.get(user_id) ?? []) granted.add(key)
      for (const key of byPair.get(toPairKey(business_id, user_id)) ?? []) granted.add(key)
    }
    return [...granted].sort((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0))
  }

  const sharedOnly: CallerKeyPools = { pools: [shared], grantedToOthers: keys.length - shared.keys.length }
  let cache: LRUCache<string, CallerKeyPools> | undefined
  const make = (caller: ModelCaller): CallerKeyPools => {
    const granted = grantedTo(caller)
    if (granted.length === 0) return sharedOnly
    return {
      pools: [{ keys: granted, next: 0 }, shared],
      grantedToOthers: sharedOnly.grantedToOthers - granted.length,
    }
  }
  const forCaller = (caller: ModelCaller): CallerKeyPools => {
    // without grants all callers have the same keys
    if (sharedOnly.grantedToOthers === 0) return sharedOnly
    cache ??= new LRUCache({ max: maxCallers })
    const name = toPairKey(caller.business_id, caller.user_id)
    const pools = cache.get(name) ?? make(caller)
    cache.set(name, pools)
    return pools
  }
  return { forCaller, nextSharedKey: () => shared.keys[shared.next]?.id ?? null }
}
