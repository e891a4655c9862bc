import { randomBytes } from 'node:crypto'
import { type Database, queryOne } from '../../../infra/database/database.ts'
import { readPage } from '../../../infra/database/pagination.ts'
import { type Dated, toIsoTimes } from '../../../infra/database/row-times.ts'
import type { Egress } from '../../../infra/egress/egress-port.ts'
import { findBaseUrlErrors, isPlainlyPrivate } from '../../../infra/egress/urls.ts'
import { changeResources } from '../../../infra/resources/resource-store.ts'
import { MasonError } from '../../../state/errors.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { createFieldsError, type FieldError } from '../../../state/resource-schema.ts'
import type { Page } from '../../../state/run-view.ts'
import type { PaymentKeys } from '../keys/payment-keys.ts'
import { sealForExecutor } from '../keys/sealed-texts.ts'
import { type AgentProviderParts, openAgentProvider } from './agent.ts'
import { openProvider } from './card.ts'
import type { PaymentProvider, ProviderSettings } from './provider.ts'
import {
  fieldsOfKinds,
  type ProviderChange,
  type ProviderInput,
  type ProviderView,
} from './provider-schemas.ts'

type Row = Dated<Omit<ProviderView, 'status' | 'webhook_path'>>

const columns = `provider_id AS id, name, kind, base_url, allow_private, tenants AS business_ids, is_test AS test, is_demo AS demo, window_ms,
  timeout_ms, api_key_end AS api_key, webhook_secret_end AS webhook_secret, created_at, updated_at, ended_at`

/** Where the webhooks of a provider arrive. */
const toWebhookPath = (id: string): string => `/payments/webhooks/${id}`

const toView = (row: Row): ProviderView => ({
  ...toIsoTimes(row),
  api_key: row.api_key && `…${row.api_key}`,
  webhook_secret: row.webhook_secret && `…${row.webhook_secret}`,
  status: row.ended_at === null ? 'active' : 'ended',
  webhook_path: row.kind === 'card' ? toWebhookPath(row.id) : null,
})

/** The secret is for this address alone: a row that gets another address must get the secret again. */
const keyPurpose = (id: string, baseUrl: string): string => `provider ${id} api_key ${baseUrl}`
const webhookPurpose = (id: string): string => `provider ${id} webhook_secret`

const toEnd = (secret: string | undefined): string | null => secret?.slice(-4) ?? null

type Parts = Partial<Record<'base_url' | 'api_key' | 'webhook_secret', unknown>>
const partNames = ['base_url', 'api_key', 'webhook_secret'] as const

