import { isMasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports.ts'
import type { Config } from '../config.ts'
import { open, type Sealed, type SealedPlace, seal } from '../secrets/envelope.ts'
import type { MasterKeys } from '../secrets/master-keys.ts'
import { lastOf } from './last-of.ts'
import { type RegistryRows, sealedOf } from './rows.ts'
import {
  columnsOf,
  type SettingsColumns,
  settingsEndpointId,
  settingsKeyId,
  settingsModelIds,
  settingsVendorId,
} from './settings-entries.ts'

type SettingsOptions = { masterKeys: MasterKeys; openai: Config['openai'] }

const keyPlace: SealedPlace = { purpose: 'secret', vendor_id: settingsVendorId, row_id: settingsKeyId }

/** Whether a row holds what the settings say; what they do not speak of is the admin's. */
const holds = <Own extends { id: string }>(rows: readonly Own[], own: Own): boolean => {
  const row = rows.find(({ id }) => id === own.id)
  return row !== undefined && Object.entries(own).every(([name, value]) => row[name as keyof Own] === value)
}

/** Whether the rows that follow the settings say something else than the settings of this process. */
export const settingsDiffer = (rows: RegistryRows, { masterKeys, openai }: SettingsOptions): boolean => {
  if (!openai) return inUse(rows)
  const { vendor, key, endpoint, models } = columnsOf(openai, rows)
  return !(
    holds(rows.vendors, vendor) &&
    holds(rows.endpoints, endpoint) &&
    models.every((model) => holds(rows.models, model)) &&
    (key
      ? holds(rows.keys, key) && secretIn(rows, masterKeys) === openai.apiKey
      : !rows.keys.some(({ id, status }) => id === settingsKeyId && status === 'active'))
  )
}

/** Rows of the settings that are active. */
const inUse = (rows: RegistryRows): boolean => {
  const ids = new Set([settingsVendorId, settingsKeyId, settingsEndpointId, ...settingsModelIds])
  const all = [...rows.vendors, ...rows.keys, ...rows.endpoints, ...rows.models]
  return all.some(({ id, status }) => ids.has(id) && status === 'active')
}

/** Null: there is none, or it cannot be opened. */
const secretIn = ({ keys }: RegistryRows, masterKeys: MasterKeys): string | null => {
  const row = keys.find(({ id }) => id === settingsKeyId)
  if (!row) return null
  try {
    return open(sealedOf(row), keyPlace, masterKeys).reveal()
  } catch {
    return null
  }
}

/** Makes the rows say what the settings say. Limits, prices, headers and the like stay as an admin set them. */
export const seedSettings = async (
  sql: Sql,
  rows: RegistryRows,
  { masterKeys, openai }: SettingsOptions,
): Promise<void> => {
  if (!settingsDiffer(rows, { masterKeys, openai })) return
  if (!openai) return disableAll(sql)
  const columns = columnsOf(openai, rows)
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
  const sealed = sealedOrNull(secret, masterKeys)
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
      lastOf(secret),
    ],
  )
}

/** Without a master key the row is not written: the secret is taken from the settings all the same. */
const sealedOrNull = (secret: string, masterKeys: MasterKeys): Sealed | null => {
  try {
    return seal(secret, keyPlace, masterKeys)
  } catch (error) {
    if (isMasonError(error, 'secret_unreadable')) return null
    throw error
  }
}

/** One after the other: the two may have swapped their aliases, so both give theirs up first. */
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
