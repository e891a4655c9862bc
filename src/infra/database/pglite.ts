import { PGlite, type PGliteOptions, types } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { migrate } from './migrate.ts'

/** Postgres clears all its shared buffers at start: its usual 128 MB cost 100 ms and 110 MB more and save few reads. */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=32MB']

/** A PGlite as Mason uses it, as its superuser and as yet without its schema. */
export const startPglite = (options: Pick<PGliteOptions, 'dataDir' | 'loadDataDir'>): Promise<PGlite> =>
  PGlite.create({ ...options, startParams, extensions: { vector }, parsers: { [types.INT8]: Number } })

/** Applies the migrations that are missing. */
export const migratePglite = async (pglite: PGlite): Promise<void> => {
  await pglite.exec('SET search_path = mason, public')
  await migrate({
    run: async (text) => void (await pglite.exec(text)),
    query: async (text, values) =>
      (await pglite.query<Record<string, unknown>>(text, values as unknown[])).rows,
  })
}
