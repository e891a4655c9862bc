import { basename, dirname, join, relative } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { toSettingsError } from '../../state/errors.ts'
import { toPackagePath } from '../lib/package-path.ts'
import { adoptDatabase } from './adopt-database.ts'
import { deadlockDetected } from './database-errors.ts'
import type { AppliedMigration, Migration, MigrationTarget } from './migration.ts'
import {
  listFiles,
  type OwnMigrations,
  readMigration,
  readOwnMigrations,
  runMigration,
} from './own-migrations.ts'

const featuresFolder = toPackagePath('src', 'features')
const toPath = (name: string): string =>
  join(
    name.includes('/') ? join(featuresFolder, dirname(name), 'migrations') : toPackagePath('migrations'),
    basename(name),
  )

/** All migrations: of the core and of the features that are there, then of `own` ones, each in the order of their file names. */
export const readMigrations = async (own: readonly OwnMigrations[] = []): Promise<Migration[]> => {
  const features = await Promise.all(
    (await listFiles(featuresFolder)).map(async (id) =>
      (await listFiles(join(featuresFolder, id, 'migrations'))).map((file) => `${id}/${file}`),
    ),
  )
  const names = [...(await listFiles(toPackagePath('migrations'))), ...features.flat()]
    .filter((name) => /^\d.*\.sql$/.test(basename(name)))
    .sort(byFile)
  const builtIn = await Promise.all(names.map((name) => readMigration(name, toPath(name))))
  const ofProduct = own.length === 0 ? [] : await readOwnMigrations(own, builtIn)
  // after all of Mason's, whatever their dates: a server that has those runs them then, too
  return [...builtIn, ...ofProduct.sort((one, other) => byFile(one.name, other.name))]
}

const byFile = (one: string, other: string): number => (basename(one) < basename(other) ? -1 : 1)

/** Processes at work lock tables in another order than a migration: Postgres may refuse it, and it is tried again. */
const maxTries = 20
const retryMs = 250

/**
 * Applies missing migrations in order, each in its own transaction, and returns their names. Refuses a migration that was
 * changed after it was applied, and, before it does anything, a server without the pgvector version that is needed.
 */
export const applyMigrations = async (
  target: MigrationTarget,
  given?: readonly Migration[],
): Promise<string[]> => {
  await target.run(`CREATE SCHEMA IF NOT EXISTS mason;
    SET search_path = mason, public;
    CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`)
  const all = given ?? (await readMigrations())
  const stored = (await target.query('SELECT name, checksum FROM migrations')) as AppliedMigration[]
  // a product has no features that are older than the baseline
  const builtIn = all.filter(({ own }) => !own)
  const rows = await adoptDatabase(target, builtIn, stored)
  const applied = new Map(rows.map(({ name, checksum }) => [name, checksum]))
  const done: string[] = []
  if (all.some(({ name }) => !applied.has(name))) await checkVector(target)
  for (const migration of all) {
    const { name, checksum } = migration
    const known = applied.get(name)
    if (known === checksum) continue
    if (known !== undefined) {
      const { problem, remedy } = describeChanged(migration)
      throw toSettingsError(problem, remedy)
    }
    const run = async (): Promise<void> => {
      await target.run('BEGIN')
      await runMigration(target, migration)
      await target.run(`INSERT INTO migrations (name, checksum) VALUES ('${name}', '${checksum}'); COMMIT`)
    }
    const apply = (tries: number): Promise<void> =>
      run().catch(async (error: unknown) => {
        await target.run('ROLLBACK')
        if ((error as { code?: unknown }).code === deadlockDetected && tries < maxTries) {
          await pause(retryMs * (1 + Math.random()))
          return apply(tries + 1)
        }
        throw await toMigrationError(target, migration, error)
      })
    await apply(1)
    done.push(name)
  }
  return done
}

const describePath = ({ name, own }: Migration): string =>
  own?.path ?? relative(toPackagePath(), toPath(name))

const describeChanged = (migration: Migration): { problem: string; remedy: string } => ({
  problem: `migration ${migration.name} was changed after it was applied`,
  remedy: `restore the original ${describePath(migration)} and put the change into a new file`,
})

const isOfRemovedFeature = (name: string, all: readonly Migration[]): boolean =>
  name.includes('/') && !all.some((one) => dirname(one.name) === dirname(name))

/** The ids of the features whose tables the database has, and which are not among `all` migrations. */
export const findRemovedFeatures = async (
  applied: readonly AppliedMigration[],
  given?: readonly Migration[],
): Promise<string[]> => {
  const all = given ?? (await readMigrations())
  const removed = applied.filter(({ name }) => isOfRemovedFeature(name, all))
  return [...new Set(removed.map(({ name }) => dirname(name)))]
}

