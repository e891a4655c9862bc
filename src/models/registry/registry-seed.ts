import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../../infra/config/config.ts'
import type { Database } from '../../infra/database/database.ts'
import { sha256 } from '../../infra/lib/ids.ts'
import { changeResources } from '../../infra/resources/resource-store.ts'
import type { MasterKeys } from '../../infra/secrets/master-keys.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { builtInCategories } from '../schemas/catalog.ts'
import type { FormatInput } from '../schemas/response-format.ts'
import {
  absentFormatParts,
  type FormatRow,
  type RegistryRows,
  readRegistryRows,
  registryLock,
} from './registry-rows.ts'
import { seedSettings, settingsDiffer } from './settings-seed.ts'

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