/** What a provider of a kind lacks, unless `isChange`, and what it cannot have. */
const findKindErrors = (
  kind: ProviderInput['kind'],
  input: Parts,
  { isChange = false } = {},
): FieldError[] => {
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

/**
 * The payment providers, as admins manage them. `testOnly`: embedded, where the executor's key lies beside what it protects.
 * Null: there is none of this id. `changed` follows every change.
 */
export const createProviders = (
  database: Database,
  { testOnly, changed }: { testOnly: boolean; changed: () => Promise<void> },
) => {
  const get = async (id: string): Promise<ProviderView | null> => {
    const row = await queryOne<Row>(
      database,
      `SELECT ${columns} FROM payment_providers WHERE provider_id = $1`,
      [id],
    )
    return row && toView(row)
  }
  const seal = async (text: string | undefined, purpose: string): Promise<string | null> =>
    text === undefined ? null : sealForExecutor(database, text, purpose)

  return {
    get,
    /** Throws `invalid_request` with the fields, `already_exists`, and `secret_unreadable` before the first start of an executor. */
    async create(input: ProviderInput): Promise<ProviderView> {
      const id = `prv_${randomBytes(12).toString('hex')}`
      const { name, kind, base_url, business_ids, test, demo, window_ms, timeout_ms } = input
      const { api_key, webhook_secret } = input
      const allowPrivate = input.allow_private ?? (base_url !== undefined && isPlainlyPrivate(base_url))
      throwErrors([
        ...findKindErrors(kind, input),
        ...(base_url === undefined ? [] : findBaseUrlErrors(base_url, allowPrivate)),
        ...(await findBusinessErrors(database, business_ids)),
        ...(testOnly && !test
          ? [
              {
                pointer: '/test',
                detail:
                  'must be true: without a database server the key of the executor is beside what it protects',
              },
            ]
          : []),
      ])
      const sealedKey = await seal(api_key, keyPurpose(id, base_url ?? ''))
      const sealedSecret = await seal(webhook_secret, webhookPurpose(id))
      // one at a time: of a demo and one that moves money, the second one sees the first
      await changeResources({ database, lock: 'mason.providers', changed }, async (sql) => {
        throwErrors(await findDemoErrors(sql, { test, demo }))
        await sql.query(
          `INSERT INTO payment_providers (provider_id, name, kind, base_url, allow_private, tenants, is_test, window_ms, timeout_ms,
           sealed_api_key, api_key_end, sealed_webhook_secret, webhook_secret_end, is_demo)
         VALUES ($id, $name, $kind, $base_url, $allowPrivate, ${tenantsSql('$business_ids')}, $test, $window_ms, $timeout_ms,
           $sealedKey, $keyEnd, $sealedSecret, $secretEnd, $demo)`,
          {
            id,
            name,
            kind,
            base_url: base_url ?? null,
            allowPrivate,
            business_ids: JSON.stringify(business_ids),
            test,
            window_ms,
            timeout_ms,
            sealedKey,
            keyEnd: toEnd(api_key),
            sealedSecret,
            secretEnd: toEnd(webhook_secret),
            demo,
          },
        )
      })
      return (await get(id)) as ProviderView
    },
    /** Throws as `create`. */
    async change(id: string, change: ProviderChange): Promise<ProviderView | null> {
      const before = await get(id)
      if (!before) return null
      throwErrors(findKindErrors(before.kind, change as Parts, { isChange: true }))
      const base_url = change.base_url ?? before.base_url ?? ''
      const isMoved = base_url !== (before.base_url ?? '')
      const isDerived = change.allow_private === null || isMoved
      const allowPrivate =
        change.allow_private ?? (isDerived ? isPlainlyPrivate(base_url) : before.allow_private)
      throwErrors([
        ...(before.kind === 'agent' ? [] : findBaseUrlErrors(base_url, allowPrivate)),
        ...(await findBusinessErrors(database, change.business_ids)),
        ...(isMoved && change.api_key === undefined
          ? [
              {
                pointer: '/api_key',
                detail: 'is needed with a new base_url: the stored one is sealed for the old address',
              },
            ]
          : []),
      ])
      const { api_key, webhook_secret } = change
      const sealedKey = await seal(api_key, keyPurpose(id, base_url))
      const sealedSecret = await seal(webhook_secret, webhookPurpose(id))
      await changeResources({ database, changed }, async (sql) => {
        await sql.query(
          // what is not changed stays as it is now, not as it was read: another change may have come between
          `UPDATE payment_providers SET name = COALESCE($2, name), base_url = COALESCE($3, base_url),
             allow_private = COALESCE($4::boolean, allow_private),
             tenants = CASE WHEN $5::json IS NULL THEN tenants ELSE ${tenantsSql('$5')} END,
             window_ms = COALESCE($6::int, window_ms), timeout_ms = COALESCE($7::int, timeout_ms),
             updated_at = clock_timestamp() WHERE provider_id = $1`,
          [
            id,
            change.name ?? null,
            change.base_url ?? null,
            change.allow_private === undefined && !isMoved ? null : allowPrivate,
            change.business_ids === undefined ? null : JSON.stringify(change.business_ids),
            change.window_ms ?? null,
            change.timeout_ms ?? null,
          ],
        )
        // the sealed columns cannot be read, so each is set by itself
        if (api_key !== undefined)
          await sql.query(
            'UPDATE payment_providers SET sealed_api_key = $2, api_key_end = $3 WHERE provider_id = $1',
            [id, sealedKey, toEnd(api_key)],
          )
        if (webhook_secret !== undefined)
          await sql.query(
            'UPDATE payment_providers SET sealed_webhook_secret = $2, webhook_secret_end = $3 WHERE provider_id = $1',
            [id, sealedSecret, toEnd(webhook_secret)],
          )
      })
      return get(id)
    },
    /** Ends a provider now: it takes no new payments, and those that it has go on. One that has ended stays as it is. */
    async end(id: string): Promise<ProviderView | null> {
      await database.query(
        `UPDATE payment_providers SET ended_at = clock_timestamp(), updated_at = clock_timestamp()
         WHERE provider_id = $1 AND ended_at IS NULL`,
        [id],
      )
      await changed()
      return get(id)
    },
    list(filter: { business_id?: string; limit: number; cursor?: string }): Promise<Page<ProviderView>> {
      const list = {
        select: columns,
        from: 'payment_providers',
        where: '$1::text IS NULL OR tenants IS NULL OR $1 = ANY(tenants)',
        values: [filter.business_id ?? null],
        at: 'created_at',
        id: 'provider_id',
      }
      return readPage<Row, ProviderView>(database, list, filter, toView)
    },
  }
}

/** See `createProviders`. */
export type Providers = ReturnType<typeof createProviders>

/** Drivers read and write arrays of texts differently. */
const tenantsSql = (parameter: string): string =>
  `CASE WHEN ${parameter}::json::text <> 'null' THEN ARRAY(SELECT json_array_elements_text(${parameter}::json)) END`

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
