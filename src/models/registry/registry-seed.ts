import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../../infra/config/config.ts'
import type { Database } from '../../infra/database/database.ts'
import { sha256 } from '../../infra/lib/ids.ts'
import { changeResources, upsertRow } from '../../infra/resources/resource-store.ts'
import { openSealedText } from '../../infra/secrets/envelope.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import { isMasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { settingsModelIds } from '../routing/candidate-order.ts'
import { builtInCategories } from '../schemas/catalog.ts'
import type { FormatInput } from '../schemas/response-format.ts'
import {
  absentFormatParts,
  type FormatRow,
  type RegistryRows,
  readRegistryRows,
  registryLock,
  toSealed,
} from './registry-rows.ts'
import { settingsEndpointId, settingsKeyId, settingsVendorId, toSettingsColumns } from './settings-entries.ts'
import { sealSecret } from './vendor-keys.ts'

type SettingsOptions = { masterKeys: MasterKeys; openai: Config['openai'] }

/** Whether a row matches the settings; other columns are the admin's. */
const hasSameColumns = <Own extends { id: string }>(rows: readonly Own[], own: Own): boolean => {
  const row = rows.find(({ id }) => id === own.id)
  return row !== undefined && Object.entries(own).every(([name, value]) => row[name as keyof Own] === value)
}

/** Whether the rows of the settings differ from the settings of this process. */
const settingsDiffer = (rows: RegistryRows, { masterKeys, openai }: SettingsOptions): boolean => {
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
const seedSettings = async (
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

/** What seeding needs. */
export type RegistrySeedOptions = {
  database: Database
  masterKeys: MasterKeys
  openai: Config['openai']
  /** The built-in formats. A test checks them, not each start. */
  formats: readonly FormatInput[]
}

/**
 * The rows of the registry, with those that Mason writes itself: categories, response formats, and the rows of the
 * settings. One statement when all of them exist already. Safe in several processes at once.
 */
export const seedRegistry = async (options: RegistrySeedOptions): Promise<RegistryRows> => {
  const { database } = options
  const rows = await readRegistryRows(database)
  if (isSeeded(rows, options)) return rows
  return changeResources({ database, lock: registryLock }, async (sql) => {
    // another process may have been first
    const current = await readRegistryRows(sql)
    if (isSeeded(current, options)) return current
    await seedCategories(sql, current)
    await seedFormats(sql, findChangedFormats(current, options.formats))
    await seedSettings(sql, current, options)
    return readRegistryRows(sql)
  })
}

const isSeeded = (rows: RegistryRows, options: RegistrySeedOptions): boolean =>
  findMissingCategories(rows).length === 0 &&
  findChangedFormats(rows, options.formats).length === 0 &&
  !settingsDiffer(rows, options)

/** The same in every process, so that a second process finds the row. */
const toSeedId = (prefix: string, name: string): string => `${prefix}_${sha256(name).slice(0, 24)}`

const findMissingCategories = ({ categories }: RegistryRows): string[] => {
  const existing = new Set(categories.filter(({ built_in }) => built_in).map(({ name }) => name))
  return builtInCategories.filter((name) => !existing.has(name))
}

/** A category that an admin created with the same name becomes built in. */
const seedCategories = async (sql: Sql, rows: RegistryRows): Promise<void> => {
  const missing = findMissingCategories(rows).map((name) => ({ id: toSeedId('cat', name), name }))
  if (missing.length === 0) return
  await sql.query(
    `INSERT INTO categories (category_id, name, built_in)
     SELECT id, name, true FROM json_to_recordset($1::json) AS c(id text, name text)
     ON CONFLICT (name) DO UPDATE SET built_in = true, updated_at = clock_timestamp()`,
    [JSON.stringify(missing)],
  )
}

type StoredFormat = Pick<FormatRow, 'id' | 'name' | 'category' | 'definition'>

/** The format as it is stored: its members in stored order, null when absent. */
const toStoredFormat = (format: FormatInput, rows: RegistryRows): StoredFormat => {
  const id = toSeedId('fmt', format.name)
  const isTaken = rows.formats.some((row) => row.name === format.name && row.id !== id)
  const { name, category, ...definition } = { ...absentFormatParts, ...format }
  return {
    id,
    name: isTaken ? `${name} (built in)` : name,
    category,
    // without undefined members, as JSON stores it
    definition: JSON.parse(JSON.stringify(definition)) as StoredFormat['definition'],
  }
}

const findChangedFormats = (rows: RegistryRows, builtIn: readonly FormatInput[]): StoredFormat[] =>
  builtIn
    .map((format) => toStoredFormat(format, rows))
    .filter((format) => {
      const row = rows.formats.find(({ id }) => id === format.id)
      return !(
        row?.built_in &&
        row.name === format.name &&
        row.category === format.category &&
        isDeepStrictEqual(row.definition, format.definition)
      )
    })

const seedFormats = async (sql: Sql, formats: readonly StoredFormat[]): Promise<void> => {
  if (formats.length === 0) return
  await sql.query(
    `INSERT INTO response_formats AS f (format_id, name, category, definition, built_in, status)
     SELECT id, name, category, definition, true, 'active' FROM json_to_recordset($1::json)
       AS n(id text, name text, category text, definition json)
     ON CONFLICT (format_id) DO UPDATE SET name = excluded.name, category = excluded.category, built_in = true,
       definition = excluded.definition, status = 'active', faults = '[]', updated_at = clock_timestamp()`,
    [JSON.stringify(formats)],
  )
}
