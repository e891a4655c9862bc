import { queryOne } from '../infra/database/database.ts'
import { openSealedText, type SealBinding, type SealedText, sealText } from '../infra/secrets/envelope.ts'
import type { MasterKeys } from '../infra/secrets/master-keys.ts'
import type { Sql } from '../state/ports/sql.ts'
import type { SecretChanges } from './http-hosts.ts'

/** The secrets of a business, by name, for the headers of requests to its allowed hosts. */

const toBinding = (business_id: string): SealBinding => ({
  purpose: 'business',
  vendor_id: '',
  row_id: business_id,
  business_id,
})

const selectStatement =
  'SELECT master_key, wrapped_key, sealed_secrets AS sealed FROM business_secrets WHERE tenant = $1'

/** All secrets of a business. Throws `secret_unreadable`. */
export const readBusinessSecrets = async (
  sql: Sql,
  keys: MasterKeys,
  businessId: string,
): Promise<Record<string, string>> => {
  const row = await queryOne<SealedText>(sql, selectStatement, [businessId])
  return row ? JSON.parse(openSealedText(row, toBinding(businessId), keys).reveal()) : {}
}

/** Sets and deletes secrets, with null all of them; the caller has locked the row of the business. Throws `secret_unreadable`. */
export const changeBusinessSecrets = async (
  sql: Sql,
  keys: MasterKeys,
  businessId: string,
  changes: SecretChanges | null,
): Promise<void> => {
  const merged = changes && { ...(await readBusinessSecrets(sql, keys, businessId)), ...changes }
  const secrets = Object.fromEntries(Object.entries(merged ?? {}).filter(([, value]) => value !== null))
  const sealed = sealText(JSON.stringify(secrets), toBinding(businessId), keys)
  await sql.query(
    `INSERT INTO business_secrets (tenant, names, master_key, wrapped_key, sealed_secrets) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (tenant) DO UPDATE SET names = excluded.names, master_key = excluded.master_key,
       wrapped_key = excluded.wrapped_key, sealed_secrets = excluded.sealed_secrets`,
    [businessId, Object.keys(secrets).sort(), sealed.master_key, sealed.wrapped_key, sealed.sealed],
  )
}
