import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { toSettingsError } from '../../state/errors.ts'
import { sha256 } from '../lib/ids.ts'
import { describeSchema } from './describe-schema.ts'
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

const listPattern = String.raw`((?:ONLY\s+)?NAME(?:\s*,\s*(?:ONLY\s+)?NAME)*)`.replaceAll(
  'NAME',
  String.raw`(?:"?mason"?\s*\.\s*)?"?[a-z_0-9]+"?`,
)
const tableStatements = new RegExp(
  [
    String.raw`(?:(?:CREATE(?:\s+UNLOGGED)?|ALTER|DROP|LOCK)\s+TABLE|(?:INSERT|MERGE)\s+INTO|DELETE\s+FROM|TRUNCATE(?!\s+O[NR]\b)(?:\s+TABLE)?)\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?LIST`,
    String.raw`UPDATE\s+LIST(?:\s+(?:AS\s+)?\w+)?\s+SET\b`,
    String.raw`POLICY\s+(?:IF\s+EXISTS\s+)?"?\w+"?\s+ON\s+LIST`,
    String.raw`ON\s+(?!(?:SCHEMA|FUNCTION|SEQUENCE|DATABASE|ALL)\b)(?:TABLE\s+)?LIST\s+(?:TO|FROM)\b`,
  ]
    .map((one) => String.raw`\b${one}`)
    .join('|')
    .replaceAll('LIST', listPattern),
  'gi',
)

/** The tables that statements make, change, open or write. */
export const listTouchedTables = (statements: string): string[] =>
  [...statements.matchAll(tableStatements)].flatMap((match) =>
    (match.slice(1).find((names) => names !== undefined) ?? '')
      .split(',')
      .map((name) => (name.match(/\w+/g)?.at(-1) ?? '').toLowerCase()),
  )

/** Comments, names in quotes, and literals, of which the body of a function is one. */
const notStatements =
  /--.*|\/\*[\s\S]*?(?:\*\/|$)|"[^"]*"|\be'(?:[^'\\]|\\[\s\S])*(?:'|$)|'[^']*'|\$(\w*)\$[\s\S]*?(?:\$\1\$|$)/gi

/** A script without its comments, and with each literal empty: what stands in a function runs later, for whatever calls it. */
export const toStatements = (sql: string): string =>
  sql.replace(notStatements, (text) => {
    if (text.startsWith('"')) return text
    return /^(?:--|\/\*)/.test(text) ? ' ' : "''"
  })

const refusedStatement =
  /^\s*(BEGIN|START\s+TRANSACTION|COMMIT|END|ROLLBACK|ABORT|PREPARE\s+TRANSACTION|DO)\b/i

/** Throws `invalid_settings` for what would end the transaction of the migration, or runs code that is not searched. */
const checkStatements = (path: string, statements: string): void => {
  for (const statement of statements.split(';')) {
    const [, words] = refusedStatement.exec(statement) ?? []
    if (words !== undefined)
      throw toSettingsError(
        `${path} has the statement ${words.toUpperCase()}`,
        'remove it: a migration is one transaction of plain statements; write the body of a function in dollar quotes',
      )
  }
}

/** The functions that a script makes or replaces. */
const listFunctions = (statements: string): string[] =>
  [
    ...statements.matchAll(
      /\bCREATE\s+(?:OR\s+REPLACE\s+)?(?:FUNCTION|PROCEDURE)\s+(?:"?mason"?\s*\.\s*)?"?(\w+)/gi,
    ),
  ].map(([, name = '']) => name.toLowerCase())

const keepToOwn = 'name the table in feature.ts if it is its own, or remove the statement'

const fileName = /^\d{8}_\d{2}_[a-z0-9_]+\.sql$/

/** Reads those of a product. Throws `invalid_settings` where two features have a table, or one touches a table of another. */
export const readOwnMigrations = async (
  own: readonly OwnMigrations[],
  builtIn: readonly Migration[],
): Promise<Migration[]> => {
  const owners = new Map([['migrations', 'the core']])
  const builtInFunctions = new Set<string>()
  for (const { name, text } of builtIn) {
    const statements = toStatements(text)
    for (const table of listTouchedTables(statements))
      owners.set(table, name.includes('/') ? `the feature "${dirname(name)}"` : 'the core')
    for (const one of listFunctions(statements)) builtInFunctions.add(one)
  }
  for (const { id, tables } of own)
    for (const table of tables) {
      const owner = owners.get(table)
      if (owner !== undefined)
        throw toSettingsError(
          `the feature "${id}" and ${owner} both have the table "${table}"`,
          `give the table of "${id}" another name`,
        )
      owners.set(table, `the feature "${id}"`)
    }
  const read = own.map(async ({ id, folder, tables }) => {
    const files = (await listFiles(folder)).filter((file) => file.endsWith('.sql'))
    const read = await Promise.all(
      files.map(async (file) => {
        const path = join(folder, file)
        if (!fileName.test(file))
          throw toSettingsError(
            `${path} is not named as a migration`,
            'name it <date>_<number>_<name>.sql, as in 20261231_01_announcements.sql',
          )
        const migration = await readMigration(`${id}/${file}`, path)
        const statements = toStatements(migration.text)
        checkStatements(path, statements)
        const table = listTouchedTables(statements).find((one) => !tables.includes(one))
        if (table === undefined) return { path, migration, functions: listFunctions(statements) }
        throw toSettingsError(
          `${path} of the feature "${id}" touches the table "${table}" of ${owners.get(table) ?? 'no feature'}`,
          keepToOwn,
        )
      }),
    )
    const functions = read.flatMap((one) => one.functions).filter((name) => !builtInFunctions.has(name))
    const last = files.toSorted().at(-1) ?? ''
    return read.map(({ path, migration }) => ({
      ...migration,
      own: { path, tables, functions, isFollowed: path !== join(folder, last) },
    }))
  })
  return (await Promise.all(read)).flat()
}

