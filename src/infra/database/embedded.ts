import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { PGlite } from '@electric-sql/pglite'
import type { Log, Sql } from '../../state/ports.ts'
import { silentLog } from '../silent-log.ts'
import { lockFolder } from './data-dir.ts'
import { businessScope, type Database } from './database.ts'
import { readDump } from './dump.ts'
import { databaseFault } from './faults.ts'
import { migratePglite, startPglite } from './pglite.ts'
import { keepLogShort } from './short-log.ts'
import { unpackDump } from './unpack.ts'

/** The embedded database, with the instance that the queue shares. */
export type EmbeddedDatabase = Database & { kind: 'embedded'; pglite: PGlite }

/**
 * Opens PGlite in `dataDir` (absent: in memory) under an exclusive lock; a new one begins as a copy of the built
 * database. One session serves everybody, so PGlite's own mutex orders statements and transactions. It does not fsync:
 * it survives a crash of the process, not of the machine.
 */
export const openEmbedded = async (options: {
  dataDir?: string
  loadDataDir?: Blob | File
  log?: Log
}): Promise<EmbeddedDatabase> => {
  const { dataDir, loadDataDir, log = silentLog } = options
  const unlock = dataDir ? await lockData(dataDir) : async () => {}
  try {
    const pglite = dataDir
      ? await startInFolder(join(dataDir, 'pgdata'), log)
      : await startPglite({ loadDataDir: loadDataDir ?? new Blob([await readDump(log)]) })
    await prepare(pglite)
    return wrap(pglite, unlock)
  } catch (error) {
    await unlock()
    throw error
  }
}

const lockData = async (dataDir: string): Promise<() => Promise<void>> => {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  return lockFolder(dataDir)
}

const startInFolder = async (folder: string, log: Log): Promise<PGlite> => {
  if (!existsSync(join(folder, 'PG_VERSION'))) unpackDump(await readDump(log), folder)
  return startPglite({ dataDir: folder })
}

const prepare = async (pglite: PGlite): Promise<void> => {
  await migratePglite(pglite)
  // The queue keeps its tables in the same database. A lease that is left belongs to a process that is gone.
  await pglite.exec(`
    GRANT CREATE ON DATABASE ${(await pglite.query<{ name: string }>('SELECT quote_ident(current_database()) AS name')).rows[0]?.name} TO mason_worker;
    GRANT pg_checkpoint TO mason_worker;
    SET ROLE mason_worker;
    UPDATE runs SET lease_until = clock_timestamp() WHERE status = 'running'`)
}

/** PGlite works on this thread and answers without leaving it: a busy run would keep timers and sockets waiting. */
const otherWork = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Tells faults that pass by themselves, such as a full disk, from all others. */
const passing = <T>(answer: Promise<T>): Promise<T> =>
  answer.catch((error: unknown) => {
    throw databaseFault(error)
  })

const wrap = (pglite: PGlite, unlock: () => Promise<void>): EmbeddedDatabase => {
  const sqlOf = (target: Pick<PGlite, 'query'>): Sql => ({
    async query<Row>(text: string, values: readonly unknown[] = []) {
      const { rows } = await passing(target.query<Row>(text, values as unknown[]))
      return { rows }
    },
  })
  const direct = sqlOf(pglite)
  const stopLooking = keepLogShort(pglite)
  return {
    kind: 'embedded',
    pglite,
    async query<Row>(text: string, values?: readonly unknown[]) {
      const result = await direct.query<Row>(text, values)
      await otherWork()
      return result
    },
    transaction: (work) =>
      passing(pglite.transaction((tx) => work(sqlOf(tx as unknown as PGlite)))) as Promise<never>,
    asBusiness: (businessId, work) =>
      passing(
        pglite.transaction(async (tx) => {
          await tx.exec(businessScope(businessId))
          return work(sqlOf(tx as unknown as PGlite))
        }),
      ) as Promise<never>,
    async close() {
      stopLooking()
      if (!pglite.closed) await pglite.close()
      await unlock()
    },
  }
}
