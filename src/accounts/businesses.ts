import { type Database, queryOne } from '../infra/database/database.ts'
import { readPage } from '../infra/database/pagination.ts'
import { MasonError } from '../state/errors.ts'
import type { Sql } from '../state/ports/sql.ts'
import type { Page } from '../state/run-view.ts'
import type { BusinessChange, BusinessInput, BusinessView, QuotaChanges } from './account-schemas.ts'

type BusinessRow = Omit<BusinessView, 'created_at'> & { created_at: Date }

/** The columns of the quotas. */
const quotaColumns = {
  storage_bytes: 'quota_storage_bytes',
  queued_runs: 'quota_queued_runs',
  running_runs: 'max_concurrency',
  requests_per_minute: 'quota_requests_per_minute',
} satisfies Record<keyof QuotaChanges, string>

const joinQuotas = (toSql: (name: string, column: string) => string): string =>
  Object.entries(quotaColumns)
    .map(([name, column]) => toSql(name, column))
    .join(', ')

const columns = `tenant AS id, learning, created_at, json_build_object(${joinQuotas((name, column) => `'${name}', ${column}`)}) AS quotas`

/** Sets the quotas that the JSON of $3 has; null is the default. */
const setQuotasSql = joinQuotas(
  (name, column) =>
    `${column} = CASE WHEN $3::jsonb ? '${name}' THEN ($3::jsonb->>'${name}')::bigint ELSE ${column} END`,
)

const toBusinessView = ({ created_at, ...row }: BusinessRow): BusinessView => ({
  ...row,
  created_at: created_at.toISOString(),
})

/** Inserts the row of a business that a token, a user, a grant or a trusted producer named, unless it exists. */
export const ensureBusiness = async (sql: Sql, businessId: string): Promise<void> => {
  await sql.query('INSERT INTO businesses (tenant) VALUES ($1) ON CONFLICT (tenant) DO NOTHING', [businessId])
}

/** The businesses, with the settings of all their runs. A business exists from its first token, user or run on. */
export const createBusinesses = (database: Database) => ({
  async create({ id, learning, quotas }: BusinessInput): Promise<BusinessView> {
    const row = await queryOne<BusinessRow>(
      database,
      `INSERT INTO businesses (tenant, learning, ${Object.values(quotaColumns).join(', ')})
       SELECT $1, $2, ${Object.keys(quotaColumns).join(', ')}
       FROM json_to_record($3::json) AS q(storage_bytes bigint, queued_runs int, running_runs int, requests_per_minute int)
       ON CONFLICT (tenant) DO NOTHING RETURNING ${columns}`,
      [id, learning, JSON.stringify(quotas)],
    )
    if (row) return toBusinessView(row)
    throw new MasonError('already_exists', `business "${id}" already exists`, {
      remedy: 'change it with PATCH',
    })
  },
  async get(id: string): Promise<BusinessView | null> {
    const statement = `SELECT ${columns} FROM businesses WHERE tenant = $1`
    const row = await queryOne<BusinessRow>(database, statement, [id])
    return row && toBusinessView(row)
  },
  /**
   * Switching learning off also deletes pending distillations, locked in the order that every deletion uses: a process
   * that learns just now finds its claim deleted and writes nothing.
   */
  async change(id: string, { learning, quotas = {} }: BusinessChange): Promise<BusinessView | null> {
    const row = await queryOne<BusinessRow>(
      database,
      `WITH changed AS (
         UPDATE businesses SET learning = COALESCE($2::boolean, learning), ${setQuotasSql}
         WHERE tenant = $1 RETURNING *
       ), dropped AS (
         DELETE FROM distillations WHERE tenant = $1 AND run_id IN (
           SELECT run_id FROM distillations WHERE tenant = $1 AND failed_at IS NULL AND NOT COALESCE($2::boolean, true)
             ORDER BY run_id FOR UPDATE)
       ) SELECT ${columns} FROM changed`,
      [id, learning ?? null, JSON.stringify(quotas)],
    )
    return row && toBusinessView(row)
  },
  list(filter: { limit: number; cursor?: string }): Promise<Page<BusinessView>> {
    return readPage(
      database,
      { select: columns, from: 'businesses', at: 'created_at', id: 'tenant' },
      filter,
      toBusinessView,
    )
  },
})

/** See `createBusinesses`. */
export type Businesses = ReturnType<typeof createBusinesses>
