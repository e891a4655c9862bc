import type { Violation } from '../violations.ts'
import { computeMaxFlow } from './max-flow.ts'
import type { Checkout, LineItemRequirement } from './types.ts'

/** More than a mandate of 256 KB can have. */
const maxEntries = 25_000

/**
 * Whether every item of the checkout has a requirement of its own that accepts it: the largest flow from items to requirements
 * must be the whole cart. Less than what is required is no violation: `flow == cart total` (AP2.md 1.4). A list without a disclosed
 * entry accepts nothing; the reference SDK lets an empty one accept everything, which would let a dropped disclosure do so too.
 */
export const checkLineItems = (
  requirements: readonly LineItemRequirement[],
  checkout: Checkout,
  field: string,
): Violation[] => {
  const refuse = (code: string, message: string): Violation => ({
    code,
    error: 'unresolved_constraint',
    field,
    message,
  })
  const quantities = new Map<string, number>()
  for (const { item, quantity } of checkout.line_items)
    if (quantity > 0) quantities.set(item.id, (quantities.get(item.id) ?? 0) + quantity)
  if (quantities.size === 0)
    return [refuse('empty_checkout', 'the checkout has no items: add those of the mandate')]

  const accepting = new Map<string, number[]>()
  let entries = 0
  requirements.forEach(({ acceptable_items }, i) => {
    for (const entry of acceptable_items) {
      const { id } = entry
      if (id === undefined || '...' in entry) continue
      const indexes = accepting.get(id) ?? []
      if (indexes.at(-1) === i) continue
      accepting.set(id, indexes)
      indexes.push(i)
      entries++
    }
  })
  const tooComplex = refuse(
    'line_items_too_complex',
    'the items cannot be matched in time: send a smaller checkout',
  )
  if (entries > maxEntries) return [tooComplex]
  const ids = [...quantities.keys()]
  const foreign = ids.filter((id) => !accepting.has(id))
  if (foreign.length > 0) {
    const names = `${foreign
      .slice(0, 5)
      .map((id) => JSON.stringify(id.slice(0, 100)))
      .join(', ')}${foreign.length > 5 ? ', …' : ''}`
    return [
      refuse(
        'item_not_allowed',
        `no disclosed entry of ${field} accepts ${foreign.length} of the items (${names}): remove them, or disclose the entries`,
      ),
    ]
  }
  // items that the same requirements accept are one supply
  const supplies = new Map<string, { quantity: number; indexes: number[] }>()
  let total = 0
  for (const [id, quantity] of quantities) {
    const indexes = accepting.get(id) ?? []
    const key = indexes.join()
    const supply = supplies.get(key) ?? { quantity: 0, indexes }
    supply.quantity += quantity
    supplies.set(key, supply)
    total += quantity
  }
  const groups = [...supplies.values()]
  const flow = computeMaxFlow(
    groups.map(({ quantity }) => quantity),
    requirements.map(({ quantity }) => quantity),
    groups.flatMap(({ indexes }, i) => indexes.map((j) => [i, j] as const)),
  )
  if (flow === null) return [tooComplex]
  if (flow === total) return []
  const rest = `${total - flow} of ${total} items are more than ${field} allows`
  return [refuse('too_many_items', `${rest}: reduce their quantities`)]
}
