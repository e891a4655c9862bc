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
  const sharedKeys = keys.filter(({ grants }) => grants.length === 0)
  const next = sharedKeys.findIndex(({ id }) => id === turn)
  const shared: KeyPool = { keys: sharedKeys, next: Math.max(0, next) }
  const ofOthers = keys.length - sharedKeys.length
  // without grants all callers have the same keys
  const everyone: CallerKeyPools | null = ofOthers === 0 ? { pools: [shared], grantedToOthers: 0 } : null
  let callers: LRUCache<string, CallerKeyPools> | undefined
  const make = ({ business_id, user_id }: ModelCaller): CallerKeyPools => {
    const granted = keys.filter(({ grants }) =>
      grants.some(
        (to) =>
          (to.business_id === null || to.business_id === business_id) &&
          (to.user_id === null || to.user_id === user_id),
      ),
    )
    const own = granted.length === 0 ? [] : [{ keys: granted, next: 0 }]
    return { pools: [...own, shared], grantedToOthers: ofOthers - granted.length }
  }
  const forCaller = (caller: ModelCaller): CallerKeyPools => {
    if (everyone) return everyone
    callers ??= new LRUCache({ max: maxCallers })
    const name = JSON.stringify([caller.business_id, caller.user_id])
    const pools = callers.get(name) ?? make(caller)
    callers.set(name, pools)
    return pools
  }
  return { forCaller, nextSharedKey: () => shared.keys[shared.next]?.id ?? null }
}
