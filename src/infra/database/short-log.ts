import type { PGlite } from '@electric-sql/pglite'

const longBytes = 64 * 1024 * 1024
const lookEveryMs = 30_000

/**
 * PGlite has no process that writes checkpoints: without one its write-ahead log grows until it is closed, and the
 * start after a crash goes through all of it. Gives the function that ends the looking.
 */
export const keepLogShort = (pglite: PGlite): (() => void) => {
  const look = (): void => {
    // only a closed or broken database fails here, and that is told by whoever uses it
    shortenLog(pglite).catch(() => {})
  }
  const timer = setInterval(look, lookEveryMs).unref()
  return () => clearInterval(timer)
}

/** Writes a checkpoint where `bytes` were logged since the last one: the log before it goes. */
export const shortenLog = async (pglite: PGlite, bytes = longBytes): Promise<void> => {
  const { rows } = await pglite.query<{ logged: number }>(
    'SELECT (pg_current_wal_lsn() - redo_lsn)::int8 AS logged FROM pg_control_checkpoint()',
  )
  if (Number(rows[0]?.logged ?? 0) >= bytes) await pglite.exec('CHECKPOINT')
}
