import { type Database, queryOne } from '../infra/database/database.ts'
import {
  createResourceStore,
  type ResourceRow,
  type ResourceScope,
} from '../infra/resources/resource-store.ts'
import type { MasterKeys } from '../infra/secrets/master-keys.ts'
import { MasonError } from '../state/errors.ts'
import type { Sql } from '../state/ports/sql.ts'
import { createFieldsError, toPointer } from '../state/resource-schema.ts'
import type { BusinessChange, BusinessView, businessSchemas } from './account-schemas.ts'
import { changeBusinessSecrets } from './business-secrets.ts'
import { listSecretNames } from './http-hosts.ts'

/** The columns of the quotas. */
const quotaColumns = {
  storage_bytes: 'quota_storage_bytes',
  queued_runs: 'quota_queued_runs',
  running_runs: 'max_concurrency',
  requests_per_minute: 'quota_requests_per_minute',
} satisfies Record<keyof BusinessView['quotas'], string>
const quotas = Object.entries(quotaColumns) as [keyof BusinessView['quotas'], string][]

/** Inserts the row of a business that a token, a user, a grant or a trusted producer named, unless it exists. */
export const ensureBusiness = async (sql: Sql, businessId: string): Promise<void> => {
  await sql.query('INSERT INTO businesses (tenant) VALUES ($1) ON CONFLICT (tenant) DO NOTHING', [businessId])
}

/** Counts a claim of each business `b` that a table of the same statement names. */
export const toCountClaimSql = (table: string): string =>
  `UPDATE businesses b SET claims = claims + 1, last_claimed_at = clock_timestamp() FROM ${table} WHERE b.tenant = ${table}.tenant`

/**
 * What the resources of a business have: its column, and its row, which the first one creates.
 *
 * @example
 * ```ts
 * import { ofBusiness } from 'mason-runtime/features'
 *
 * const resource = { path: '/admin/v1/announcements', table: 'announcements', ...ofBusiness }
 * ```
 */
export const ofBusiness = {
  fixed: { business_id: 'tenant' },
  prepare: (database: Database, { business_id = '' }: ResourceScope): Promise<void> =>
    ensureBusiness(database, business_id),
}

/** Throws `invalid_request` where a header names a secret that the business does not have. */
const checkSecretNames = async (sql: Sql, id: string, hosts: BusinessView['http_hosts']): Promise<void> => {
  const text = 'SELECT names FROM business_secrets WHERE tenant = $1'
  const names = (await queryOne<{ names: string[] }>(sql, text, [id]))?.names ?? []
  const errors = hosts.flatMap(({ headers }, index) =>
    Object.entries(headers).flatMap(([header, value]) =>
      listSecretNames(value)
        .filter((name) => !names.includes(name))
        .map((name) => ({
          pointer: toPointer(['http_hosts', index, 'headers', header]),
          detail: `names the secret "${name}", which the business does not have; set it in \`secrets\` first`,
        })),
    ),
  )
  if (errors.length > 0) throw createFieldsError(...errors)
}

/** Deletes what a change of a business says is no longer learned and recalled, in the transaction of the change. */
export type ForgetOfBusiness = (sql: Sql, id: string, change: BusinessChange) => Promise<void>

type Row = ResourceRow & Pick<BusinessView, 'quotas' | 'recall' | 'secrets'>

/**
 * The businesses, with the settings of all their runs. A business exists from its first token, user or run on, for good. `changed` follows
 * every change.
 */
export const createBusinesses = (
  database: Database,
  masterKeys: MasterKeys,
  forget: ForgetOfBusiness,
  changed: () => unknown,
) => {
  const { remove: _, ...store } = createResourceStore<Row, typeof businessSchemas>(
    { database, changed },
    {
      name: 'business',
      table: 'businesses',
      idColumn: 'tenant',
      toId: ({ id }) => id,
      fields: ['learning', 'recall', 'http_hosts'],
      json: ['http_hosts'],
      merged: ['quotas'],
      times: ['created_at'],
      columns: `json_build_object(${quotas.map(([name, column]) => `'${name}', t.${column}`).join(', ')}) AS quotas,
        COALESCE((SELECT names FROM business_secrets s WHERE s.tenant = t.tenant), '{}') AS secrets`,
      toInput: ({ quotas }) => ({ quotas }),
      toView: ({ quotas, secrets }) => ({ quotas, secrets }),
      toValues: (input, { before }) => ({
        ...Object.fromEntries(quotas.map(([name, column]) => [column, input.quotas[name] ?? null])),
        // the turns of all its sessions are read again
        ...(before?.recall === false && input.recall && { turns_read_to: '' }),
      }),
      async writeDependents(sql, { secrets, http_hosts }, { id, change }) {
        if (change) await forget(sql, id, change)
        if (change ? change.secrets !== undefined : Object.keys(secrets).length > 0)
          await changeBusinessSecrets(sql, masterKeys, id, change ? (change.secrets ?? null) : secrets)
        await checkSecretNames(sql, id, http_hosts)
      },
      toTakenError: ({ id }) =>
        new MasonError('already_exists', `business "${id}" already exists`, {
          remedy: 'change it with PATCH',
        }),
    },
  )
  return store
}

/** See `createBusinesses`. */
export type Businesses = ReturnType<typeof createBusinesses>
