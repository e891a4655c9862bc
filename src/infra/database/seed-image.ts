import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { MemoryFS, PGlite } from '@electric-sql/pglite'
import { toSettingsError } from '../../state/errors.ts'
import type { Log } from '../../state/ports/log.ts'
import { sha256 } from '../lib/ids.ts'
import { toPackagePath } from '../lib/package-path.ts'
import type { Migration } from './migration.ts'
import { readMigrations } from './migrations.ts'
import { initDbStartParams, migratePglite, startPglite } from './pglite.ts'

/** An embedded server never creates databases, and its templates are two thirds of its files. */
const trimStatements = ['template0', 'template1'].flatMap((name) => [
  `ALTER DATABASE ${name} IS_TEMPLATE false`,
  `DROP DATABASE ${name}`,
])

/** The path of the seed image. @public scripts/make-dump.mjs writes it there */
export const findSeedImagePath = async (): Promise<string> =>
  toPackagePath('dist', await toSeedImageName(await readMigrations()))

/** A file name with a hash of everything that the image is made from, so that an outdated image is never used. */
export const toSeedImageName = async (migrations: readonly Migration[]): Promise<string> => {
  const versions = await Promise.all(
    ['@electric-sql/pglite', '@electric-sql/pglite-pgvector'].map(readPackageVersion),
  )
  const parts = JSON.stringify([migrations, initDbStartParams, trimStatements, versions])
  return `database-${sha256(parts).slice(0, 16)}.tar.gz`
}

const readPackageVersion = async (name: string): Promise<string> => {
  const entry = createRequire(import.meta.url).resolve(name)
  const text = await readFile(join(dirname(entry), '..', 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** Runs initdb and all migrations, which takes seconds. Returns the migrated, empty database as a gzipped tar. */
const createSeedImage = async (): Promise<Buffer> => {
  const pglite = await startPglite({})
  try {
    await migratePglite(pglite)
    // one by one: a database cannot be dropped in a transaction
    for (const statement of trimStatements) await pglite.exec(statement)
    return await dumpDatabase(pglite)
  } finally {
    await pglite.close()
  }
}

/** A whole database as a gzipped tar. @public scripts/make-dump.mjs */
export const dumpDatabase = async (pglite: PGlite): Promise<Buffer> => {
  await pglite.exec('RESET ROLE; CHECKPOINT')
  return Buffer.from(await (await pglite.dumpDataDir('gzip')).arrayBuffer())
}

const unzip = promisify(gunzip)

/** A migrated database without runs as a tar: the seed image of the build, else one created now. gzip's checksum detects a damaged file. */
export const readSeedImage = async (log: Log, path?: string): Promise<Buffer> => {
  try {
    return await unzip(await readFile(path ?? (await findSeedImagePath())))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      log.warn(
        { error: String(error), remedy: 'run npm run build' },
        'the seed image of the database is unusable; creating a new one, which takes seconds',
      )
    return unzip(await createSeedImage())
  }
}

/** A file system in memory that begins with the files of an image; PGlite's own loading of a tar copies each several times. */
export class SeededMemoryFS extends MemoryFS {
  private tar: Uint8Array | null

  constructor(tar: Uint8Array) {
    super()
    this.tar = tar
  }

  override async initialSyncFs(): Promise<void> {
    const files = this.pg?.Module.FS
    // one copy for all files, which are written in place
    for (const { path, content } of readTarEntries(Buffer.from(this.tar ?? [])))
      if (content) files?.writeFile(PGlite.paths.PGDATA + path, content, { canOwn: true })
      else files?.mkdirTree(PGlite.paths.PGDATA + path)
    // PGlite keeps this object until it closes
    this.tar = null
  }
}

/**
 * Unpacks an image into `folder`, all or nothing: a process killed halfway leaves no partial database. The caller holds the
 * lock of the folder.
 */
export const unpackSeedImage = (tar: Buffer, folder: string): void => {
  const draft = `${folder}.new`
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { mode: 0o700 })
  for (const { path, content } of readTarEntries(tar))
    if (content) writeFileSync(join(draft, path), content, { mode: 0o600 })
    else mkdirSync(join(draft, path), { recursive: true, mode: 0o700 })
  try {
    renameSync(draft, folder)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    throw toSettingsError(
      `${folder} has files, but no database`,
      `move it away to start with a new database, or set DATA_DIR to another folder than ${dirname(folder)}`,
      error,
    )
  }
}

const tarBlockBytes = 512

/** The entries of a plain tar as PGlite writes it: files, and folders (content null) before their files. */
function* readTarEntries(tar: Buffer): Generator<{ path: string; content: Buffer | null }> {
  const textAt = (start: number, length: number): string =>
    tar.toString('latin1', start, start + length).split('\0', 1)[0] ?? ''
  for (let at = 0; at + tarBlockBytes <= tar.length && tar[at] !== 0; ) {
    const size = Number.parseInt(textAt(at + 124, 12), 8)
    const content = at + tarBlockBytes
    const isFolder = textAt(at + 156, 1) === '5'
    yield { path: textAt(at, 100), content: isFolder ? null : tar.subarray(content, content + size) }
    at = content + Math.ceil(size / tarBlockBytes) * tarBlockBytes
  }
}
