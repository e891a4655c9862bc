import type { Config } from '../../infra/config/config.ts'
import { openSealedText, type SealBinding, type SealedText, sealText } from '../../infra/secrets/envelope.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import { isMasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { type RegistryRows, toSealed, toSecretSuffix } from './registry-rows.ts'
import {
  type SettingsColumns,
  settingsEndpointId,
  settingsKeyId,
  settingsModelIds,
  settingsVendorId,
  toSettingsColumns,
} from './settings-entries.ts'

type SettingsOptions = { masterKeys: MasterKeys; openai: Config['openai'] }

const keyBinding: SealBinding = { purpose: 'secret', vendor_id: settingsVendorId, row_id: settingsKeyId }

/** Whether a row matches the settings; other columns are the admin's. */
const hasSameColumns = <Own extends { id: string }>(rows: readonly Own[], own: Own): boolean => {
  const row = rows.find(({ id }) => id === own.id)
  return row !== undefined && Object.entries(own).every(([name, value]) => row[name as keyof Own] === value)
}

/** Whether the rows of the settings differ from the settings of this process. */
export const settingsDiffer = (rows: RegistryRows, { masterKeys, openai }: SettingsOptions): boolean => {
  if (!openai) return hasActiveSettings(rows)
  const { vendor, key, endpoint, models } = toSettingsColumns(openai, rows)
  return !(
    hasSameColumns(rows.vendors, vendor) &&
    hasSameColumns(rows.endpoints, endpoint) &&
    models.every((model) => hasSameColumns(rows.models, model)) &&
    (key
      ? hasSameColumns(rows.keys, key) && readSettingsSecret(rows, masterKeys) === openai.apiKey
      : !rows.keys.some(({ id, status }) => id === settingsKeyId && status === 'active'))
  )
}

/** Whether a row of the settings is active. */
const hasActiveSettings = (rows: RegistryRows): boolean => {
  const ids = new Set([settingsVendorId, settingsKeyId, settingsEndpointId, ...settingsModelIds])
  const all = [...rows.vendors, ...rows.keys, ...rows.endpoints, ...rows.models]
  return all.some(({ id, status }) => ids.has(id) && status === 'active')
}

/** Null when there is none, or it cannot be opened. */
const readSettingsSecret = ({ keys }: RegistryRows, masterKeys: MasterKeys): string | null => {
  const row = keys.find(({ id }) => id === settingsKeyId)
  if (!row) return null
  try {
    return openSealedText(toSealed(row), keyBinding, masterKeys).reveal()
  } catch {
    return null
  }
}

/** Writes the settings into their rows. Limits, prices, headers and the like stay as an admin set them. */
export const seedSettings = async (
  sql: Sql,
  rows: RegistryRows,
  { masterKeys, openai }: SettingsOptions,
): Promise<void> => {
  if (!settingsDiffer(rows, { masterKeys, openai })) return
  if (!openai) return disableAll(sql)
  const columns = toSettingsColumns(openai, rows)
  await writeVendor(sql, columns)
  if (openai.apiKey === null) await disable(sql, 'vendor_keys', 'key_id', [settingsKeyId])
  else if (columns.key) await writeKey(sql, columns.key.label, openai.apiKey, masterKeys)
  await writeModels(sql, columns)
}

const disable = (sql: Sql, table: string, idColumn: string, ids: readonly string[]) =>
  sql.query(
    `UPDATE ${table} SET status = 'disabled', updated_at = clock_timestamp() WHERE ${idColumn} = ANY($1) AND status = 'active'`,
    [ids],
  )

const disableAll = async (sql: Sql): Promise<void> => {
  await disable(sql, 'vendors', 'vendor_id', [settingsVendorId])
  await disable(sql, 'vendor_keys', 'key_id', [settingsKeyId])
  await disable(sql, 'endpoints', 'endpoint_id', [settingsEndpointId])
  await disable(sql, 'models', 'model_id', settingsModelIds)
}

const writeVendor = async (sql: Sql, { vendor, endpoint }: SettingsColumns): Promise<void> => {
  await sql.query(
    `INSERT INTO vendors (vendor_id, name, status) VALUES ($1, $2, $3)
     ON CONFLICT (vendor_id) DO UPDATE SET name = excluded.name, status = excluded.status, updated_at = clock_timestamp()`,
    [vendor.id, vendor.name, vendor.status],
  )
  await sql.query(
    `INSERT INTO endpoints (endpoint_id, vendor_id, name, base_url, protocol, allow_private, status)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (endpoint_id) DO UPDATE SET name = excluded.name, base_url = excluded.base_url, protocol = excluded.protocol,
       allow_private = excluded.allow_private, status = excluded.status, updated_at = clock_timestamp()`,
    [
      endpoint.id,
      settingsVendorId,
      endpoint.name,
      endpoint.base_url,
      endpoint.protocol,
      endpoint.allow_private,
      endpoint.status,
    ],
  )
}

const writeKey = async (sql: Sql, label: string, secret: string, masterKeys: MasterKeys): Promise<void> => {
  const sealed = sealOrNull(secret, masterKeys)
  if (!sealed) return
  await sql.query(
    `INSERT INTO vendor_keys (key_id, vendor_id, label, master_key, wrapped_key, sealed_secret, last_four, status)
     VALUES ($1, $2, $3, $4, $5, $6, $7, 'active')
     ON CONFLICT (key_id) DO UPDATE SET label = excluded.label, master_key = excluded.master_key,
       wrapped_key = excluded.wrapped_key, sealed_secret = excluded.sealed_secret, last_four = excluded.last_four,
       status = excluded.status, updated_at = clock_timestamp()`,
    [
      settingsKeyId,
      settingsVendorId,
      label,
      sealed.master_key,
      sealed.wrapped_key,
      sealed.sealed,
      toSecretSuffix(secret),
    ],
  )
}

/** Null without a master key: the row is not written then, and the secret comes from the settings. */
const sealOrNull = (secret: string, masterKeys: MasterKeys): SealedText | null => {
  try {
    return sealText(secret, keyBinding, masterKeys)
  } catch (error) {
    if (isMasonError(error, 'secret_unreadable')) return null
    throw error
  }
}

/** The two models may have swapped their aliases, so both get free names first. */
const writeModels = async (sql: Sql, { models }: SettingsColumns): Promise<void> => {
  await sql.query('UPDATE models SET name = model_id WHERE model_id = ANY($1)', [settingsModelIds])
  await sql.query(
    `INSERT INTO models (model_id, vendor_id, endpoint_id, name, upstream_name, category, dialect, status)
     SELECT id, $2, endpoint_id, name, upstream_name, category, 'tools', status FROM json_to_recordset($1::json)
       AS m(id text, endpoint_id text, name text, upstream_name text, category text, status text)
     ON CONFLICT (model_id) DO UPDATE SET name = excluded.name, upstream_name = excluded.upstream_name,
       category = excluded.category, endpoint_id = excluded.endpoint_id, status = excluded.status, updated_at = clock_timestamp()`,
    [JSON.stringify(models), settingsVendorId],
  )
}
