import { type Database, hasRow, queryOne } from '../infra/database/database.ts'
import { cutJson, isLongJson, readPage, truncatedColumn } from '../infra/database/pagination.ts'
import { MasonError } from '../state/errors.ts'
import type { Sql } from '../state/ports/sql.ts'
import type { UserProfiles } from '../state/ports/user-profiles.ts'
import type { Page } from '../state/run-view.ts'
import type { Json } from '../state/runtime-state.ts'
import type { UserInput, UserView } from './account-schemas.ts'
import { ensureBusiness } from './businesses.ts'

type UserRow = Omit<UserView, 'updated_at'> & { updated_at: Date }

const idColumns = 'tenant AS business_id, user_id, user_id AS id, updated_at'
const columns = `${idColumns}, profile`

const toUserView = ({ updated_at, ...row }: UserRow): UserView => ({
  ...row,
  updated_at: updated_at.toISOString(),
})

/** Deletes what features have of a user, in the transaction that deletes the profile. False: there was nothing. */
export type DeleteOfUser = (sql: Sql, businessId: string, userId: string) => Promise<boolean>

/** Profiles that feed `user_context`. A user id is unique within its business. */
export const createUserAccounts = (database: Database, deleteOfUser: DeleteOfUser = async () => false) => ({
  async create({ business_id, user_id, profile }: UserInput): Promise<UserView> {
    await ensureBusiness(database, business_id)
    const row = await queryOne<UserRow>(
      database,
      `INSERT INTO users (tenant, user_id, profile) VALUES ($1, $2, $3::json) ON CONFLICT (tenant, user_id) DO NOTHING RETURNING ${columns}`,
      [business_id, user_id, JSON.stringify(profile)],
    )
    if (row) return toUserView(row)
    throw new MasonError('already_exists', `business "${business_id}" already has a user "${user_id}"`, {
      remedy: 'change it with PATCH',
    })
  },
  async get(businessId: string, userId: string): Promise<UserView | null> {
    const row = await queryOne<UserRow>(
      database,
      `SELECT ${columns} FROM users WHERE tenant = $1 AND user_id = $2`,
      [businessId, userId],
    )
    return row && toUserView(row)
  },
  /** Replaces the profile. */
  async change(businessId: string, userId: string, profile: Record<string, Json>): Promise<UserView | null> {
    const row = await queryOne<UserRow>(
      database,
      `UPDATE users SET profile = $3::json, updated_at = clock_timestamp() WHERE tenant = $1 AND user_id = $2 RETURNING ${columns}`,
      [businessId, userId, JSON.stringify(profile)],
    )
    return row && toUserView(row)
  },
  /** With what features have of the user. False: there was none of these. */
  remove: (businessId: string, userId: string): Promise<boolean> =>
    database.transaction(async (sql) => {
      const hadMore = await deleteOfUser(sql, businessId, userId)
      const statement = 'DELETE FROM users WHERE tenant = $1 AND user_id = $2 RETURNING user_id'
      return (await hasRow(sql, statement, [businessId, userId])) || hadMore
    }),
  list(filter: { business_id: string; limit: number; cursor?: string }): Promise<Page<UserView>> {
    const list = {
      select: `${idColumns}, ${cutJson('profile')} AS profile, ${truncatedColumn({ profile: isLongJson('profile') })}`,
      from: 'users',
      where: 'tenant = $1',
      values: [filter.business_id],
      at: 'updated_at',
      id: 'user_id',
    }
    return readPage(database, list, filter, toUserView)
  },
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
