import type { Sql } from '../../state/ports.ts'
import { holdStored, keepBlob } from '../sessions/blobs.ts'
import type { Found } from './child/protocol.ts'
import { readPrepared, writePrepared } from './prepared-rows.ts'

/** Raised with every change that finds something else in the same bytes. */
const version = 2

/** What was found in a file, its text and entries kept as blobs. */
export type Kept = Omit<Found, 'document' | 'unpacked'> & {
  document?: Omit<NonNullable<Found['document']>, 'text'> & { text: { blob: string; bytes: number } | null }
  unpacked?: { name: string; blob: string }[]
  /** False: nothing can be read of it. */
  readable: boolean
  /** Another try may go well. */
  passing?: boolean
}

/** Same bytes, same claim of what they are, same business: what was found before, or null. The run's session holds it. */
export const createPreparedCache = (sql: Sql, { tenant, run_id }: { tenant: string; run_id: string }) => ({
  async find(sha256: string, openedAs: string): Promise<Kept | null> {
    const row = await readPrepared<Kept>(sql, tenant, sha256, `${version}:${openedAs}`)
    if (!row || row.blobs.length === 0) return row?.found ?? null
    const there = await holdStored(sql, { tenant, run_id }, row.blobs)
    return there === new Set(row.blobs).size ? row.found : null
  },
  async keep(sha256: string, openedAs: string, kept: Kept): Promise<void> {
    const blobs = [kept.document?.text?.blob, ...(kept.unpacked ?? []).map(({ blob }) => blob)].filter(
      (blob) => blob !== undefined,
    )
    const found = JSON.stringify(kept)
    // of a mapped file no byte is ours: what was found is a blob itself then, and goes with the last session that holds it
    if (blobs.length === 0 && (await holdStored(sql, { tenant, run_id }, [sha256])) === 0)
      blobs.push(await keepBlob(sql, { tenant, run_id }, Buffer.from(found)))
    await writePrepared(sql, tenant, sha256, `${version}:${openedAs}`, { found, blobs })
  },
})

export type PreparedCache = ReturnType<typeof createPreparedCache>
