import { queryOne, type RunKey } from '../infra/database/database.ts'
import { imageDescriptionSchema } from '../state/files/image-description.ts'
import type { Files } from '../state/ports/files.ts'
import type { Sql } from '../state/ports/sql.ts'
import { holdStoredBlobs, storeRunBlob } from './blobs/blobs.ts'
import type { FileContents } from './protocol/child-protocol.ts'

/** Raised with every change of the reader that yields other contents for the same bytes. */
const contentsVersion = 6
/** Raised with every change of the question that vision models get about an image. */
const visionVersion = 'vision:1'

/** The contents of a file, with its text and its entries stored as blobs. */
export type PreparedContents = Omit<FileContents, 'document' | 'unpacked'> & {
  document?: Omit<NonNullable<FileContents['document']>, 'text'> & {
    text: { blob: string; bytes: number } | null
  }
  unpacked?: { name: string; blob: string }[]
  /** False: the file cannot be read; the notes say why. */
  readable: boolean
  /** A later attempt may succeed. */
  isTransient?: boolean
}

/** The session of the run holds what is read or stored. Contents by business, hash of the bytes, and the name and type they were opened under. */
export const createPreparedCache = (sql: Sql, run: RunKey) => ({
  /** The contents that an earlier run stored; null: none, or their blobs are gone. */
  async find(sha256: string, openedAs: string): Promise<PreparedContents | null> {
    const row = await openPreparedRows(sql, run).read<PreparedContents>(
      sha256,
      `${contentsVersion}:${openedAs}`,
    )
    if (!row || row.blobs.length === 0) return row?.found ?? null
    return (await holdStoredBlobs(sql, run, row.blobs)) === new Set(row.blobs).size ? row.found : null
  },
  async save(sha256: string, openedAs: string, contents: PreparedContents): Promise<void> {
    const blobs = [
      contents.document?.text?.blob,
      ...(contents.unpacked ?? []).map(({ blob }) => blob),
    ].filter((blob) => blob !== undefined)
    const json = JSON.stringify(contents)
    // no byte of a mapped file is stored: then its contents are a blob themselves, deleted with the last session that holds it
    if (blobs.length === 0 && (await holdStoredBlobs(sql, run, [sha256])) === 0)
      blobs.push(await storeRunBlob(sql, run, Buffer.from(json)))
    await openPreparedRows(sql, run).write(sha256, `${contentsVersion}:${openedAs}`, json, blobs)
  },
})

/** See `createPreparedCache`. */
export type PreparedCache = ReturnType<typeof createPreparedCache>

/**
 * Descriptions of images, in the same rows: a business asks a model once about an image. The bytes of a mapped image are
 * not stored, so the description is a blob itself: it is deleted with the last session that holds it.
 */
export const createImageDescriptionCache = (sql: Sql, run: RunKey): Files['descriptions'] => ({
  async find(sha256) {
    const row = await openPreparedRows(sql, run).read(sha256, visionVersion)
    // a row without a blob would outlive its sessions: it counts as absent
    if (!row || (await holdStoredBlobs(sql, run, row.blobs)) === 0) return null
    return imageDescriptionSchema.safeParse(row.found).data ?? null
  },
  async keep(sha256, description) {
    const json = JSON.stringify(description)
    const blob = await storeRunBlob(sql, run, Buffer.from(json))
    await openPreparedRows(sql, run).write(sha256, visionVersion, json, [blob])
  },
})

/** Rows of `prepared_files`: contents as JSON, and the blobs they need. */
const openPreparedRows = (sql: Sql, { tenant }: RunKey) => ({
  read: <Contents>(sha256: string, openedAs: string) =>
    queryOne<{ found: Contents; blobs: string[] }>(
      sql,
      'SELECT found, blobs FROM prepared_files WHERE tenant = $1 AND sha256 = $2 AND opened_as = $3',
      [tenant, sha256, openedAs],
    ),
  /** Replaces an earlier row. */
  async write(sha256: string, openedAs: string, found: string, blobs: readonly string[]): Promise<void> {
    await sql.query(
      `INSERT INTO prepared_files (tenant, sha256, opened_as, found, blobs) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (tenant, sha256, opened_as) DO UPDATE SET found = excluded.found, blobs = excluded.blobs`,
      [tenant, sha256, openedAs, found, blobs],
    )
  },
})
