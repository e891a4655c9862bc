import type { RuntimeState } from '../../src/state/runtime-state.ts'
import type { Accepted } from './clients.ts'
import { callsOf } from './job.ts'
import type { LedgerEntry } from './ledger.ts'

export type EffectRow = {
  run_id: string
  effect_id: string
  class: string
  status: string
  sends: number
  request: string
}

type Actions = RuntimeState['action_history'][number]

const effectful = new Set(['keyed', 'queryable', 'manual'])

/**
 * What the ledger says of a run's side effects: each was carried out at most once, always under its one key and with the
 * bytes that stand in the database, and exactly once where the run says that it took place.
 */
export const checkEffects = (
  { job }: Accepted,
  actions: Actions,
  effects: readonly EffectRow[],
  ledger: Map<string, LedgerEntry[]>,
): string[] => {
  const faults: string[] = []
  for (const [round] of job.rounds.entries())
    for (const [index, { item, kind }] of callsOf(job, round, '').entries()) {
      const deeds = ledger.get(item) ?? []
      const acted = deeds.filter((deed) => deed.acted)
      if (!effectful.has(kind)) {
        if (deeds.length > 0) faults.push(`${item} is no side effect and stands in the ledger`)
        continue
      }
      const effect = effects.find(({ request }) => (JSON.parse(request) as { item?: string }).item === item)
      const keys = new Set(deeds.map(({ key }) => key))
      if (acted.length > 1)
        faults.push(`doubled effect: ${kind} ${item} was carried out ${acted.length} times`)
      if (keys.size > 1) faults.push(`doubled effect: ${item} was asked for under ${keys.size} keys`)
      if (deeds.length > 0 && !effect)
        faults.push(`${item} is in the ledger, and its intent is not in the database`)
      if (effect && keys.size === 1 && !keys.has(effect.effect_id))
        faults.push(`${item} was sent under another key than the database holds`)
      if (effect && deeds.length > effect.sends)
        faults.push(`${item} was sent ${deeds.length} times, and ${effect.sends} were written down before`)
      const appended = actions.find(({ result }) => (result.call as { id?: string } | undefined)?.id === item)
      const tookPlace = appended !== undefined && appended.result.is_error !== true
      if (tookPlace && acted.length === 0)
        faults.push(
          `lost effect: the run says that ${kind} ${item} (${round}.${index}) took place, the ledger does not`,
        )
    }
  return faults
}
