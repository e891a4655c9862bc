import type { Sql } from '../state/ports.ts'
import type { Json } from '../state/runtime-state.ts'
import { one } from './database/database.ts'

/** What the users table has of a user: empty for one never seen. */
export const readProfile = async (
  sql: Sql,
  tenant: string,
  userId: string,
): Promise<Record<string, Json>> => {
  const row = await one<{ profile: Record<string, Json> }>(
    sql,
    'SELECT profile FROM users WHERE tenant = $1 AND user_id = $2',
    [tenant, userId],
  )
  return row?.profile ?? {}
}
