import { type Database, hasRow, queryOne } from '../infra/database/database.ts'
import {
  createResourceStore,
  type ResourceRow,
  type ResourceStore,
} from '../infra/resources/resource-store.ts'
import { MasonError } from '../state/errors.ts'
import type { Sql } from '../state/ports/sql.ts'
import type { UserProfiles } from '../state/ports/user-profiles.ts'
import type { Json } from '../state/runtime-state.ts'
import type { UserChange, UserInput, UserView } from './account-schemas.ts'
import { ofBusiness } from './businesses.ts'

/** Profiles that feed `user_context`. A user id is unique within its business. */
export const createUserAccounts = (database: Database): ResourceStore<UserInput, UserChange, UserView> => ({
  ...createResourceStore<ResourceRow, UserInput, UserChange, UserView>(
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
  /** With their passkeys and open mandates. False: there was none of these. */
  remove: ({ business_id = 'default' }, userId) =>
    hasRow(
      database,
      `WITH links AS (DELETE FROM consent_links WHERE tenant = $1 AND user_id = $2),
         keys AS (DELETE FROM passkeys WHERE tenant = $1 AND user_id = $2 RETURNING 1),
         mandates AS (DELETE FROM open_mandates WHERE tenant = $1 AND user_id = $2 RETURNING 1),
         profile AS (DELETE FROM users WHERE tenant = $1 AND user_id = $2 RETURNING 1)
       SELECT 1 FROM keys UNION ALL SELECT 1 FROM mandates UNION ALL SELECT 1 FROM profile`,
      [business_id, userId],
    ),
})

/** See `createUserAccounts`. */
export type UserAccounts = ReturnType<typeof createUserAccounts>

/** The profiles of a business's users, as the users table has them. */
export const createUserProfiles = (sql: Sql, businessId: string): UserProfiles => ({
  async profile(userId) {
    const row = await queryOne<{ profile: Record<string, Json> }>(
      sql,
      'SELECT profile FROM users WHERE tenant = $1 AND user_id = $2',
      [businessId, userId],
    )
    return row?.profile ?? {}
  },
})
