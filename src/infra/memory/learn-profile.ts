import { isDeepStrictEqual } from 'node:util'
import {
  type GoneMemory,
  isSaidByMemory,
  learnFields,
  type Profile,
  unlearnFields,
  valueText,
} from '../../state/memory/learned.ts'
import type { Sql } from '../../state/ports.ts'
import type { Json } from '../../state/runtime-state.ts'
import { one } from '../database/database.ts'
import type { Source } from './remember.ts'
import type { Who } from './scope.ts'

/**
 * Under the row's lock; the row stays as it is where there is none, or `change` says null. Gives the values that the profile
 * had and has no more.
 */
const changeProfile = async (
  sql: Sql,
  { tenant, user_id }: Who,
  change: (user: Profile) => Profile | null,
): Promise<string[]> => {
  const user = await one<Profile>(
    sql,
    'SELECT profile, learned FROM users WHERE tenant = $1 AND user_id = $2 FOR UPDATE',
    [tenant, user_id],
  )
  const changed = user && change(user)
  if (!changed) return []
  await sql.query(
    `UPDATE users SET profile = $3::json, learned = $4::json, updated_at = clock_timestamp() WHERE tenant = $1 AND user_id = $2`,
    [tenant, user_id, JSON.stringify(changed.profile), JSON.stringify(changed.learned)],
  )
  const gone = Object.keys(user.profile).filter(
    (field) => !isDeepStrictEqual(user.profile[field], changed.profile[field]),
  )
  return gone.map((field) => valueText(user.profile[field] ?? null))
}

/** Adds fields to a user's profile and notes where they are from. What an admin has set stays as it is. */
export const learnProfile = async (
  sql: Sql,
  who: Who,
  source: Source,
  fields: Readonly<Record<string, Json>>,
): Promise<void> => {
  if (Object.keys(fields).length === 0) return
  await sql.query('INSERT INTO users (tenant, user_id) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
    who.tenant,
    who.user_id,
  ])
  const at = new Date().toISOString()
  await changeProfile(sql, who, (user) => learnFields(user, fields, { ...source, at }))
}

/** Takes back what a session taught of its user; gives the values that went. Inside a transaction that holds the user's lock. */
export const unlearnSession = (sql: Sql, who: Who, sessionId: string): Promise<string[]> =>
  changeProfile(sql, who, (user) => unlearnFields(user, ({ session_id }) => session_id === sessionId))

/** Takes back the fields that say what these memories said; gives the values that went. Inside a transaction that holds the user's lock. */
export const unlearnMemories = (sql: Sql, who: Who, gone: readonly GoneMemory[]): Promise<string[]> =>
  changeProfile(sql, who, (user) =>
    unlearnFields(user, (taught, field) => gone.some((memory) => isSaidByMemory(memory, taught, field))),
  )

/** Takes back all that was learned of a user. Inside a transaction that holds the user's lock. */
export const unlearnAll = (sql: Sql, who: Who): Promise<string[]> =>
  changeProfile(sql, who, (user) => unlearnFields(user, () => true))
