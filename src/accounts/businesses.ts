import { type Database, queryOne } from '../infra/database/database.ts'
import { readPage } from '../infra/database/pagination.ts'
import type { MasterKeys } from '../infra/secrets/master-keys.ts'
import { MasonError } from '../state/errors.ts'
import type { Sql } from '../state/ports/sql.ts'
import { createFieldsError, toPointer } from '../state/resource-schema.ts'
import type { Page } from '../state/run-view.ts'
import type { BusinessChange, BusinessInput, BusinessView, QuotaChanges } from './account-schemas.ts'
import { changeBusinessSecrets } from './business-secrets.ts'
import { listSecretNames } from './http-hosts.ts'

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

const columns = `b.tenant AS id, learning, recall, created_at, json_build_object(${joinQuotas((name, column) => `'${name}', ${column}`)}) AS quotas,
  http_hosts, COALESCE((SELECT names FROM business_secrets s WHERE s.tenant = b.tenant), '{}') AS secrets`

/** Null for each: the defaults. */
const noQuotas = Object.fromEntries(Object.keys(quotaColumns).map((name) => [name, null]))

/** Sets the quotas that the JSON of $3 has; null is the default. */
const setQuotasSql = joinQuotas(
  (name, column) =>
    `${column} = CASE WHEN $3::jsonb ? '${name}' THEN ($3::jsonb->>'${name}')::bigint ELSE ${column} END`,
)

const toBusinessView = ({ created_at, ...row }: BusinessRow): BusinessView => ({
  ...row,
  created_at: created_at.toISOString(),
})

const readBusiness = async (sql: Sql, id: string): Promise<BusinessView | null> => {
  const row = await queryOne<BusinessRow>(sql, `SELECT ${columns} FROM businesses b WHERE b.tenant = $1`, [
    id,
  ])
  return row && toBusinessView(row)
}

/** The business as it was just written. Throws `invalid_request` where a header names a secret that it does not have. */
const readChecked = async (sql: Sql, id: string): Promise<BusinessView> => {
  const business = await readBusiness(sql, id)
  if (!business) throw new MasonError('internal', `business "${id}" was written and cannot be read`)
  const errors = business.http_hosts.flatMap(({ headers }, index) =>
    Object.entries(headers).flatMap(([header, value]) =>
      listSecretNames(value)
        .filter((name) => !business.secrets.includes(name))
        .map((name) => ({
          pointer: toPointer(['http_hosts', index, 'headers', header]),
          detail: `names the secret "${name}", which the business does not have; set it in \`secrets\` first`,
        })),
    ),
  )
  if (errors.length > 0) throw createFieldsError(...errors)
  return business
}

/** Inserts the row of a business that a token, a user, a grant or a trusted producer named, unless it exists. */
export const ensureBusiness = async (sql: Sql, businessId: string): Promise<void> => {
  await sql.query('INSERT INTO businesses (tenant) VALUES ($1) ON CONFLICT (tenant) DO NOTHING', [businessId])
}

/** The businesses, with the settings of all their runs. A business exists from its first token, user or run on. */
export const createBusinesses = (database: Database, masterKeys: MasterKeys) => ({
  create: ({ id, learning, recall, quotas, http_hosts, secrets }: BusinessInput): Promise<BusinessView> =>
    database.transaction(async (sql) => {
      const { rows } = await sql.query(
        `INSERT INTO businesses (tenant, learning, recall, http_hosts, ${Object.values(quotaColumns).join(', ')})
         SELECT $1, $2, $5, $4::json, ${Object.keys(quotaColumns).join(', ')}
         FROM json_to_record($3::json) AS q(storage_bytes bigint, queued_runs int, running_runs int, requests_per_minute int)
         ON CONFLICT (tenant) DO NOTHING RETURNING 1`,
        [id, learning, JSON.stringify(quotas), JSON.stringify(http_hosts), recall],
      )
      if (rows.length === 0)
        throw new MasonError('already_exists', `business "${id}" already exists`, {
          remedy: 'change it with PATCH',
        })
      if (Object.keys(secrets).length > 0) await changeBusinessSecrets(sql, masterKeys, id, secrets)
      return readChecked(sql, id)
    }),
  get: (id: string): Promise<BusinessView | null> => readBusiness(database, id),
  /**
   * Switching learning off also deletes pending distillations, locked in the order that every deletion uses: a process
   * that learns just now finds its claim deleted and writes nothing. Switching recall off deletes the turns that are stored;
   * switching it on reads those of all sessions again.
   */
  change: (id: string, change: BusinessChange): Promise<BusinessView | null> =>
    database.transaction(async (sql) => {
      const { learning = null, recall = null, quotas = {}, http_hosts, secrets } = change
      const quotaChanges = quotas ?? noQuotas
      const { rows } = await sql.query(
        `WITH dropped AS (
           DELETE FROM distillations WHERE tenant = $1 AND run_id IN (
             SELECT run_id FROM distillations WHERE tenant = $1 AND failed_at IS NULL AND NOT COALESCE($2::boolean, true)
               ORDER BY run_id FOR UPDATE)
         ), unread AS (
           DELETE FROM turns WHERE tenant = $1 AND NOT $5::boolean
         )
         UPDATE businesses SET learning = COALESCE($2::boolean, learning), recall = COALESCE($5::boolean, recall),
           turns_read_to = CASE WHEN $5::boolean AND NOT recall THEN '' ELSE turns_read_to END, ${setQuotasSql},
           http_hosts = COALESCE($4::json, http_hosts)
         WHERE tenant = $1 RETURNING 1`,
        [id, learning, JSON.stringify(quotaChanges), http_hosts ? JSON.stringify(http_hosts) : null, recall],
      )
      if (rows.length === 0) return null
      if (secrets !== undefined) await changeBusinessSecrets(sql, masterKeys, id, secrets)
      return readChecked(sql, id)
    }),
  list(filter: { limit: number; cursor?: string }): Promise<Page<BusinessView>> {
    return readPage(
      database,
      { select: columns, from: 'businesses b', at: 'created_at', id: 'b.tenant' },
      filter,
      toBusinessView,
    )
  },
})

/** See `createBusinesses`. */
export type Businesses = ReturnType<typeof createBusinesses>
