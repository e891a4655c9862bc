import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { PGlite } from '@electric-sql/pglite'
import type { Log } from '../../state/ports/log.ts'
import type { Sql, SqlValues } from '../../state/ports/sql.ts'
import { silentLog } from '../lib/silent-log.ts'
import { type Database, runStatements, type ScopeOptions, toBusinessScopeSql } from './database.ts'
import { translateErrors } from './database-errors.ts'
import { lockFolder } from './folder-lock.ts'
import type { Migration } from './migration.ts'
import { createBinding } from './named-parameters.ts'
import { keepStatements, migratePglite, startPglite } from './pglite.ts'
import { readSeedImage, SeededMemoryFS, unpackSeedImage } from './seed-image.ts'

/** The embedded database with its PGlite instance. */
export type EmbeddedDatabase = Database & { kind: 'embedded'; pglite: PGlite }

/**
 * Opens PGlite in `dataDir` (absent: in memory) under an exclusive lock; a new database starts as a copy of the seed
 * image. All callers share one session, so PGlite's own mutex orders statements and transactions. It does not fsync: it
 * survives a crash of the process, not of the machine.
 */
export const openEmbeddedDatabase = async (options: {
  dataDir?: string
  loadDataDir?: Uint8Array | undefined
  migrations?: readonly Migration[] | undefined
  log?: Log
}): Promise<EmbeddedDatabase> => {
  const { dataDir, loadDataDir, migrations, log = silentLog } = options
  const unlock = dataDir ? await lockFolder(dataDir) : async () => {}
  try {
    const pglite = dataDir
      ? await startInFolder(join(dataDir, 'pgdata'), log)
      : await startPglite({ fs: new SeededMemoryFS(loadDataDir ?? (await readSeedImage(log))) })
    await prepareSession(pglite, migrations)
    return toDatabase(pglite, unlock)
  } catch (error) {
    await unlock()
    throw error
  }
}

const startInFolder = async (folder: string, log: Log): Promise<PGlite> => {
  if (!existsSync(join(folder, 'PG_VERSION'))) unpackSeedImage(await readSeedImage(log), folder)
  return startPglite({ dataDir: folder })
}

const prepareSession = async (pglite: PGlite, migrations?: readonly Migration[]): Promise<void> => {
  await migratePglite(pglite, migrations)
  // of earlier versions a worker could create tables, for a queue
  await pglite.exec(`
    REVOKE CREATE ON DATABASE ${(await pglite.query<{ name: string }>('SELECT quote_ident(current_database()) AS name')).rows[0]?.name} FROM mason_worker;
    GRANT pg_checkpoint TO mason_worker;
    SET ROLE mason_worker`)
}

/** PGlite runs on this thread and returns without yielding, so a busy run would starve timers and sockets. */
const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const toDatabase = (pglite: PGlite, unlock: () => Promise<void>): EmbeddedDatabase => {
  const bind = createBinding()
  const toSql = (target: Pick<PGlite, 'query'>): Sql => ({
    async query<Row>(text: string, values?: SqlValues) {
      const statement = bind(text, values)
      const { rows } = await translateErrors(target.query<Row>(statement.text, statement.values))
      return { rows }
    },
  })
  const transact = <T>(work: (sql: Sql) => Promise<T>, scope?: ScopeOptions, begin = ''): Promise<T> =>
    translateErrors(
      pglite.transaction(async (tx) => {
        if (begin) await tx.exec(begin)
        return runStatements(toSql(tx as unknown as PGlite), work, scope)
      }),
    )
  const direct = toSql(pglite)
  keepStatements(pglite)
  const checkpoints = startCheckpoints(pglite)
  return {
    kind: 'embedded',
    pglite,
    async query<Row>(text: string, values?: SqlValues) {
      const result = await direct.query<Row>(text, values)
      await yieldToEventLoop()
      return result
    },
    transaction: (work, scope) => transact(work, scope),
    asBusiness: (businessId, work, scope) =>
      transact(work, scope, toBusinessScopeSql(businessId, 'mason_api', scope)),
    async close() {
      clearInterval(checkpoints)
      if (!pglite.closed) await pglite.close()
      await unlock()
    },
  }
}

/**
 * PGlite has no background checkpointer: its write-ahead log would grow until it is closed, and the start after a crash
 * would replay all of it. Nor does it analyze tables, so plans are forgotten, to be made anew as they grow. Only a closed or broken
 * database fails here, and its users report that.
 */
const startCheckpoints = (pglite: PGlite): NodeJS.Timeout => {
  const maintain = () => checkpointLongLog(pglite).then(() => pglite.exec('DISCARD PLANS'))
  return setInterval(() => void maintain().catch(() => {}), 30_000).unref()
}

/** Writes a checkpoint when `bytes` were logged since the last one, which removes the log before it. */
export const checkpointLongLog = async (pglite: PGlite, bytes = 64 * 1024 * 1024): Promise<void> => {
  const { rows } = await pglite.query<{ logged: number }>(
    'SELECT (pg_current_wal_lsn() - redo_lsn)::int8 AS logged FROM pg_control_checkpoint()',
  )
  if (Number(rows[0]?.logged ?? 0) >= bytes) await pglite.exec('CHECKPOINT')
}
