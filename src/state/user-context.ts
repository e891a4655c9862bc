import type { Json, RuntimeState } from './runtime-state.ts'

/** What is known of a user, as `user_context` holds it: fields with something in them, the well-known ones first. */
export type UserContext = RuntimeState['user_context']

/**
 * The fields the description of a user is made from, in their order in `user_context`. A profile may
 * have any others beside them; they come after these. Lists may also be given as one text.
 */
export const userFields = [
  'name',
  'preferred_name',
  'pronouns',
  'occupation',
  'organization',
  'location',
  'language',
  'languages',
  'timezone',
  'expertise',
  'learning',
  'interests',
  'goals',
  'preferences',
  'communication_style',
  'habits',
  'constraints',
  'about',
] as const

/** The one fixed method from a profile to `user_context`: empty fields are left out, at any depth; `{}` for an unknown user. */
export const toUserContext = (profile: Readonly<Record<string, Json>>): Record<string, Json> => {
  const known = userFields.filter((field) => Object.hasOwn(profile, field))
  const others = Object.keys(profile).filter((field) => !(userFields as readonly string[]).includes(field))
  return Object.fromEntries(
    [...known, ...others].flatMap((field) => {
      const value = withoutEmpty(profile[field])
      return value === null ? [] : [[field, value]]
    }),
  )
}

/** The value without what says nothing; null when nothing is left. */
const withoutEmpty = (value: Json | undefined): Json => {
  if (value === undefined || value === null) return null
  if (typeof value === 'string') return value.trim() === '' ? null : value
  if (typeof value !== 'object') return value
  if (Array.isArray(value)) {
    const items = value.map(withoutEmpty).filter((item) => item !== null)
    return items.length > 0 ? items : null
  }
  const entries = Object.entries(value).flatMap(([key, item]) => {
    const kept = withoutEmpty(item)
    return kept === null ? [] : [[key, kept] as const]
  })
  return entries.length > 0 ? Object.fromEntries(entries) : null
}
