import type { UserInput, UserView } from '../../state/admin.ts'
import { MasonError } from '../../state/errors.ts'
import type { Page } from '../../state/run-view.ts'
import type { Json } from '../../state/runtime-state.ts'
import { type Database, one } from '../database/database.ts'
import { ensureBusiness } from '../runs/admit.ts'
import { pageOf, readCursor } from '../runs/page.ts'

type Row = Omit<UserView, 'updated_at' | 'id'> & { updated_at: Date; id: string; at: string }

const columns = 'tenant AS business_id, user_id, user_id AS id, profile, updated_at, updated_at::text AS at'

const viewOf = ({ id, business_id, user_id, profile, updated_at }: Row): UserView => ({
  id,
  business_id,
  user_id,
  profile,
  updated_at: updated_at.toISOString(),
})

/** Profiles that feed `user_context`. A user's id is that of his business. */
export const createUsers = (database: Database) => ({
  async create({ business_id, user_id, profile }: UserInput): Promise<UserView> {
    await ensureBusiness(database, business_id)
    const row = await one<Row>(
      database,
      `INSERT INTO users (tenant, user_id, profile) VALUES ($1, $2, $3::json) ON CONFLICT (tenant, user_id) DO NOTHING RETURNING ${columns}`,
      [business_id, user_id, JSON.stringify(profile)],
    )
    if (row) return viewOf(row)
    throw new MasonError('already_exists', `business "${business_id}" has a user "${user_id}" already`, {
      remedy: 'change it with PATCH',
    })
  },
  async get(businessId: string, userId: string): Promise<UserView | null> {
    const row = await one<Row>(database, `SELECT ${columns} FROM users WHERE tenant = $1 AND user_id = $2`, [
      businessId,
      userId,
    ])
    return row && viewOf(row)
  },
  /** The profile takes the place of the old one. */
  async change(businessId: string, userId: string, profile: Record<string, Json>): Promise<UserView | null> {
    const row = await one<Row>(
      database,
      `UPDATE users SET profile = $3::json, updated_at = clock_timestamp() WHERE tenant = $1 AND user_id = $2 RETURNING ${columns}`,
      [businessId, userId, JSON.stringify(profile)],
    )
    return row && viewOf(row)
  },
  async remove(businessId: string, userId: string): Promise<boolean> {
    const row = await one(
      database,
      'DELETE FROM users WHERE tenant = $1 AND user_id = $2 RETURNING user_id',
      [businessId, userId],
    )
    return row !== null
  },
  async list(filter: { business_id: string; limit: number; cursor?: string }): Promise<Page<UserView>> {
    const after = readCursor(filter.cursor)
    const { rows } = await database.query<Row>(
      `SELECT ${columns} FROM users WHERE tenant = $1
         AND ($2::text IS NULL OR (updated_at, user_id) < ($2::timestamptz, $3))
       ORDER BY updated_at DESC, user_id DESC LIMIT $4`,
      [filter.business_id, after?.at ?? null, after?.id ?? null, filter.limit + 1],
    )
    return pageOf(rows, filter.limit, viewOf)
  },
})

export type Users = ReturnType<typeof createUsers>
