import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { Json } from '../runtime-state.ts'
import { lessonsOf, type Profile } from './learned.ts'

/** What a run taught of a field, and when. */
const taughtSchema = z.strictObject({
  value: z.json(),
  session_id: z.string(),
  run_id: z.string(),
  learned_at: z.string(),
})

/** A field of a user's profile and where it is from. */
const knownFieldSchema = z.strictObject({
  field: z.string(),
  /** Null: an admin has taken it away since it was learned. */
  value: z.json(),
  /** `admin`: set or changed by one, and so of no session. */
  origin: z.enum(['learned', 'admin']),
  session_id: z.string().nullable(),
  run_id: z.string().nullable(),
  learned_at: z.string().nullable(),
  /** What other sessions taught, the latest first; of an admin's all that was ever learned and is still kept. */
  earlier: z.array(taughtSchema),
})

/** What was written down of a session, which later ones may be shown. */
const summarySchema = z.strictObject({
  session_id: z.string(),
  summary: z.string(),
  /** The latest turn that it tells of. */
  turn: z.int().nonnegative(),
  updated_at: z.string(),
})

/** What is known of a user beside his memories. */
export const knownSchema = z.strictObject({
  profile: z.array(knownFieldSchema),
  summaries: z.array(summarySchema),
})
export type Known = z.infer<typeof knownSchema>

/** All fields of a profile, and those that were learned and are not in it any more. */
export const knownFields = ({ profile, learned }: Profile): Known['profile'] => {
  const fields = new Set([...Object.keys(profile), ...Object.keys(learned)])
  return [...fields].sort().map((field) => {
    const value: Json = profile[field] ?? null
    const lessons = lessonsOf(learned, field).map(({ at, ...taught }) => ({ ...taught, learned_at: at }))
    const [latest, ...earlier] = lessons
    if (latest && isDeepStrictEqual(latest.value, profile[field]))
      return { field, origin: 'learned', ...latest, earlier }
    return {
      field,
      value,
      origin: 'admin',
      session_id: null,
      run_id: null,
      learned_at: null,
      earlier: lessons,
    }
  })
}
