import type { Config } from '../../infra/config/config.ts'
import { upsertRow } from '../../infra/resources/resource-store.ts'
import { openSealedText } from '../../infra/secrets/envelope.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import { isMasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { type RegistryRows, toSealed } from './registry-rows.ts'
import {
  settingsEndpointId,
  settingsKeyId,
  settingsModelIds,
  settingsVendorId,
  toSettingsColumns,
} from './settings-entries.ts'
import { sealSecret } from './vendor-keys.ts'

type SettingsOptions = { masterKeys: MasterKeys; openai: Config['openai'] }

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
    const binding = { purpose: 'secret', vendor_id: settingsVendorId, row_id: settingsKeyId } as const
    return openSealedText(toSealed(row), binding, masterKeys).reveal()
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
  const { vendor, key, endpoint, models } = toSettingsColumns(openai, rows)
  const fixed = { vendor_id: settingsVendorId }
  await upsertRow(sql, 'vendors', 'vendor_id', vendor)
  await upsertRow(sql, 'endpoints', 'endpoint_id', endpoint, fixed)
  if (openai.apiKey === null || key === null) await disable(sql, 'vendor_keys', 'key_id', [settingsKeyId])
  else {
    const sealed = sealOrNull(openai.apiKey, masterKeys)
    if (sealed) await upsertRow(sql, 'vendor_keys', 'key_id', { ...key, ...sealed }, fixed)
  }
  // the two models may have swapped their aliases, so both get free names first
  await sql.query('UPDATE models SET name = model_id WHERE model_id = ANY($1)', [settingsModelIds])
  for (const model of models)
    await upsertRow(sql, 'models', 'model_id', model, { ...fixed, dialect: 'tools' })
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

/** The columns of the secret. Null without a master key: the row is not written then, and the secret comes from the settings. */
const sealOrNull = (secret: string, masterKeys: MasterKeys) => {
  try {
    return sealSecret(secret, settingsVendorId, settingsKeyId, masterKeys)
  } catch (error) {
    if (isMasonError(error, 'secret_unreadable')) return null
    throw error
  }
}
