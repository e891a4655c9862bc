import type { BusinessChange, BusinessInput, BusinessView } from '../../state/admin.ts'
import { MasonError } from '../../state/errors.ts'
import type { Page } from '../../state/run-view.ts'
import { type Database, one } from '../database/database.ts'
import { pageOf, readCursor } from '../runs/page.ts'

type Row = Omit<BusinessView, 'created_at'> & { created_at: Date; at: string }

const columns = 'tenant AS id, learning, created_at, created_at::text AS at'

const viewOf = ({ id, learning, created_at }: Row): BusinessView => ({
  id,
  learning,
  created_at: created_at.toISOString(),
})

/** The tenants, and what holds for all runs of each. One is there from its first token, user or run on. */
export const createBusinesses = (database: Database) => ({
  async create({ id, learning }: BusinessInput): Promise<BusinessView> {
    const row = await one<Row>(
      database,
      `INSERT INTO businesses (tenant, learning) VALUES ($1, $2) ON CONFLICT (tenant) DO NOTHING RETURNING ${columns}`,
      [id, learning],
    )
    if (row) return viewOf(row)
    throw new MasonError('already_exists', `there is a business "${id}" already`, {
      remedy: 'change it with PATCH',
    })
  },
  async get(id: string): Promise<BusinessView | null> {
    const row = await one<Row>(database, `SELECT ${columns} FROM businesses WHERE tenant = $1`, [id])
    return row && viewOf(row)
  },
  /**
   * Switching learning off also drops what was about to be learned, in the order in which all drops lock it: who is
   * learning just now finds his claim gone and writes nothing.
   */
  async change(id: string, { learning }: BusinessChange): Promise<BusinessView | null> {
    const row = await one<Row>(
      database,
      `WITH changed AS (
         UPDATE businesses SET learning = COALESCE($2::boolean, learning) WHERE tenant = $1 RETURNING *
       ), dropped AS (
         DELETE FROM distillations WHERE tenant = $1 AND run_id IN (
           SELECT run_id FROM distillations WHERE tenant = $1 AND failed_at IS NULL AND NOT COALESCE($2::boolean, true)
             ORDER BY run_id FOR UPDATE)
       ) SELECT ${columns} FROM changed`,
      [id, learning ?? null],
    )
    return row && viewOf(row)
  },
  async list(filter: { limit: number; cursor?: string }): Promise<Page<BusinessView>> {
    const after = readCursor(filter.cursor)
    const { rows } = await database.query<Row>(
      `SELECT ${columns} FROM businesses
       WHERE $1::text IS NULL OR (created_at, tenant) < ($1::timestamptz, $2)
       ORDER BY created_at DESC, tenant DESC LIMIT $3`,
      [after?.at ?? null, after?.id ?? null, filter.limit + 1],
    )
    return pageOf(rows, filter.limit, viewOf)
  },
})

export type Businesses = ReturnType<typeof createBusinesses>
