import type { Caller, KeyEntry } from '../ports.ts'

/** A list of keys that share the load: `next` is where the next call begins. */
type Pool = { keys: readonly KeyEntry[]; next: number }

/** The keys of one vendor as one caller may use them: those granted to him first, then the shared ones. */
export type CallerPools = {
  pools: readonly Pool[]
  /** How many more keys the vendor has: they are granted to others. */
  others: number
}

const maxCallers = 10_000

const listIn = <Key>(lists: Map<Key, KeyEntry[]>, key: Key): KeyEntry[] => {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}

const pairOf = (businessId: string, userId: string): string => JSON.stringify([businessId, userId])

export type VendorPools = {
  of(caller: Caller): CallerPools
  /** The shared key whose turn it is. */
  turn(): string | null
}

/**
 * Sorts the keys of a vendor by who may use them, once; each caller's own are put together at his first call. `turn` is
 * the shared key that goes first.
 */
export const createPools = (keys: readonly KeyEntry[], turn: string | null): VendorPools => {
  const order = new Map(keys.map((key, index) => [key, index]))
  const sharedKeys = keys.filter(({ grants }) => grants.length === 0)
  const shared: Pool = {
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
      if (business_id === null) listIn(byUser, user_id).push(key)
      else if (user_id === null) listIn(byBusiness, business_id).push(key)
      else listIn(byPair, pairOf(business_id, user_id)).push(key)

  const grantedTo = ({ business_id, user_id }: Caller): KeyEntry[] => {
    const granted = new Set(byBusiness.get(business_id))
    if (user_id !== null) {
      for (const key of byUser.get(user_id) ?? []) granted.add(key)
      for (const key of byPair.get(pairOf(business_id, user_id)) ?? []) granted.add(key)
    }
    return [...granted].sort((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0))
  }

  const sharedOnly: CallerPools = { pools: [shared], others: keys.length - shared.keys.length }
  const known = new Map<string, Map<string | null, CallerPools>>()
  let remembered = 0
  const make = (caller: Caller): CallerPools => {
    const granted = grantedTo(caller)
    if (granted.length === 0) return sharedOnly
    return { pools: [{ keys: granted, next: 0 }, shared], others: sharedOnly.others - granted.length }
  }
  const of = (caller: Caller): CallerPools => {
    // without grants everybody is alike, and nobody need be remembered
    if (sharedOnly.others === 0) return sharedOnly
    const pools = known.get(caller.business_id)?.get(caller.user_id)
    if (pools) return pools
    if (remembered >= maxCallers) {
      known.clear()
      remembered = 0
    }
    const made = make(caller)
    const ofBusiness = known.get(caller.business_id) ?? new Map()
    known.set(caller.business_id, ofBusiness.set(caller.user_id, made))
    remembered++
    return made
  }
  return { of, turn: () => shared.keys[shared.next]?.id ?? null }
}
