import { isDeepStrictEqual } from 'node:util'
import { chosen, chosenText } from './protocol.ts'
import type { ProtocolAction, ProtocolState } from './state.ts'

/** Attempts of the test have names of their own; those that the product makes when it settles a run are its choice. */
export const attemptPrefix = 'try-'

const byPlace = (a: ProtocolAction, b: ProtocolAction): number =>
  a.session === b.session ? a.seq - b.seq : a.session < b.session ? -1 : 1

/** A state without what the product may choose: ids of wakeUps that were not there before, of questions, of its attempts. */
const comparable = (state: ProtocolState, before: ProtocolState) => ({
  ...state,
  actions: state.actions
    .map((row) => (row.attempt.startsWith(attemptPrefix) ? row : { ...row, attempt: chosenText }))
    .toSorted(byPlace),
  questions: Object.fromEntries(Object.entries(state.questions).map(([key, { status }]) => [key, status])),
  wakeUps: state.wakeUps
    .map((wakeUp) => (before.wakeUps.some(({ id }) => id === wakeUp.id) ? wakeUp : { ...wakeUp, id: chosen }))
    .toSorted((a, b) => a.id - b.id || (a.run < b.run ? -1 : 1)),
})

/** Whether what stands in the database is what was expected to follow `before`. */
export const follows = (seen: ProtocolState, expected: ProtocolState, before: ProtocolState): boolean =>
  isDeepStrictEqual(comparable(seen, before), comparable(expected, before))

const ended = new Set(['completed', 'failed', 'cancelled'])

/** What may never be seen, whatever the model says of it; the first thing found, or null. */
export const brokenLaw = (seen: ProtocolState, before: ProtocolState): string | null => {
  const place = (row: ProtocolAction): string => `${row.session}/${row.seq}`
  const rows = new Map(seen.actions.map((row) => [place(row), row]))
  if (rows.size < seen.actions.length) return 'two actions have one id'
  if (before.actions.some((row) => !isDeepStrictEqual(row, rows.get(place(row)))))
    return 'an action was changed or lost'
  if (new Set(seen.actions.map(({ attempt }) => attempt)).size < seen.actions.length)
    return 'one attempt has two actions'
  const counts = new Map<string, number>()
  for (const { session, seq } of seen.actions.toSorted(byPlace)) {
    const count = (counts.get(session) ?? 0) + 1
    if (seq !== count) return `the actions of ${session} have a gap at ${count}`
    counts.set(session, count)
  }
  for (const row of seen.actions)
    if (!before.actions.some((old) => place(old) === place(row)) && row.epoch !== seen.runs[row.run]?.epoch)
      return `action ${place(row)} was written under the old epoch ${row.epoch}`
  for (const [id, run] of Object.entries(before.runs)) {
    const now = seen.runs[id]
    if (!now || now.epoch < run.epoch) return `the epoch of ${id} fell`
    if (ended.has(run.status) && !isDeepStrictEqual(run, now)) return `${id} has ended and was changed`
  }
  for (const [key, { status }] of Object.entries(seen.waits))
    if (
      (status === 'open' || status === 'late') &&
      ended.has(seen.runs[key.split('|')[0] ?? '']?.status ?? '')
    )
      return `the run of ${key} has ended, and its wait is open`
  for (const [id, run] of Object.entries(seen.runs))
    if (run.results !== (ended.has(run.status) ? 1 : 0))
      return `${id} is ${run.status} with ${run.results} results`
  return null
}
