import { type Database, hasRow, queryOne } from '../../../infra/database/database.ts'
import type { Egress } from '../../../infra/egress/egress-port.ts'
import { findBaseUrlErrors, isPlainlyPrivate } from '../../../infra/egress/urls.ts'
import { createResourceStore } from '../../../infra/resources/resource-store.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { createFieldsError, type FieldError } from '../../../state/resource-schema.ts'
import type { PaymentKeys } from '../keys/payment-keys.ts'
import { sealForExecutor } from '../keys/sealed-texts.ts'
import { type AgentProviderParts, openAgentProvider } from './agent.ts'
import { openProvider } from './card.ts'
import type { PaymentProvider, ProviderSettings } from './provider.ts'
import {
  fieldsOfKinds,
  type ProviderInput,
  type ProviderView,
  type providerSchemas,
} from './provider-schemas.ts'

type Row = Pick<ProviderView, 'id' | 'kind' | 'base_url' | 'business_ids' | 'ended_at'> & {
  api_key_end: string | null
  webhook_secret_end: string | null
}

/** The secret is for this address alone: a row that gets another address must get the secret again. */
const keyPurpose = (id: string, baseUrl: string): string => `provider ${id} api_key ${baseUrl}`
const webhookPurpose = (id: string): string => `provider ${id} webhook_secret`

type Parts = Partial<Record<'base_url' | 'api_key' | 'webhook_secret', unknown>>
const partNames = ['base_url', 'api_key', 'webhook_secret'] as const

/** What a provider of a kind lacks, unless `isChange`, and what it cannot have. */
const findKindErrors = (kind: ProviderInput['kind'], input: Parts, isChange: boolean): FieldError[] => {
  const own: readonly string[] = fieldsOfKinds[kind]
  return partNames
    .filter((name) =>
      own.includes(name) ? input[name] === undefined && !isChange : input[name] !== undefined,
    )
    .map((name) => ({
      pointer: `/${name}`,
      detail: own.includes(name)
        ? `is required for a provider of the kind ${kind}`
        : `must be left out: a provider of the kind ${kind} has none`,
    }))
}

const findBusinessErrors = async (
  sql: Sql,
  ids: readonly string[] | null | undefined,
): Promise<FieldError[]> => {
  const { rows } = await sql.query<{ id: string }>(
    `SELECT id FROM json_array_elements_text($1::json) AS id WHERE NOT EXISTS (SELECT FROM businesses WHERE tenant = id)`,
    [JSON.stringify(ids ?? [])],
  )
  return rows.map(({ id }) => ({
    pointer: `/business_ids/${ids?.indexOf(id)}`,
    detail: `there is no business "${id}"; POST /admin/v1/businesses creates it`,
  }))
}

/** No deployment has both a demo provider and one that moves money. The executor takes no placeholder where it has. */
const findDemoErrors = async (
  sql: Sql,
  { test, demo }: Pick<ProviderInput, 'test' | 'demo'>,
): Promise<FieldError[]> => {
  if (demo && !test)
    return [{ pointer: '/demo', detail: 'needs "test": true, since it takes unsigned mandates' }]
  if (test && !demo) return []
  const other = await queryOne<{ name: string }>(
    sql,
    `SELECT name FROM payment_providers WHERE ended_at IS NULL AND ${demo ? 'NOT is_test' : 'is_demo'} LIMIT 1`,
    [],
  )
  if (!other) return []
  return demo
    ? [{ pointer: '/demo', detail: `must be false: "${other.name}" moves money; end it first` }]
    : [
        {
          pointer: '/test',
          detail: `must be true: "${other.name}" takes the mandates of demos; end it first`,
        },
      ]
}

const throwErrors = (errors: readonly FieldError[]): void => {
  if (errors.length > 0) throw createFieldsError(...errors)
}

const allowsPrivate = ({ allow_private, base_url }: Pick<ProviderInput, 'allow_private' | 'base_url'>) =>
  allow_private ?? isPlainlyPrivate(base_url ?? '')

/** Throws `already_exists` where another provider has the name. */
const checkName = async (sql: Sql, id: string, name: string): Promise<void> => {
  const statement = 'SELECT FROM payment_providers WHERE name = $1 AND provider_id <> $2'
  if (!(await hasRow(sql, statement, [name, id]))) return
  throw new MasonError('already_exists', `there is a payment provider with the name "${name}" already`, {
    remedy: 'choose another name, or change that provider with PATCH; GET /admin/v1/providers lists them',
    detail: { errors: [{ pointer: '/name', detail: `"${name}" is taken` }] },
  })
}

/**
 * The payment providers, as admins manage them. `testOnly`: embedded, where the executor's key lies beside what it protects.
 * Null: there is none of this id. `changed` follows every change.
 */
