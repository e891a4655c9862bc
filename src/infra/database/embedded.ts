import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { PGlite, types } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import type { Sql } from '../../state/ports.ts'
import { lockFolder } from './data-dir.ts'
import { businessScope, type Database } from './database.ts'
import { migrate } from './migrate.ts'

/** The embedded database, with the instance that the queue shares. */
export type EmbeddedDatabase = Database & { kind: 'embedded'; pglite: PGlite }

/**
 * Opens PGlite in `dataDir` (absent: in memory) under an exclusive lock. One session serves everybody, so
 * PGlite's own mutex orders statements and transactions. It does not fsync: it survives a crash of the
 * process, not of the machine.
 */
export const openEmbedded = async (options: {
  dataDir?: string
  loadDataDir?: Blob | File
}): Promise<EmbeddedDatabase> => {
  const unlock = options.dataDir ? await lockData(options.dataDir) : async () => {}
  try {
    const pglite = await PGlite.create({
      ...(options.dataDir && { dataDir: join(options.dataDir, 'pgdata') }),
      ...(options.loadDataDir && { loadDataDir: options.loadDataDir }),
      extensions: { vector },
      parsers: { [types.INT8]: Number },
    })
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

const prepare = async (pglite: PGlite): Promise<void> => {
  await pglite.exec('SET search_path = mason, public')
  await migrate({
    run: async (text) => void (await pglite.exec(text)),
    query: async (text, values) =>
      (await pglite.query<Record<string, unknown>>(text, values as unknown[])).rows,
  })
  // The queue keeps its tables in the same database. A lease that is left belongs to a process that is gone.
  await pglite.exec(`
    GRANT CREATE ON DATABASE ${(await pglite.query<{ name: string }>('SELECT quote_ident(current_database()) AS name')).rows[0]?.name} TO mason_worker;
    SET ROLE mason_worker;
    UPDATE runs SET lease_until = clock_timestamp() WHERE status = 'running'`)
}

/** PGlite works on this thread and answers without leaving it: a busy run would keep timers and sockets waiting. */
const otherWork = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const wrap = (pglite: PGlite, unlock: () => Promise<void>): EmbeddedDatabase => {
  const sqlOf = (target: Pick<PGlite, 'query'>): Sql => ({
    async query<Row>(text: string, values: readonly unknown[] = []) {
      const { rows } = await target.query<Row>(text, values as unknown[])
      return { rows }
    },
  })
  const direct = sqlOf(pglite)
  return {
    kind: 'embedded',
    pglite,
    async query<Row>(text: string, values?: readonly unknown[]) {
      const result = await direct.query<Row>(text, values)
      await otherWork()
      return result
    },
    transaction: (work) => pglite.transaction((tx) => work(sqlOf(tx as unknown as PGlite))) as Promise<never>,
    asBusiness: (businessId, work) =>
      pglite.transaction(async (tx) => {
        await tx.exec(businessScope(businessId))
        return work(sqlOf(tx as unknown as PGlite))
      }) as Promise<never>,
    async close() {
      if (!pglite.closed) await pglite.close()
      await unlock()
    },
  }
}
