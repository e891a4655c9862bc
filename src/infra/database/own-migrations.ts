import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { MasonError } from '../../state/errors.ts'
import { sha256 } from '../lib/ids.ts'
import type { Migration, MigrationTarget } from './migration.ts'

/** The migrations of a feature of a product; `tables` are those that it alone writes. */
export type OwnMigrations = { id: string; folder: string; tables: readonly string[] }

/** What a folder has; nothing where it does not exist. */
export const listFiles = (folder: string): Promise<string[]> =>
  readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
    throw error
  })

/** Reads a script. */
export const readMigration = async (name: string, path: string): Promise<Migration> => {
  const text = await readFile(path, 'utf8')
  return { name, text, checksum: sha256(text) }
}

const refuse = (message: string, remedy: string): MasonError =>
  new MasonError('invalid_settings', message, { remedy })

const tableStatements = new RegExp(
  [
    String.raw`(?:(?:CREATE|ALTER|DROP) TABLE|INSERT INTO|DELETE FROM|TRUNCATE(?! O[NR]\b)(?: TABLE)?)\s+(?:IF (?:NOT )?EXISTS\s+)?(?:ONLY\s+)?NAME`,
    String.raw`UPDATE\s+(?:ONLY\s+)?NAME(?:\s+(?:AS\s+)?\w+)?\s+SET\b`,
    String.raw`POLICY\s+\w+\s+ON\s+NAME`,
    String.raw`ON\s+(?!(?:SCHEMA|FUNCTION|SEQUENCE|DATABASE|ALL)\b)(?:TABLE\s+)?NAME\s*(?:,|\bTO\b|\bFROM\b)`,
  ]
    .map((one) => String.raw`\b${one}`)
    .join('|')
    .replaceAll('NAME', String.raw`(?:mason\.)?"?([a-z_0-9]+)"?`),
  'gi',
)

/** The tables that a script makes, changes, opens or writes; what stands in a function runs later, for whatever calls it. */
export const listTouchedTables = (sql: string): string[] => {
  const script = sql.replace(/\$(\w*)\$[\s\S]*?\$\1\$/g, '').replace(/--.*|\/\*[\s\S]*?(?:\*\/|$)/g, '')
  return [...script.matchAll(tableStatements)].map((match) =>
    (match.slice(1).find((name) => name !== undefined) ?? '').toLowerCase(),
  )
}

const fileName = /^\d{8}_\d{2}_[a-z0-9_]+\.sql$/

/** Reads those of a product. Throws `invalid_settings` where two features have a table, or one touches a table of another. */
export const readOwnMigrations = async (
  own: readonly OwnMigrations[],
  builtIn: readonly Migration[],
): Promise<Migration[]> => {
  const owners = new Map([['migrations', 'the core']])
  for (const { name, text } of builtIn)
    for (const table of listTouchedTables(text))
      owners.set(table, name.includes('/') ? `the feature "${dirname(name)}"` : 'the core')
  for (const { id, tables } of own)
    for (const table of tables) {
      const owner = owners.get(table)
      if (owner !== undefined)
        throw refuse(
          `the feature "${id}" and ${owner} both have the table "${table}"`,
          `give the table of "${id}" another name`,
        )
      owners.set(table, `the feature "${id}"`)
    }
  const read = own.map(async ({ id, folder, tables }) => {
    const files = (await listFiles(folder)).filter((file) => file.endsWith('.sql'))
    return Promise.all(
      files.map(async (file) => {
        const path = join(folder, file)
        if (!fileName.test(file))
          throw refuse(
            `${path} is not named as a migration`,
            'name it <date>_<number>_<name>.sql, as in 20261231_01_announcements.sql',
          )
        const migration = await readMigration(`${id}/${file}`, path)
        const table = listTouchedTables(migration.text).find((one) => !tables.includes(one))
        if (table === undefined) return { ...migration, own: { path, tables } }
        throw refuse(
          `${path} of the feature "${id}" touches the table "${table}" of ${owners.get(table) ?? 'no feature'}`,
          'name the table in feature.ts if it is its own, or remove the statement',
        )
      }),
    )
  })
  return (await Promise.all(read)).flat()
}

/** What the catalog says of a table; a view for the roles of the processes has none of it. */
const openTablesStatement = `
  SELECT relname AS "table", concat_ws(', ',
    CASE WHEN NOT relrowsecurity THEN 'ENABLE ROW LEVEL SECURITY' END,
    CASE WHEN NOT relforcerowsecurity THEN 'FORCE ROW LEVEL SECURITY' END,
    CASE WHEN NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid) THEN 'policy' END,
    CASE WHEN NOT EXISTS (SELECT FROM aclexplode(relacl) WHERE grantee <> relowner) THEN 'grant' END) AS missing
  FROM pg_class c WHERE relnamespace = 'mason'::regnamespace AND relkind IN ('r', 'p') AND relname = ANY($1)
  ORDER BY relname`

/** Throws `invalid_settings` where a migration of a product leaves a table open across businesses, or of use to no process. */
export const checkOwnTables = async (target: MigrationTarget, { own }: Migration): Promise<void> => {
  if (!own) return
  for (const { table, missing } of await target.query(openTablesStatement, [own.tables]))
    if (missing !== '')
      throw refuse(
        `${own.path} leaves the table "${table}" without ${missing}`,
        'add it to the migration, as docs/features.md#migrations has it',
      )
}
