import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { toSettingsError } from '../../state/errors.ts'
import { sha256 } from '../lib/ids.ts'
import { toPackagePath } from '../lib/package-path.ts'
import { describeSchema, type SchemaObject } from './describe-schema.ts'
import type { AppliedMigration, Migration, MigrationTarget } from './migration.ts'

/** The migrations of before the baseline, and what they made: the hash of each object. */
type Baseline = { last: string; checksum: string; objects: Record<string, string> }
/** How the files of the baseline begin, and those of before it. */
const baselinePrefix = '20261127_'
const oldPrefix = /^\d{4}_/

const readBaseline = async (): Promise<Baseline> =>
  JSON.parse(await readFile(toPackagePath('migrations', 'baseline.json'), 'utf8')) as Baseline

/** The hash of each object, by its kind and name. */
const hashObjects = (objects: readonly SchemaObject[]): Record<string, string> =>
  Object.fromEntries(objects.map(({ kind, name, sql }) => [`${kind} ${name}`, sha256(sql).slice(0, 16)]))

/** One hash of the names and checksums of applied migrations. */
const hashLedger = (rows: readonly AppliedMigration[]): string => {
  const lines = rows.map(({ name, checksum }) => `${name} ${checksum}\n`)
  return sha256(lines.sort().join(''))
}

/**
 * Gives a database that has the migrations of before the baseline (docs/decisions/0240) the rows of the baseline, which makes the same
 * schema. Returns the rows that it then has: of any other database `rows`. Throws `invalid_settings`, and changes nothing, where it
 * lacks some of them or where its schema is another.
 */
export const adoptDatabase = async (
  target: MigrationTarget,
  all: readonly Migration[],
  rows: readonly AppliedMigration[],
): Promise<readonly AppliedMigration[]> => {
  if (!rows.some(({ name }) => oldPrefix.test(name))) return rows
  const baseline = await readBaseline()
  if (hashLedger(rows) !== baseline.checksum)
    throw toSettingsError(
      `the database is older than ${baseline.last}, or has other migrations`,
      'migrate it with the last version that has that file, then with this one (docs/upgrade.md)',
    )
  const found = hashObjects(await describeSchema(target))
  const differing = [...new Set([...Object.keys(baseline.objects), ...Object.keys(found)])].filter(
    (object) => baseline.objects[object] !== found[object],
  )
  if (differing.length > 0)
    throw toSettingsError(
      `the schema was changed by hand: ${differing.join(', ')}`,
      'compare it with migrations/schema.sql, undo the changes, then migrate again',
    )
  const adopted = all.filter(({ name }) => basename(name).startsWith(baselinePrefix))
  const values = adopted.map(({ name, checksum }) => `('${name}', '${checksum}')`)
  await target.run(
    `BEGIN; DELETE FROM migrations; INSERT INTO migrations (name, checksum) VALUES ${values.join(', ')}; COMMIT`,
  )
  return adopted
}
