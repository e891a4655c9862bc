import { readFileSync } from 'node:fs'
import type { EffectRequest } from '../../src/state/ports/effects.ts'
import { seededShare } from '../seeded-choice.ts'

/** What a worker asks the ledger to do. `key` is the effect's idempotency key, `item` names the call in the campaign. */
export type Order = { class: EffectRequest['class']; key: string; item: string }

/** How the ledger answered: `lost` and `cut` without a word, before and after the work; `broken` with 500; `late`. */
export type Reply = 'ok' | 'lost' | 'cut' | 'broken' | 'late'

/** What becomes of the nth order for an item. `lost` comes before the work, all others after it. */
export const replyTo = (seed: string | number, item: string, nth: number): Reply => {
  const thrown = seededShare(seed, item, nth)
  if (thrown < 0.8) return 'ok'
  if (thrown < 0.84) return 'lost'
  if (thrown < 0.9) return 'cut'
  if (thrown < 0.96) return 'broken'
  return 'late'
}

/** One line of the ledger: an order, and whether it was carried out. */
export type LedgerEntry = Order & { at: number; nth: number; reply: Reply; acted: boolean }

/** What a look at the ledger shows; a big one is more than an action keeps in itself. */
export const lookupResult = (item: string, isBig: boolean): string =>
  `saw ${item}${isBig ? '.'.repeat(40_000) : ''}`

/** Everything the ledger was asked to do, by item. */
export const readLedger = (file: string): Map<string, LedgerEntry[]> => {
  const deeds = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as LedgerEntry)
  const byItem = new Map<string, LedgerEntry[]>()
  for (const deed of deeds) byItem.set(deed.item, [...(byItem.get(deed.item) ?? []), deed])
  return byItem
}
