import { randomBytes } from 'node:crypto'
import { type Database, hasRow, queryOne } from '../../infra/database/database.ts'
import { toIsoTimes } from '../../infra/database/row-times.ts'
import { checkUrl } from '../../infra/egress/urls.ts'
import { openSealedText, type SealedText, sealText } from '../../infra/secrets/envelope.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import type { Scrubber } from '../../infra/secrets/scrubber.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createInvalidRequest } from '../../state/resource-schema.ts'
import { newWebhookSecret } from './signature.ts'
import type { NewWebhookSecret, WebhookSettingsChange, WebhookSettingsView } from './webhook-schemas.ts'

/** How long messages are signed with a secret that was replaced, beside the new one. */
const overlap = "interval '24 hours'"

type SecretRow = SealedText & { secret_id: string }
type SettingsRow = Pick<WebhookSettingsView, 'url' | 'allow_private'>

/** Throws `invalid_request` where the text of an address is not one that may be called. */
const checkAddress = (field: string, url: string, allowPrivate: boolean): void => {
  const error = checkUrl(url, { allowPrivate })
  if (!error) return
  throw createInvalidRequest(
    [{ pointer: `/${field}`, detail: error.detail }],
    'use a public address, or have an admin set allow_private: PATCH /admin/v1/businesses/{id}/webhook',
  )
}

const settingsStatement = `SELECT url, COALESCE(allow_private, false) AS allow_private
  FROM businesses LEFT JOIN webhook_settings USING (tenant) WHERE tenant = $1`

/** Throws `invalid_request` for an address that the business may not use. Names are looked up when it is called. */
export const checkWebhookAddress = async (
  database: Database,
  businessId: string,
  url: string,
  field: string,
): Promise<void> => {
  const settings = await database.asBusiness(businessId, (sql) =>
    queryOne<SettingsRow>(sql, settingsStatement, [businessId]),
  )
  checkAddress(field, url, settings?.allow_private ?? false)
}

/** Locks the business, so that it has at most one newest secret. False: there is no such business. */
const lockBusiness = (sql: Sql, businessId: string): Promise<boolean> =>
  hasRow(sql, 'SELECT tenant FROM businesses WHERE tenant = $1 FOR NO KEY UPDATE', [businessId])

const insertSecret = async (sql: Sql, businessId: string, keys: MasterKeys): Promise<string> => {
  const secret = newWebhookSecret()
  const secretId = `whs_${randomBytes(12).toString('hex')}`
  const { master_key, wrapped_key, sealed } = sealText(secret, toBinding(businessId, secretId), keys)
  await sql.query(
    `INSERT INTO webhook_secrets (tenant, secret_id, master_key, wrapped_key, sealed_secret, last_four)
     VALUES ($1, $2, $3, $4, $5, $6)`,
    [businessId, secretId, master_key, wrapped_key, sealed, secret.slice(-4)],
  )
  return secret
}

const toBinding = (business_id: string, row_id: string) =>
  ({ purpose: 'webhook', vendor_id: '', row_id, business_id }) as const

const secretsStatement = `
  SELECT secret_id, master_key, wrapped_key, sealed_secret AS sealed FROM webhook_secrets
  WHERE tenant = $1 AND (expires_at IS NULL OR expires_at > clock_timestamp()) ORDER BY expires_at NULLS FIRST`

/** The secrets to sign with, the newest first. A business without one gets one. Throws `secret_unreadable`. */
export const readWebhookSecrets = async (
  database: Database,
  businessId: string,
  keys: MasterKeys,
  scrubber: Pick<Scrubber, 'add'>,
): Promise<string[]> => {
  const read = async (sql: Sql): Promise<string[]> => {
    const { rows } = await sql.query<SecretRow>(secretsStatement, [businessId])
    return rows.map((row) => openSealedText(row, toBinding(businessId, row.secret_id), keys).reveal())
  }
  const insertFirst = async (sql: Sql): Promise<string[]> => {
    await lockBusiness(sql, businessId)
    const secrets = await read(sql)
    return secrets.length > 0 ? secrets : [await insertSecret(sql, businessId, keys)]
  }
  let secrets = await read(database)
  if (secrets.length === 0) secrets = await database.transaction(insertFirst)
  for (const secret of secrets) scrubber.add(secret)
  return secrets
}

/** The settings of businesses for webhooks. Null: there is no such business. */
export const createWebhookSettings = (database: Database, keys: MasterKeys, scrubber: Scrubber) => {
  const get = async (businessId: string): Promise<WebhookSettingsView | null> => {
    const settings = await queryOne<SettingsRow>(database, settingsStatement, [businessId])
    if (!settings) return null
    const secrets = await database.query<{ last_four: string; created_at: Date; expires_at: Date | null }>(
      `SELECT last_four, created_at, expires_at FROM webhook_secrets
       WHERE tenant = $1 AND (expires_at IS NULL OR expires_at > clock_timestamp()) ORDER BY expires_at NULLS FIRST`,
      [businessId],
    )
    return {
      business_id: businessId,
      ...settings,
      secrets: secrets.rows.map(({ last_four, ...times }) => ({
        secret: `…${last_four}`,
        ...toIsoTimes(times),
      })),
    }
  }

  return {
    get,
    /** A new address also takes messages again where one answered 410. Throws `invalid_request`. */
    async change(businessId: string, change: WebhookSettingsChange): Promise<WebhookSettingsView | null> {
      const before = await queryOne<SettingsRow>(database, settingsStatement, [businessId])
      if (!before) return null
      const { url = before.url, allow_private = before.allow_private } = change
      if (url !== null) checkAddress('url', url, allow_private)
      await database.query(
        `WITH reopened AS (UPDATE webhook_deliveries SET is_gone = false WHERE tenant = $1 AND md5(url) = md5($2) AND url = $2 AND is_gone)
         INSERT INTO webhook_settings (tenant, url, allow_private) VALUES ($1, $2, $3)
         ON CONFLICT (tenant) DO UPDATE SET url = EXCLUDED.url, allow_private = EXCLUDED.allow_private, updated_at = clock_timestamp()`,
        [businessId, url, allow_private],
      )
      return get(businessId)
    },
    /** A new secret. The one before signs beside it for a day, an older one no longer. */
    rotate: (businessId: string): Promise<NewWebhookSecret | null> =>
      database.transaction(async (sql) => {
        if (!(await lockBusiness(sql, businessId))) return null
        await sql.query('DELETE FROM webhook_secrets WHERE tenant = $1 AND expires_at IS NOT NULL', [
          businessId,
        ])
        const previous = await queryOne<{ expires_at: Date }>(
          sql,
          `UPDATE webhook_secrets SET expires_at = clock_timestamp() + ${overlap} WHERE tenant = $1 AND expires_at IS NULL RETURNING expires_at`,
          [businessId],
        )
        const secret = await insertSecret(sql, businessId, keys)
        scrubber.add(secret)
        return { secret, previous_expires_at: previous?.expires_at.toISOString() ?? null }
      }),
  }
}

/** See `createWebhookSettings`. */
export type WebhookSettings = ReturnType<typeof createWebhookSettings>