/**
 * What the catalog says of a table or view. A policy of a process that works for one business names that business, and a view has
 * the rights of its reader: else rows of another business can be read. $2: a later file may add the grants of the embedded database.
 */
const openTablesStatement = `
  SELECT relname AS "table", concat_ws(', ',
    CASE WHEN NOT is_view AND NOT relrowsecurity THEN 'ENABLE ROW LEVEL SECURITY' END,
    CASE WHEN NOT is_view AND NOT relforcerowsecurity THEN 'FORCE ROW LEVEL SECURITY' END,
    CASE WHEN NOT is_view AND NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid) THEN 'policy' END,
    (SELECT 'mason.business in the policy ' || string_agg(polname, ' and ' ORDER BY polname) FROM pg_policy
      WHERE polrelid = c.oid AND polpermissive AND EXISTS (
        SELECT FROM unnest(polroles) AS one WHERE one = 0 OR one::regrole::text IN ('mason_api', 'mason_business'))
      AND EXISTS (SELECT FROM unnest(ARRAY[pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)]) AS expression
        WHERE strpos(expression, 'mason.business') = 0)),
    CASE WHEN is_view AND NOT EXISTS (SELECT FROM pg_options_to_table(reloptions)
      WHERE option_name = 'security_invoker' AND option_value::boolean) THEN 'security_invoker' END,
    CASE WHEN NOT EXISTS (SELECT FROM aclexplode(relacl) WHERE grantee <> relowner) THEN 'grant' END,
    (SELECT string_agg(format('GRANT %s TO %s', privilege_type, deputy), ' and ' ORDER BY deputy DESC, privilege_type)
      || ', which the embedded database uses in place of mason_admin and mason_business'
      FROM aclexplode(relacl) JOIN (VALUES ('mason_admin', 'mason_worker'), ('mason_business', 'mason_api')) AS d(role, deputy)
      ON grantee::regrole::text = role WHERE NOT $2::boolean AND NOT has_table_privilege(deputy, c.oid, privilege_type))) AS missing
  FROM pg_class c, LATERAL (SELECT relkind IN ('v', 'm') AS is_view) AS k
  WHERE relnamespace = 'mason'::regnamespace AND relkind IN ('r', 'p', 'f', 'v', 'm') AND relname = ANY($1)
  ORDER BY relname`

/** The lines of each object that is not the feature's, by its kind and name. */
const listForeignObjects = async (
  target: MigrationTarget,
  { tables, functions }: NonNullable<Migration['own']>,
): Promise<Map<string, string[]>> => {
  const objects = (await describeSchema(target)).filter(
    ({ kind, name }) =>
      kind !== 'sequence' &&
      !(kind === 'table' && tables.includes(name)) &&
      !(kind === 'function' && functions.includes(name.split('(', 1)[0] ?? '')),
  )
  return new Map(objects.map(({ kind, name, sql }) => [`${kind} ${name}`, sql.split('\n')]))
}

/** The first object that differs; a trigger that was added to a table is no difference. */
const findDifference = (
  before: ReadonlyMap<string, string[]>,
  after: ReadonlyMap<string, string[]>,
): string | undefined =>
  [...new Set([...before.keys(), ...after.keys()])].find((object) => {
    const [old, now] = [before.get(object), after.get(object)]
    if (!old) return object.startsWith('table ')
    if (!now || old.some((line) => !now.includes(line))) return true
    return now.some((line) => !old.includes(line) && !line.startsWith('CREATE TRIGGER '))
  })

/**
 * Runs the script of a migration, in the transaction of the caller. Throws `invalid_settings` where one of a product changes what
 * is not its own, or leaves a table open across businesses, or of use to no process.
 */
export const runMigration = async (target: MigrationTarget, { text, own }: Migration): Promise<void> => {
  if (!own) return target.run(text)
  const before = await listForeignObjects(target, own)
  await target.run(text)
  const changed = findDifference(before, await listForeignObjects(target, own))
  if (changed !== undefined) throw toSettingsError(`${own.path} changes the ${changed}`, keepToOwn)
  const values = [own.tables, own.isFollowed]
  for (const { table, missing } of await target.query(openTablesStatement, values))
    if (missing !== '')
      throw toSettingsError(
        `${own.path} leaves the table "${table}" without ${missing}`,
        'add it to the migration, as docs/features.md#migrations has it',
      )
}
