import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { MasonError } from '../../state/errors.ts'
import { packagePath } from '../package-path.ts'
import { switchOn, type VectorFacts, vectorColumns, vectorFault } from './vector-extension.ts'

/** What applying migrations needs: a runner of whole scripts, and single statements. The caller holds the lock. */
export type MigrationTarget = {
  run(script: string): Promise<void>
  query(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>
}

export type Migration = { name: string; text: string; checksum: string }

/** All migrations in their order. */
export const readMigrations = async (): Promise<Migration[]> => {
  const folder = packagePath('migrations')
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(`${folder}/${name}`, 'utf8')
      return { name, text, checksum: createHash('sha256').update(text).digest('hex') }
    }),
  )
}

/**
 * Applies the migrations that are missing, in order, each in a transaction of its own; gives their names.
 * One that was applied and changed since is refused: write a new one instead. So is a server without the pgvector that is
 * needed, before anything is done.
 */
export const migrate = async (target: MigrationTarget): Promise<string[]> => {
  await target.run(`CREATE SCHEMA IF NOT EXISTS mason;
    SET search_path = mason, public;
    CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`)
  const applied = new Map(
    (await target.query('SELECT name, checksum FROM migrations')).map((row) => [row.name, row.checksum]),
  )
  const done: string[] = []
  const all = await readMigrations()
  if (all.some(({ name }) => !applied.has(name))) await checkVector(target)
  for (const { name, text, checksum } of all) {
    const known = applied.get(name)
    if (known === checksum) continue
    if (known !== undefined)
      throw new MasonError('invalid_settings', `migration ${name} was applied and has been changed since`, {
        remedy: `restore migrations/${name} as it was and put the change into a new file`,
      })
    await target
      .run(
        `BEGIN; ${text}; INSERT INTO migrations (name, checksum) VALUES ('${name}', '${checksum}'); COMMIT`,
      )
      .catch(async (error: unknown) => {
        await target.run('ROLLBACK')
        throw (await isVectorRefused(target, text, error)) ? vectorRefused(error) : error
      })
    done.push(name)
  }
  return done
}

const readVector = async (target: MigrationTarget): Promise<VectorFacts> => {
  const [facts] = await target.query(`SELECT ${vectorColumns}`)
  return facts as VectorFacts
}

const checkVector = async (target: MigrationTarget): Promise<void> => {
  const fault = vectorFault(await readVector(target))
  if (fault) throw new MasonError('invalid_settings', fault.text, { remedy: fault.remedy })
}

const insufficientPrivilege = '42501'

/** Who may switch the extension on differs from server to server, so it is tried. */
const isVectorRefused = async (target: MigrationTarget, script: string, error: unknown): Promise<boolean> =>
  (error as { code?: unknown }).code === insufficientPrivilege &&
  script.includes('CREATE EXTENSION') &&
  (await readVector(target)).vector === null

const vectorRefused = (cause: unknown): MasonError =>
  new MasonError('invalid_settings', 'this user of the database may not switch pgvector on', {
    remedy: `${switchOn}, then again`,
    cause,
  })
