import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { PGlite } from '@electric-sql/pglite'
import type { Log } from '../../state/ports.ts'
import { packagePath } from '../package-path.ts'
import { type Migration, readMigrations } from './migrate.ts'
import { migratePglite, startPglite } from './pglite.ts'

/** Nobody makes databases in an embedded one, and its templates are two thirds of its files. */
const trimming = ['template0', 'template1'].flatMap((name) => [
  `ALTER DATABASE ${name} IS_TEMPLATE false`,
  `DROP DATABASE ${name}`,
])

/** Where the build puts the dump. @public scripts/make-dump.mjs writes it there */
export const dumpPath = async (): Promise<string> =>
  packagePath('dist', await dumpName(await readMigrations()))

/** Says all that a dump is made from, so that one of something else is never found. */
export const dumpName = async (migrations: readonly Migration[]): Promise<string> => {
  const versions = await Promise.all(['@electric-sql/pglite', '@electric-sql/pglite-pgvector'].map(versionOf))
  const parts = JSON.stringify([migrations, trimming, versions])
  return `database-${createHash('sha256').update(parts).digest('hex').slice(0, 16)}.tar.gz`
}

const versionOf = async (name: string): Promise<string> => {
  const entry = createRequire(import.meta.url).resolve(name)
  const text = await readFile(join(dirname(entry), '..', 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** The long way: initdb and migrations, which takes seconds. Gives the migrated, empty database as a gzipped tar. */
const makeDump = async (): Promise<Buffer> => {
  const pglite = await startPglite({})
  try {
    await migratePglite(pglite)
    // each by itself: a database cannot be dropped in a transaction
    for (const statement of trimming) await pglite.exec(statement)
    return await dumpOf(pglite)
  } finally {
    await pglite.close()
  }
}

/** A whole database as a gzipped tar. @public scripts/make-dump.mjs */
export const dumpOf = async (pglite: PGlite): Promise<Buffer> => {
  await pglite.exec('RESET ROLE; CHECKPOINT')
  return Buffer.from(await (await pglite.dumpDataDir('gzip')).arrayBuffer())
}

const unzip = promisify(gunzip)

/** A migrated database of no run as a tar: the one that was built, with its head start, else one made now. gzip's checksum finds a torn one. */
export const readDump = async (log: Log, path?: string): Promise<Buffer> => {
  try {
    return await unzip(await readFile(path ?? (await dumpPath())))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      log.warn(
        { error: String(error), remedy: 'build anew: npm run build' },
        'the built database is unusable; a new one is made, which takes seconds',
      )
    return unzip(await makeDump())
  }
}