/** What keeps this version from working on a database with these migrations, and the remedy; null: nothing. */
export const findMigrationGap = async (
  applied: readonly AppliedMigration[],
  given?: readonly Migration[],
): Promise<{ problem: string; remedy: string } | null> => {
  const all = given ?? (await readMigrations())
  const list = (names: readonly { name: string }[]): string => names.map(({ name }) => name).join(', ')
  const missing = all.filter(({ name }) => !applied.some((one) => one.name === name))
  if (missing.length > 0)
    return {
      problem:
        applied.length === 0
          ? 'the database is not migrated, or this login may not use it'
          : `the database is older than this version: migrations are missing: ${list(missing)}`,
      remedy:
        'run `mason migrate` with the settings of all processes, or start `mason serve` or `mason worker` with --migrate',
    }
  const unknown = applied.filter(
    ({ name }) => !all.some((one) => one.name === name) && !isOfRemovedFeature(name, all),
  )
  if (unknown.length > 0)
    return {
      problem: `the database is newer than this version, which does not know ${list(unknown)}`,
      remedy: 'start the version that migrated it, or restore a backup of before',
    }
  const changed = all.find(
    ({ name, checksum }) => applied.find((one) => one.name === name)?.checksum !== checksum,
  )
  return changed ? describeChanged(changed) : null
}

const readVectorFacts = async (target: MigrationTarget): Promise<VectorFacts> => {
  const [facts] = await target.query(`SELECT ${vectorColumns}`)
  return facts as VectorFacts
}

const checkVector = async (target: MigrationTarget): Promise<void> => {
  const problem = checkVectorVersion(await readVectorFacts(target))
  if (problem) throw toSettingsError(problem.text, problem.remedy)
}

/** Postgres refuses a statement that the user has no right to. */
export const insufficientPrivilege = '42501'

/** Which users may enable the extension differs between servers, so it is tried. Another statement is refused with its file. */
const toMigrationError = async (target: MigrationTarget, migration: Migration, cause: unknown) => {
  const { code, message } = cause as { code?: unknown; message?: unknown }
  const isRefused = code === insufficientPrivilege && migration.text.includes('CREATE EXTENSION')
  if (isRefused && (await readVectorFacts(target)).vector === null)
    return toSettingsError(
      'this database user is not allowed to enable pgvector',
      `${enableVectorRemedy}; then try again`,
      cause,
    )
  // a login that may not create is another case, which the caller explains
  if (code === insufficientPrivilege || !/^(?:22|23|42)/.test(String(code))) return cause
  const remedy = 'correct the file, or the rows that it names; nothing of it was applied'
  return toSettingsError(`${describePath(migration)} failed: ${message}`, remedy, cause)
}

/** The pgvector versions of a server as text, null where there is none. */
export type VectorFacts = {
  /** Enabled in this database. */
  vector: string | null
  /** What CREATE EXTENSION would enable. */
  vector_available: string | null
}

/** The first version with `halfvec` and distances of bit vectors. */
const minVectorVersion = '0.7.0'

/** The SELECT columns of `VectorFacts`. */
export const vectorColumns = `(SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector,
  (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS vector_available`

/** What to do where pgvector is installed but not enabled. */
export const enableVectorRemedy = 'run as a superuser in this database: CREATE EXTENSION vector'

/** Compares versions such as 0.8.1; a part that is not a number counts as 0. */
const isNewEnough = (version: string): boolean => {
  const numbers = (text: string) => text.split('.').map((part) => Number.parseInt(part, 10) || 0)
  const [min, actual] = [numbers(minVectorVersion), numbers(version)]
  const at = min.findIndex((number, index) => number !== (actual[index] ?? 0))
  return at === -1 || (actual[at] ?? 0) > (min[at] ?? 0)
}

/** The problem and the remedy of a server with a missing or too old pgvector; null where it can be used once enabled. */
export const checkVectorVersion = ({
  vector,
  vector_available: available,
}: VectorFacts): { text: string; remedy: string } | null => {
  const install = `install pgvector ${minVectorVersion} or later on the server (image pgvector/pgvector, or the package postgresql-<version>-pgvector)`
  const update = 'run as a superuser in this database: ALTER EXTENSION vector UPDATE'
  if (vector !== null) {
    if (isNewEnough(vector)) return null
    return {
      text: `pgvector ${vector} is too old: ${minVectorVersion} or later is needed`,
      remedy: available !== null && isNewEnough(available) ? update : `${install}, then ${update}`,
    }
  }
  if (available === null) return { text: 'pgvector is not installed', remedy: install }
  return isNewEnough(available)
    ? null
    : {
        text: `pgvector ${available} on the server is too old: ${minVectorVersion} or later is needed`,
        remedy: install,
      }
}
