import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../runtime-state.ts'
import { holdsWords } from './words.ts'

/** What a run taught of one field. `at`: ISO 8601 in UTC. */
export type Taught = { value: Json; at: string; session_id: string; run_id: string }

/** By field: what was learned last, and what other sessions taught before, the latest first. */
type Learned = Record<string, Taught & { earlier?: Taught[] }>

/** A user's profile, and which of its fields were learned. A field whose value is another by now is the admin's. */
export type Profile = { profile: Record<string, Json>; learned: Learned }

/** Sessions that a field is remembered to be from. */
const mostLessons = 20

const isLearned = ({ profile, learned }: Profile, field: string): boolean =>
  profile[field] !== undefined && isDeepStrictEqual(profile[field], learned[field]?.value)

/** What was learned of a field, the latest first. */
export const lessonsOf = (learned: Learned, field: string): Taught[] => {
  const { earlier = [], ...latest } = learned[field] ?? {}
  return 'value' in latest ? [latest as Taught, ...earlier] : []
}

const entryOf = ([latest, ...earlier]: readonly [Taught, ...Taught[]]): Learned[string] =>
  earlier.length === 0 ? latest : { ...latest, earlier: earlier.slice(0, mostLessons - 1) }

/** The profile with these fields, but for what the admin has set; null when nothing of it changes. */
export const learnFields = (
  user: Profile,
  fields: Readonly<Record<string, Json>>,
  source: Omit<Taught, 'value'>,
): Profile | null => {
  const own = Object.entries(fields).filter(
    ([field]) => user.profile[field] === undefined || isLearned(user, field),
  )
  if (own.length === 0) return null
  const entries = own.map(([field, value]) => {
    const before = isLearned(user, field) ? lessonsOf(user.learned, field) : []
    const others = before.filter(({ session_id }) => session_id !== source.session_id)
    return [field, entryOf([{ value, ...source }, ...others])] as const
  })
  return {
    profile: { ...user.profile, ...Object.fromEntries(own) },
    learned: { ...user.learned, ...Object.fromEntries(entries) },
  }
}

/**
 * The profile without what these lessons taught: a field has the value again that another session taught before, or goes.
 * What the admin has set or taken away stays so, and counts as learned no more. Null when nothing changes.
 */
export const unlearnFields = (
  user: Profile,
  isGone: (taught: Taught, field: string) => boolean,
): Profile | null => {
  const profile = { ...user.profile }
  const learned = { ...user.learned }
  let hasChanged = false
  for (const field of Object.keys(user.learned)) {
    const lessons = lessonsOf(user.learned, field)
    const [latest, ...earlier] = lessons.filter((taught) => !isGone(taught, field))
    if (1 + earlier.length === lessons.length && latest) continue
    hasChanged = true
    const isOurs = isLearned(user, field)
    if (isOurs && latest) {
      profile[field] = latest.value
      learned[field] = entryOf([latest, ...earlier])
      continue
    }
    if (isOurs) delete profile[field]
    delete learned[field]
  }
  return hasChanged ? { profile, learned } : null
}

/** The field of the profile that a memory's subject is about. */
const fieldOf: Readonly<Record<string, string>> = {
  name: 'name',
  home: 'location',
  work: 'occupation',
  'time zone': 'timezone',
  'language of answers': 'language',
}

/** A memory that goes: its words, its subject, and the runs that taught it. */
export type GoneMemory = { content: string; subject: string | null; run_ids: readonly string[] }

/**
 * Whether a field says what this memory says: one run taught both and it is of this field, or one of the two holds and the
 * value stands in its words.
 */
export const isSaidByMemory = (
  { content, subject, run_ids }: GoneMemory,
  { value, run_id }: Taught,
  field: string,
): boolean => {
  const isSameRun = run_ids.includes(run_id)
  const isSameField = fieldOf[subject ?? ''] === field
  if (isSameRun === isSameField) return isSameRun
  return holdsWords(content, valueText(value))
}

/** A value as words: of a list or an object its JSON. */
export const valueText = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))
