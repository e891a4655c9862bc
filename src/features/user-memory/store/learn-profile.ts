import { isDeepStrictEqual } from 'node:util'
import { ensureUser, writeUserProfile } from '../../../accounts/users.ts'
import { queryOne } from '../../../infra/database/database.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import type { Json } from '../../../state/runtime-state.ts'
import {
  type LearnedProfile,
  learnProfileFields,
  toValueText,
  unlearnProfileFields,
} from '../policy/learned-profile.ts'
import type { NoteSource } from './remember.ts'
import type { MemoryOwner } from './user-scope.ts'

/**
 * Changes a profile under its row's lock; no change where there is no row or `change` returns null. Returns the values that
 * the profile has lost.
 */
const changeProfile = async (
  sql: Sql,
  { business, user_id }: MemoryOwner,
  change: (user: LearnedProfile) => LearnedProfile | null,
): Promise<string[]> => {
  const statement = 'SELECT profile, learned FROM users WHERE tenant = $1 AND user_id = $2 FOR UPDATE'
  const user = await queryOne<LearnedProfile>(sql, statement, [business, user_id])
  const changed = user && change(user)
  if (!changed) return []
  await writeUserProfile(sql, business, user_id, changed)
  const lostFields = Object.keys(user.profile).filter(
    (field) => !isDeepStrictEqual(user.profile[field], changed.profile[field]),
  )
  return lostFields.map((field) => toValueText(user.profile[field] ?? null))
}

/** Adds fields to a user's profile, with their source. Fields that an admin has set stay. */
export const learnProfile = async (
  sql: Sql,
  owner: MemoryOwner,
  source: NoteSource,
  fields: Readonly<Record<string, Json>>,
): Promise<void> => {
  if (Object.keys(fields).length === 0) return
  await ensureUser(sql, owner.business, owner.user_id)
  const at = new Date().toISOString()
  await changeProfile(sql, owner, (user) => learnProfileFields(user, fields, { ...source, at }))
}

/**
 * Removes the values that `isForgotten` selects from a user's profile; returns the lost ones. Inside a transaction that
 * holds the user's lock.
 */
export const unlearnProfile = (
  sql: Sql,
  owner: MemoryOwner,
  isForgotten: Parameters<typeof unlearnProfileFields>[1],
): Promise<string[]> => changeProfile(sql, owner, (user) => unlearnProfileFields(user, isForgotten))
