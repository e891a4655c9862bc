import { type Database, hasRow, queryOne } from '../infra/database/database.ts'
import {
  createResourceStore,
  type ResourceRow,
  type ResourceScope,
} from '../infra/resources/resource-store.ts'
import { MasonError } from '../state/errors.ts'
import type { Sql } from '../state/ports/sql.ts'
import type { UserProfiles } from '../state/ports/user-profiles.ts'
import type { Json } from '../state/runtime-state.ts'
import type { userSchemas } from './account-schemas.ts'
import { ofBusiness } from './businesses.ts'

/** Deletes what features have of a user, in the transaction that deletes the profile. False: there was nothing. */
export type DeleteOfUser = (sql: Sql, businessId: string, userId: string) => Promise<boolean>

/** Profiles that feed `user_context`. A user id is unique within its business. */
export const createUserAccounts = (database: Database, deleteOfUser: DeleteOfUser = async () => false) => ({
  ...createResourceStore<ResourceRow, typeof userSchemas>(
    { database },
    {
      ...ofBusiness,
      defaults: { business_id: 'default' },
      name: 'user',
      table: 'users',
      idColumn: 'user_id',
      toId: ({ user_id }) => user_id,
      fields: ['profile'],
      json: ['profile'],
      times: ['updated_at'],
      toView: ({ id }) => ({ user_id: id }),
      toTakenError: ({ business_id, user_id }) =>
        new MasonError('already_exists', `business "${business_id}" already has a user "${user_id}"`, {
          remedy: 'change it with PATCH',
        }),
    },
  ),
  /** With what features have of the user. False: there was none of these. */
  remove: ({ business_id = 'default' }: ResourceScope, userId: string): Promise<boolean> =>
    database.transaction(async (sql) => {
      const hadMore = await deleteOfUser(sql, business_id, userId)
      const statement = 'DELETE FROM users WHERE tenant = $1 AND user_id = $2 RETURNING user_id'
      return (await hasRow(sql, statement, [business_id, userId])) || hadMore
    }),
})

/** Inserts the row of a user of whom something was learned, unless it exists. */
export const ensureUser = (sql: Sql, businessId: string, userId: string): Promise<unknown> =>
  sql.query('INSERT INTO users (tenant, user_id) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
    businessId,
    userId,
  ])

/** Writes a profile and what of it was learned, while the caller has its row locked. */
export const writeUserProfile = (
  sql: Sql,
  businessId: string,
  userId: string,
  { profile, learned }: { profile: object; learned: object },
): Promise<unknown> =>
  sql.query(
    `UPDATE users SET profile = $3::json, learned = $4::json, updated_at = clock_timestamp() WHERE tenant = $1 AND user_id = $2`,
    [businessId, userId, JSON.stringify(profile), JSON.stringify(learned)],
  )

/** See `createUserAccounts`. */
export type UserAccounts = ReturnType<typeof createUserAccounts>

/** The profiles of a business's users, as the users table has them: that of a run's user is first what its claim has read, if it has. */
export const createUserProfiles = (
  sql: Sql,
  businessId: string,
  claimed: { user_id: string; profile: Record<string, Json> | null },
): UserProfiles => {
  let { profile: read } = claimed
  return {
    async profile(userId) {
      if (read && userId === claimed.user_id) {
        const profile = read
        read = null
        return profile
      }
      const row = await queryOne<{ profile: Record<string, Json> }>(
        sql,
        'SELECT profile FROM users WHERE tenant = $1 AND user_id = $2',
        [businessId, userId],
      )
      return row?.profile ?? {}
    },
  }
}
