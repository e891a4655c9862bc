import { LRUCache } from 'lru-cache'
import { operatorWords, type PromptText } from '../state/provenance.ts'
import type { Json, RuntimeState } from '../state/runtime-state.ts'
import { findTurnAction, turnActions } from '../state/turn.ts'
import { noText } from './sections.ts'

type ZoneFormat = { format: Intl.DateTimeFormat; timeZone: string }

/** What reads the clocks of a zone, by any of its names; making one takes longer than all else here. Throws for another text. */
const zoneFormats = new LRUCache<string, ZoneFormat>({
  max: 100,
  memoMethod: (zone) => {
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      weekday: 'long',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
      timeZoneName: 'longOffset',
    })
    return { format, timeZone: format.resolvedOptions().timeZone }
  },
})
const findZoneFormat = (name: unknown): ZoneFormat | null => {
  if (typeof name !== 'string') return null
  try {
    return zoneFormats.memo(name.trim())
  } catch {
    return null
  }
}

/**
 * Weekday, date, time and zone of the turn's start, as `load-session` committed it: in the user's zone where the profile
 * has one, else in that of the worker. Empty for a turn of before it was committed.
 */
export const describeTurnStart = (
  state: Pick<RuntimeState, 'action_history' | 'user_context'>,
): PromptText => {
  const { started_at, time_zone } = turnActions(state)[0]?.result ?? {}
  const at = new Date(typeof started_at === 'string' ? started_at : Number.NaN)
  if (Number.isNaN(at.getTime())) return noText
  const { format, timeZone } =
    findZoneFormat(state.user_context.timezone) ?? findZoneFormat(time_zone) ?? zoneFormats.memo('UTC')
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]))
  const { weekday, year, month, day, hour, minute, timeZoneName } = parts
  // no offset is "GMT" in some versions of ICU
  const zone = `${timeZone}, ${timeZoneName === 'GMT' ? 'GMT+00:00' : timeZoneName}`
  return operatorWords(
    `${weekday}, ${year}-${month}-${day}, ${hour}:${minute} (${zone}), when this turn began`,
  )
}

/**
 * What the turn was opened with: names of files, of fields the caller has set, of fields a rule may set, of roles that rules replace,
 * of prepare tools that run after `understand`.
 */
export const readOpening = (
  state: Pick<RuntimeState, 'action_history'>,
  name: 'files' | 'given' | 'open' | 'rules' | 'later',
): readonly Json[] => {
  const list = findTurnAction(state, 'load-session')?.result[name]
  return Array.isArray(list) ? list : []
}
