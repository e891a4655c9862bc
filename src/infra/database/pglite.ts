import { setFlagsFromString } from 'node:v8'
import { PGlite, type PGliteOptions, types } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import type { Migration, MigrationTarget } from './migration.ts'
import { applyMigrations } from './migrations.ts'

/**
 * Postgres clears its shared buffers at start, byte by byte: 32 MB cost 80 ms, the default of 128 MB 300 ms. Reading a page
 * again costs microseconds, since the system has it in memory.
 */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=8MB']

/** Of a new database: the log is made of files of 1 MB. Two of the default of 16 MB are two thirds of an empty database. */
export const initDbStartParams = ['--wal-segsize=1']

/**
 * Starts PGlite as Mason uses it, as the superuser and without migrating it. V8 checks a function when it is first called, and
 * optimizes only what runs long: optimizing more costs a command of a few seconds a third of its processor time.
 */
export const startPglite = (options: Pick<PGliteOptions, 'dataDir' | 'fs'>): Promise<PGlite> => {
  setFlagsFromString('--wasm-tiering-budget=2000000000 --wasm-lazy-validation')
  const parsers = { [types.INT8]: Number }
  return PGlite.create({ ...options, initDbStartParams, startParams, extensions: { vector }, parsers })
}

/**
 * Names the text of each statement for the session, so that it is parsed once and planned a few times, as in a pool: half of the
 * processor time of a run went there. PGlite's own `query` parses each time, so its messages are changed on their way.
 */
export const keepStatements = (pglite: PGlite): void => {
  const send = pglite.execProtocolStream.bind(pglite)
  const names = new Map<string, string>()
  let name = ''
  pglite.execProtocolStream = async (message, options) => {
    const kind = String.fromCharCode(message[0] ?? 0, message[5] ?? 0)
    const place = { 'P\0': 5, DS: 6, 'B\0': 6 }[kind]
    if (place === undefined) return send(message, options)
    const text = kind === 'P\0' ? Buffer.from(message.subarray(6)).toString('latin1') : null
    // beyond these, as of texts with values in them, each is parsed again
    if (text !== null) name = names.get(text) ?? (names.size < 1000 ? `mason_${names.size}` : '')
    if (text !== null && names.has(text)) return []
    const named = Buffer.concat([message.subarray(0, place), Buffer.from(name), message.subarray(place)])
    named.writeInt32BE(named.length - 1, 1)
    const replies = await send(named, options)
    if (text !== null && name !== '') names.set(text, name)
    return replies
  }
}

/** Its connection, for migrations. */
export const toMigrationTarget = (pglite: PGlite): MigrationTarget => ({
  run: async (text) => void (await pglite.exec(text)),
  query: async (text, values) =>
    (await pglite.query<Record<string, unknown>>(text, values as unknown[])).rows,
})

/** Applies missing migrations: those of this package, or all of these. */
export const migratePglite = async (pglite: PGlite, migrations?: readonly Migration[]): Promise<void> => {
  await pglite.exec('SET search_path = mason, public')
  await applyMigrations(toMigrationTarget(pglite), migrations)
}
