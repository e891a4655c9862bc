import { isDeepStrictEqual } from 'node:util'
import type { Sql } from '../../state/ports.ts'
import { builtInCategories } from '../../state/registry/catalog.ts'
import type { Fault } from '../../state/registry/common.ts'
import type { FormatInput } from '../../state/registry/response-format.ts'
import type { Config } from '../config.ts'
import type { Database } from '../database/database.ts'
import { sha256 } from '../ids.ts'
import type { MasterKeys } from '../secrets/master-keys.ts'
import { type FormatRow, type RegistryRows, readRows } from './rows.ts'
import { seedSettings, settingsDiffer } from './seed-settings.ts'
import { changeRegistry } from './store.ts'

export type SeedOptions = {
  database: Database
  masterKeys: MasterKeys
  openai: Config['openai']
  formats: {
    builtIn: readonly FormatInput[]
    /** Asked only of what is new or has changed. */
    check(format: FormatInput): Fault[] | Promise<Fault[]>
  }
}

/**
 * The rows of the registry, with what Mason brings itself: categories, response formats, and what follows the settings.
 * One statement when all of it stands there already. Safe in several processes at once.
 */
export const seedRegistry = async (options: SeedOptions): Promise<RegistryRows> => {
  const { database } = options
  const rows = await readRows(database)
  if (isSeeded(rows, options)) return rows
  const formats = await checkedFormats(rows, options.formats)
  return changeRegistry({ database, changed: async () => {} }, async (sql) => {
    // another process may have been first
    const current = await readRows(sql)
    if (isSeeded(current, options)) return current
    await seedCategories(sql, current)
    await seedFormats(sql, formats)
    await seedSettings(sql, current, options)
    return readRows(sql)
  })
}

const isSeeded = (rows: RegistryRows, options: SeedOptions): boolean =>
  missingCategories(rows).length === 0 &&
  changedFormats(rows, options.formats.builtIn).length === 0 &&
  !settingsDiffer(rows, options)

/** The same in every process, so that whoever is second finds it there. */
const idOf = (prefix: string, name: string): string => `${prefix}_${sha256(name).slice(0, 24)}`

const missingCategories = ({ categories }: RegistryRows): string[] => {
  const known = new Set(categories.filter(({ built_in }) => built_in).map(({ name }) => name))
  return builtInCategories.filter((name) => !known.has(name))
}

/** One that an admin made under the same name becomes built in. */
const seedCategories = async (sql: Sql, rows: RegistryRows): Promise<void> => {
  const missing = missingCategories(rows).map((name) => ({ id: idOf('cat', name), name }))
  if (missing.length === 0) return
  await sql.query(
    `INSERT INTO categories (category_id, name, built_in)
     SELECT id, name, true FROM json_to_recordset($1::json) AS c(id text, name text)
     ON CONFLICT (name) DO UPDATE SET built_in = true, updated_at = clock_timestamp()`,
    [JSON.stringify(missing)],
  )
}

type Stored = Pick<FormatRow, 'id' | 'name' | 'category' | 'definition'>

/** As it is stored, its members in the order of the store and null where there is nothing. */
const storedOf = (format: FormatInput, rows: RegistryRows): Stored => {
  const id = idOf('fmt', format.name)
  const isTaken = rows.formats.some((row) => row.name === format.name && row.id !== id)
  const {
    category = 'text',
    request = null,
    paths,
    stream = null,
    poll = null,
    schema = null,
    samples = [],
  } = format
  const definition = { request, paths, stream, poll, schema, samples }
  return {
    id,
    name: isTaken ? `${format.name} (built in)` : format.name,
    category,
    // without what JSON does not carry
    definition: JSON.parse(JSON.stringify(definition)) as Stored['definition'],
  }
}

const changedFormats = (rows: RegistryRows, builtIn: readonly FormatInput[]): Stored[] =>
  builtIn
    .map((format) => storedOf(format, rows))
    .filter((wanted) => {
      const row = rows.formats.find(({ id }) => id === wanted.id)
      return !(
        row?.built_in &&
        row.name === wanted.name &&
        row.category === wanted.category &&
        isDeepStrictEqual(row.definition, wanted.definition)
      )
    })

type Checked = Stored & { status: FormatRow['status']; faults: Fault[] }

const checkedFormats = (rows: RegistryRows, { builtIn, check }: SeedOptions['formats']): Promise<Checked[]> =>
  Promise.all(
    changedFormats(rows, builtIn).map(async (format): Promise<Checked> => {
      const { name, category, definition } = format
      const faults = await check({ ...definition, name, category })
      return { ...format, faults, status: faults.length === 0 ? 'active' : 'inactive' }
    }),
  )

const seedFormats = async (sql: Sql, formats: readonly Checked[]): Promise<void> => {
  if (formats.length === 0) return
  await sql.query(
    `INSERT INTO response_formats AS f (format_id, name, category, definition, built_in, status, faults)
     SELECT id, name, category, definition, true, status, faults FROM json_to_recordset($1::json)
       AS n(id text, name text, category text, definition json, status text, faults json)
     ON CONFLICT (format_id) DO UPDATE SET name = excluded.name, category = excluded.category, built_in = true,
       definition = excluded.definition, status = excluded.status, faults = excluded.faults, updated_at = clock_timestamp()`,
    [JSON.stringify(formats)],
  )
}
