import { isDeepStrictEqual } from 'node:util'
import type { UserKnowledge } from '../../../state/memory-view.ts'
import type { Json } from '../../../state/runtime-state.ts'
import { containsWords } from '../../../state/text/words.ts'

/** A value that a run taught for one field. `at`: ISO 8601 in UTC. */
export type TaughtValue = { value: Json; at: string; session_id: string; run_id: string }

/** By field: the value learned last, and those that other sessions taught before, newest first. */
type LearnedFields = Record<string, TaughtValue & { earlier?: TaughtValue[] }>

/** A user's profile, and what was learned of its fields. A field whose value differs from that is the admin's. */
export type LearnedProfile = { profile: Record<string, Json>; learned: LearnedFields }

/** Sessions stored for each field. */
const maxTaughtValues = 20

/** Whether the value of a field is the one learned last; else it is the admin's. */
const isLearnedField = ({ profile, learned }: LearnedProfile, field: string): boolean =>
  profile[field] !== undefined && isDeepStrictEqual(profile[field], learned[field]?.value)

/** The values learned for a field, newest first. */
const listTaughtValues = (learned: LearnedFields, field: string): TaughtValue[] => {
  const { earlier = [], ...latest } = learned[field] ?? {}
  return 'value' in latest ? [latest as TaughtValue, ...earlier] : []
}

const toEntry = ([latest, ...earlier]: readonly [TaughtValue, ...TaughtValue[]]): LearnedFields[string] =>
  earlier.length === 0 ? latest : { ...latest, earlier: earlier.slice(0, maxTaughtValues - 1) }

/** The profile with these fields, except those that an admin has set; null when nothing changes. */
export const learnProfileFields = (
  user: LearnedProfile,
  fields: Readonly<Record<string, Json>>,
  source: Omit<TaughtValue, 'value'>,
): LearnedProfile | null => {
  const own = Object.entries(fields).filter(
    ([field]) => user.profile[field] === undefined || isLearnedField(user, field),
  )
  if (own.length === 0) return null
  const entries = own.map(([field, value]) => {
    const before = isLearnedField(user, field) ? listTaughtValues(user.learned, field) : []
    const others = before.filter(({ session_id }) => session_id !== source.session_id)
    return [field, toEntry([{ value, ...source }, ...others])] as const
  })
  return {
    profile: { ...user.profile, ...Object.fromEntries(own) },
    learned: { ...user.learned, ...Object.fromEntries(entries) },
  }
}

/**
 * The profile without the values that `isForgotten` selects: a field returns to the value that another session taught
 * before, or is removed. What an admin has set or removed stays, and no longer counts as learned. Null: nothing changes.
 */
export const unlearnProfileFields = (
  user: LearnedProfile,
  isForgotten: (taught: TaughtValue, field: string) => boolean,
): LearnedProfile | null => {
  const profile = { ...user.profile }
  const learned = { ...user.learned }
  let hasChanged = false
  for (const field of Object.keys(user.learned)) {
    const lessons = listTaughtValues(user.learned, field)
    const [latest, ...earlier] = lessons.filter((taught) => !isForgotten(taught, field))
    if (1 + earlier.length === lessons.length && latest) continue
    hasChanged = true
    const isLearned = isLearnedField(user, field)
    if (isLearned && latest) {
      profile[field] = latest.value
      learned[field] = toEntry([latest, ...earlier])
      continue
    }
    if (isLearned) delete profile[field]
    delete learned[field]
  }
  return hasChanged ? { profile, learned } : null
}

/** The profile field for a memory's subject. */
export const profileFieldBySubject: Readonly<Record<string, string>> = {
  name: 'name',
  home: 'location',
  work: 'occupation',
  'time zone': 'timezone',
  'language of answers': 'language',
}

/** A memory that is being forgotten, and the runs that taught it. */
export type ForgottenMemory = { content: string; subject: string | null; run_ids: readonly string[] }

/**
 * Whether a field's value comes from this memory: the same run taught both and the memory's subject is the field; or one
 * of the two holds and the memory contains the value.
 */
export const isTaughtByMemory = (
  { content, subject, run_ids }: ForgottenMemory,
  { value, run_id }: TaughtValue,
  field: string,
): boolean => {
  const isSameRun = run_ids.includes(run_id)
  const isSameField = profileFieldBySubject[subject ?? ''] === field
  if (isSameRun === isSameField) return isSameRun
  return containsWords(content, toValueText(value))
}

/** A value as text: JSON for a list or an object. */
export const toValueText = (value: Json): string =>
  typeof value === 'string' ? value : JSON.stringify(value)

/** All fields of a profile, and those that were learned and are no longer in it. */
export const listProfileFields = (user: LearnedProfile): UserKnowledge['profile'] => {
  const { profile, learned } = user
  return [...new Set([...Object.keys(profile), ...Object.keys(learned)])].sort().map((field) => {
    const taught = listTaughtValues(learned, field).map(({ at, ...value }) => ({ ...value, learned_at: at }))
    const [latest, ...earlier] = taught
    if (latest && isLearnedField(user, field)) return { field, origin: 'learned', ...latest, earlier }
    return {
      field,
      value: profile[field] ?? null,
      origin: 'admin',
      session_id: null,
      run_id: null,
      learned_at: null,
      earlier: taught,
    }
  })
}
