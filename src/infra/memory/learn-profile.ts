import { isDeepStrictEqual } from 'node:util'
import type { Sql } from '../../state/ports.ts'
import type { Json } from '../../state/runtime-state.ts'
import { one } from '../database/database.ts'
import type { Source } from './remember.ts'
import type { Who } from './scope.ts'

/** A field that was learned: its value, and the run that taught it. */
type Learned = Record<string, { value: Json; at: string } & Source>

/** Adds fields to a user's profile and notes where they are from. What an admin has set stays as it is. */
export const learnProfile = async (
  sql: Sql,
  { tenant, user_id }: Who,
  source: Source,
  fields: Readonly<Record<string, Json>>,
): Promise<void> => {
  if (Object.keys(fields).length === 0) return
  await sql.query('INSERT INTO users (tenant, user_id) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
    tenant,
    user_id,
  ])
  const user = await one<{ profile: Record<string, Json>; learned: Learned }>(
    sql,
    'SELECT profile, learned FROM users WHERE tenant = $1 AND user_id = $2 FOR UPDATE',
    [tenant, user_id],
  )
  if (!user) return
  const { profile, learned } = user
  const at = new Date().toISOString()
  const isOurs = (field: string): boolean =>
    profile[field] === undefined || isDeepStrictEqual(profile[field], learned[field]?.value)
  const own = Object.entries(fields).filter(([field]) => isOurs(field))
  if (own.length === 0) return
  const noted = own.map(([field, value]) => [field, { value, at, ...source }])
  await sql.query(
    `UPDATE users SET profile = $3::json, learned = $4::json, updated_at = clock_timestamp() WHERE tenant = $1 AND user_id = $2`,
    [
      tenant,
      user_id,
      JSON.stringify({ ...profile, ...Object.fromEntries(own) }),
      JSON.stringify({ ...learned, ...Object.fromEntries(noted) }),
    ],
  )
}