export const createProviders = (
  database: Database,
  { testOnly, changed }: { testOnly: boolean; changed: () => Promise<void> },
) => {
  // one at a time: of a demo and one that moves money, the second one sees the first
  const context = { database, lock: 'mason.providers', changed }
  const { remove: _, ...store } = createResourceStore<Row, typeof providerSchemas>(context, {
    name: 'payment provider',
    prefix: 'prv',
    table: 'payment_providers',
    idColumn: 'provider_id',
    fields: ['name', 'base_url', 'allow_private', 'window_ms', 'timeout_ms'],
    fixed: { kind: 'kind', test: 'is_test', demo: 'is_demo' },
    filters: { business_id: '(t.tenants IS NULL OR $in_business_id = ANY(t.tenants))' },
    readOnly: ['ended_at'],
    columns: 't.tenants AS business_ids, t.api_key_end, t.webhook_secret_end',
    toInput: ({ business_ids }) => ({ business_ids }),
    toView: (row) => ({
      business_ids: row.business_ids,
      api_key: row.api_key_end && `…${row.api_key_end}`,
      webhook_secret: row.webhook_secret_end && `…${row.webhook_secret_end}`,
      status: row.ended_at === null ? 'active' : 'ended',
      webhook_path: row.kind === 'card' ? `/payments/webhooks/${row.id}` : null,
    }),
    // a permission for one address does not hold for another
    complete: (merged, before, { allow_private }) =>
      merged.base_url === before.base_url ? merged : { ...merged, allow_private: allow_private ?? undefined },
    async findErrors(sql, input, { id, before, change }) {
      await checkName(sql, id, input.name)
      const { base_url = null, test, demo } = input
      const kindErrors = findKindErrors((before ?? input).kind, (change ?? input) as Parts, before !== null)
      if (before) throwErrors(kindErrors)
      const errors = [
        ...kindErrors,
        ...(base_url === null ? [] : findBaseUrlErrors(base_url, allowsPrivate(input))),
        ...(await findBusinessErrors(sql, (change ?? input).business_ids)),
      ]
      if (before && before.base_url !== base_url && input.api_key === undefined)
        errors.push({
          pointer: '/api_key',
          detail: 'is needed with a new base_url: the stored one is sealed for the old address',
        })
      if (testOnly && !before && !test)
        errors.push({
          pointer: '/test',
          detail:
            'must be true: without a database server the key of the executor is beside what it protects',
        })
      throwErrors(errors)
      return before ? [] : findDemoErrors(sql, { test, demo })
    },
    async toValues(input, { id }, sql) {
      const { base_url, business_ids, api_key, webhook_secret } = input
      return {
        allow_private: allowsPrivate(input),
        tenants: business_ids,
        // the sealed columns cannot be read, so they stay as they are without a new secret
        ...(api_key !== undefined && {
          sealed_api_key: await sealForExecutor(sql, api_key, keyPurpose(id, base_url ?? '')),
          api_key_end: api_key.slice(-4),
        }),
        ...(webhook_secret !== undefined && {
          sealed_webhook_secret: await sealForExecutor(sql, webhook_secret, webhookPurpose(id)),
          webhook_secret_end: webhook_secret.slice(-4),
        }),
      }
    },
  })

  return {
    ...store,
    /** Ends a provider now: it takes no new payments, and those that it has go on. One that has ended stays as it is. */
    async end(id: string): Promise<ProviderView | null> {
      await database.query(
        `UPDATE payment_providers SET ended_at = clock_timestamp(), updated_at = clock_timestamp()
         WHERE provider_id = $1 AND ended_at IS NULL`,
        [id],
      )
      await changed()
      return store.get({}, id)
    },
  }
}

/** See `createProviders`. */
export type Providers = ReturnType<typeof createProviders>

type SealedRow = ProviderSettings & {
  id: string
  kind: ProviderInput['kind']
  test: boolean
  accepts: boolean
  sealed_api_key: string
  sealed_webhook_secret: string
}

/** For a new payment of `businessId`, which the provider must take; `paymentId`: of which payment, for a provider of agents. */
export type ProviderUse = { businessId?: string; paymentId?: string }

/**
 * Opens providers for the executor, which alone can read their secrets. A row is read each time, and its secrets are opened
 * when it changed. One that has ended or is not of the business of a new payment is `not_found`.
 * `secret_unreadable`: a secret must be entered again; `forbidden`: it moves money, and this process is for test providers.
 */
export const createProviderOpener = (
  sql: Sql,
  keys: Pick<PaymentKeys, 'unseal'>,
  egress: Egress,
  { testOnly, ...parts }: { testOnly: boolean } & Pick<AgentProviderParts, 'agents' | 'trust'>,
) => {
  const opened = new Map<string, { row: string; provider: PaymentProvider }>()
  return async (id: string, { businessId, paymentId }: ProviderUse = {}): Promise<PaymentProvider> => {
    const row = await queryOne<SealedRow>(
      sql,
      `SELECT provider_id AS id, kind, base_url, allow_private, window_ms, timeout_ms, is_test AS test, sealed_api_key,
         sealed_webhook_secret, $2::text IS NULL OR (ended_at IS NULL AND (tenants IS NULL OR $2 = ANY(tenants))) AS accepts
       FROM payment_providers WHERE provider_id = $1`,
      [id, businessId ?? null],
    )
    if (!row?.accepts)
      throw new MasonError('not_found', `there is no payment provider "${id}" for this business`, {
        remedy: 'GET /admin/v1/providers lists the providers with their businesses and status',
      })
    if (testOnly && !row.test)
      throw new MasonError(
        'forbidden',
        `the payment provider "${id}" moves money, and this process is for test providers only`,
        { remedy: 'run `mason payments` on a database server' },
      )
    if (row.kind === 'agent')
      return openAgentProvider(
        row,
        { businessId: businessId ?? '', paymentId: paymentId ?? '' },
        { sql, ...parts },
      )
    const text = JSON.stringify({ ...row, accepts: true })
    const known = opened.get(id)
    if (known?.row === text) return known.provider
    const provider = openProvider(row, await openSecrets(row, keys), egress)
    opened.set(id, { row: text, provider })
    return provider
  }
}

const openSecrets = async (row: SealedRow, keys: Pick<PaymentKeys, 'unseal'>) => ({
  api_key: await keys.unseal(row.sealed_api_key, keyPurpose(row.id, row.base_url)),
  webhook_secret: await keys.unseal(row.sealed_webhook_secret, webhookPurpose(row.id)),
})
