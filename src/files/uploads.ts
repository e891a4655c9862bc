import { createHash } from 'node:crypto'
import { type Database, hasRow, queryOne } from '../infra/database/database.ts'
import { type Dated, toIsoTimes } from '../infra/database/row-times.ts'
import { newFileId } from '../infra/lib/ids.ts'
import { MasonError } from '../state/errors.ts'
import type { Sql } from '../state/ports/sql.ts'
import { createFieldsError } from '../state/resource-schema.ts'
import type { RunRequest } from '../state/run-request.ts'
import { maxUploadBytes, type UploadedFile } from '../state/uploaded-file.ts'
import { partBytes } from './blobs/blob-content.ts'
import { deleteFreeBlobs } from './blobs/blobs.ts'

/** A file to receive. `length`: null where the end of its bytes says it. */
export type UploadInput = { name: string; type: string; length: number | null; sha256: string | null }

/** A file that a run names by its id. */
export type NamedFile = { name: string; type: string; sha256: string }
/** Those of one request, by id. */
export type NamedFiles = ReadonlyMap<string, NamedFile>

type FileRow = Dated<Omit<UploadedFile, 'id' | 'bytes' | 'length'>> & {
  file_id: string
  received: string | number
  length: string | number | null
  expected_sha256: string | null
}

const columns = 'file_id, name, type, sha256, received, length, expected_sha256, created_at'

const toUploadedFile = ({
  file_id,
  received,
  length,
  expected_sha256: _,
  ...row
}: FileRow): UploadedFile => ({
  id: file_id,
  ...toIsoTimes(row),
  bytes: Number(received),
  length: length === null ? null : Number(length),
})

/**
 * The uploaded files of a business. Bytes arrive in order and are stored in parts of 1 MiB, each in a commit of its own, so
 * that an upload goes on after a lost connection or process. `checkStorage` throws where a business may not store so many
 * bytes more.
 */
export const createUploads = (
  database: Database,
  businessId: string,
  checkStorage: (bytes: number) => Promise<void>,
) => {
  const query = <Row>(text: string, values: readonly unknown[]): Promise<Row | null> =>
    database.asBusiness(businessId, (sql) => queryOne<Row>(sql, text, [businessId, ...values]), {
      pipelined: true,
    })

  const findRow = (sql: Sql, id: string): Promise<FileRow | null> =>
    queryOne(sql, `SELECT ${columns} FROM files WHERE tenant = $1 AND file_id = $2`, [businessId, id])

  const readRow = (id: string): Promise<FileRow | null> =>
    database.asBusiness(businessId, (sql) => findRow(sql, id), { pipelined: true })

  const need = async (id: string): Promise<FileRow> => (await readRow(id)) ?? throwNoSuchFile(id)

  /** Also on the way to an error; parts and all. */
  const remove = (id: string): Promise<boolean> =>
    database.asBusiness(businessId, async (sql) => {
      const file = await findRow(sql, id)
      if (!file) return false
      const drop = () => sql.query('DELETE FROM files WHERE tenant = $1 AND file_id = $2', [businessId, id])
      if (file.sha256 === null) await drop()
      else await deleteFreeBlobs(sql, businessId, [file.sha256], drop)
      return true
    })

  /** Appends where the file has so many bytes now and is incomplete; false: another request was first. */
  const appendPart = (id: string, at: number, bytes: Uint8Array): Promise<boolean> =>
    database.asBusiness(
      businessId,
      (sql) =>
        hasRow(
          sql,
          `WITH moved AS (
             UPDATE files SET received = received + octet_length($5::bytea), touched_at = clock_timestamp()
             WHERE tenant = $1 AND file_id = $2 AND received = $3 AND sha256 IS NULL RETURNING file_id
           ) INSERT INTO file_parts AS p (tenant, file_id, part, bytes) SELECT $1, file_id, $4, $5 FROM moved
             ON CONFLICT (tenant, file_id, part) DO UPDATE SET bytes = p.bytes || EXCLUDED.bytes RETURNING part`,
          [businessId, id, at, Math.floor(at / partBytes), bytes],
        ),
      { pipelined: true },
    )

  /** `counted`: how many bytes are counted as storage already. */
  const append = async (
    row: FileRow,
    chunks: AsyncIterable<Uint8Array>,
    counted = Number(row.length ?? 0),
  ): Promise<FileRow> => {
    const { file_id: id } = row
    const max = row.length === null ? maxUploadBytes : Number(row.length)
    let at = Number(row.received)
    for await (const part of toParts(chunks, at)) {
      if (at + part.length > max) throw row.length === null ? tooLarge() : beyondLength(max)
      if (at + part.length > counted) await checkStorage(at + part.length - Math.max(at, counted))
      if (!(await appendPart(id, at, part))) throw toOffsetError(await need(id))
      at += part.length
    }
    return { ...row, received: at }
  }

  const hashParts = async (id: string, bytes: number): Promise<string> => {
    const hash = createHash('sha256')
    for (let part = 0; part * partBytes < bytes; part++) {
      const row = await query<{ bytes: Uint8Array }>(
        'SELECT bytes FROM file_parts WHERE tenant = $1 AND file_id = $2 AND part = $3',
        [id, part],
      )
      if (!row) throwNoSuchFile(id)
      else hash.update(row.bytes)
    }
    return hash.digest('hex')
  }

  /**
   * Makes a file of which all bytes are there a blob, once. `isKnown`: the business has these bytes already; then its own
   * parts go, and with `reuse` an equal file takes its place.
   */
  const complete = async (
    row: FileRow,
    { reuse = false } = {},
  ): Promise<{ file: UploadedFile; isKnown: boolean }> => {
    const bytes = Number(row.received)
    const hash = await hashParts(row.file_id, bytes)
    if (row.expected_sha256 !== null && row.expected_sha256 !== hash) {
      await remove(row.file_id)
      throw wrongHash(hash)
    }
    return database.asBusiness(businessId, async (sql) => {
      const key = [businessId, row.file_id]
      const done = await queryOne<FileRow>(
        sql,
        `UPDATE files SET sha256 = $3, length = received, touched_at = clock_timestamp()
         WHERE tenant = $1 AND file_id = $2 AND sha256 IS NULL AND received = $4 RETURNING ${columns}`,
        [...key, hash, bytes],
      )
      if (!done) {
        const other = await findRow(sql, row.file_id)
        return { file: toUploadedFile(other ?? throwNoSuchFile(row.file_id)), isKnown: true }
      }
      const blob = await queryOne<{ file_id: string | null }>(
        sql,
        `INSERT INTO blobs (tenant, sha256, file_id, size) VALUES ($1, $3, $2, $4)
         ON CONFLICT (tenant, sha256) DO UPDATE SET created_at = clock_timestamp() RETURNING file_id`,
        [...key, hash, bytes],
      )
      const isKnown = blob?.file_id !== row.file_id
      if (isKnown) await sql.query('DELETE FROM file_parts WHERE tenant = $1 AND file_id = $2', key)
      const equal = isKnown && reuse ? await renewEqual(sql, businessId, done) : null
      if (equal) await sql.query('DELETE FROM files WHERE tenant = $1 AND file_id = $2', key)
      return { file: toUploadedFile(equal ?? done), isKnown }
    })
  }

  /** A file of which all bytes are there is complete, also where its last request ended before it could say so. */
  const settle = async (row: FileRow): Promise<UploadedFile> =>
    row.sha256 === null && row.length !== null && Number(row.received) === Number(row.length)
      ? (await complete(row)).file
      : toUploadedFile(row)

  const create = async (
    { name, type, length, sha256 }: UploadInput,
    announced = length ?? 0,
  ): Promise<FileRow> => {
    if (announced > maxUploadBytes) throw tooLarge()
    await checkStorage(announced)
    const row = await query<FileRow>(
      `INSERT INTO files (tenant, file_id, name, type, length, expected_sha256) VALUES ($1, $2, $3, $4, $5, $6)
       RETURNING ${columns}`,
      [newFileId(), name, type, length, sha256],
    )
    return row as FileRow
  }

  return {
    /**
     * Receives a file whose bytes end with `chunks`; `announced`: how many its sender says there are, or 0. Nothing is left of
     * one that breaks off. Throws `payload_too_large`, `invalid_request`, `quota_exceeded`, before the first byte where it can.
     */
    async receive(
      input: Omit<UploadInput, 'length'>,
      chunks: AsyncIterable<Uint8Array>,
      announced = 0,
    ): Promise<{ file: UploadedFile; isKnown: boolean }> {
      const row = await create({ ...input, length: null }, announced)
      try {
        return await complete(await append(row, chunks, announced), { reuse: true })
      } catch (error) {
        await remove(row.file_id).catch(() => {})
        throw error
      }
    },
    /** Opens an upload that `append` continues. */
    async open(input: UploadInput & { length: number }): Promise<UploadedFile> {
      return toUploadedFile(await create(input))
    },
    /** Appends bytes at the end, which must be `offset`; throws `upload_offset` with the offset otherwise. What arrived of chunks that break off stays. */
    async append(id: string, offset: number, chunks: AsyncIterable<Uint8Array>): Promise<UploadedFile> {
      const row = await need(id)
      if (Number(row.received) !== offset || row.length === null) throw toOffsetError(row)
      return settle(await append(row, chunks))
    },
    /** Null: there is none of this business. */
    async get(id: string): Promise<UploadedFile | null> {
      const row = await readRow(id)
      return row && settle(row)
    },
    /** As `get`. Its age begins anew, so that a job which must wait for its admission does not lose it. */
    async renew(id: string): Promise<UploadedFile | null> {
      const row = await query<FileRow>(
        `UPDATE files SET touched_at = clock_timestamp() WHERE tenant = $1 AND file_id = $2 RETURNING ${columns}`,
        [id],
      )
      return row && settle(row)
    },
    /** Deletes the id, and the bytes unless a session or another upload has them. False: there is none. */
    remove,
  }
}

/** See `createUploads`. */
export type Uploads = ReturnType<typeof createUploads>

/** The files that a request names by their ids. Throws `invalid_request` for those that are unknown or incomplete. */
export const findNamedFiles = async (
  uploads: Pick<Uploads, 'renew'>,
  { files = [] }: Pick<RunRequest, 'files'>,
): Promise<NamedFiles> => {
  const named = new Map<string, NamedFile>()
  for (const [at, { file_id: id }] of files.entries()) {
    if (id === undefined || named.has(id)) continue
    const file = await uploads.renew(id)
    if (!file) throw invalidFile(at, `there is no uploaded file "${id}"; upload it by POST /v1/files`)
    const { sha256, bytes, length, name, type } = file
    if (sha256 === null)
      throw invalidFile(
        at,
        `the upload of "${id}" has ${bytes} of ${length ?? 'more'} bytes; continue it by PATCH /v1/files/${id}`,
      )
    named.set(id, { name, type, sha256 })
  }
  return named
}

/** An `invalid_request` about one of the files of a request. */
export const invalidFile = (at: number, detail: string): MasonError =>
  createFieldsError({ pointer: `/files/${at}/file_id`, detail })

/** Also of a file that belongs to another business: callers cannot tell which. */
const throwNoSuchFile = (id: string): never => {
  throw new MasonError('not_found', `there is no file "${id}"`)
}

/** The latest complete file with the name, type and bytes of this one; it counts as received again. */
const renewEqual = (sql: Sql, businessId: string, { file_id, name, type, sha256 }: FileRow) =>
  queryOne<FileRow>(
    sql,
    `UPDATE files SET touched_at = clock_timestamp(), named = false WHERE tenant = $1 AND file_id = (
       SELECT file_id FROM files WHERE tenant = $1 AND sha256 = $3 AND name = $4 AND type = $5 AND file_id <> $2
       ORDER BY file_id DESC LIMIT 1) RETURNING ${columns}`,
    [businessId, file_id, sha256, name, type],
  )

/** Cuts chunks so that each ends where a part ends, or the bytes do; those before an error are passed on first. */
async function* toParts(chunks: AsyncIterable<Uint8Array>, start: number): AsyncGenerator<Uint8Array> {
  let buffered: Uint8Array[] = []
  let space = partBytes - (start % partBytes)
  const take = (): Uint8Array => {
    const part = buffered.length === 1 && buffered[0] ? buffered[0] : Buffer.concat(buffered)
    buffered = []
    return part
  }
  try {
    for await (let chunk of chunks) {
      while (chunk.length >= space) {
        buffered.push(chunk.subarray(0, space))
        chunk = chunk.subarray(space)
        space = partBytes
        yield take()
      }
      if (chunk.length > 0) buffered.push(chunk)
      space -= chunk.length
    }
  } catch (error) {
    if (buffered.length > 0) yield take()
    throw error
  }
  if (buffered.length > 0) yield take()
}

const maxMb = maxUploadBytes / 1024 / 1024

const tooLarge = (): MasonError =>
  new MasonError('payload_too_large', `the file is larger than ${maxMb} MB`, {
    remedy: 'split it; the limit cannot be raised',
  })

const invalidHeader = (name: string, detail: string): MasonError =>
  createFieldsError({ pointer: `/${name}`, detail: `header ${name}: ${detail}` })

const beyondLength = (length: number): MasonError =>
  invalidHeader('upload-length', `the bytes go beyond the ${length} that were announced`)

const wrongHash = (hash: string): MasonError =>
  invalidHeader('x-sha256', `the bytes that arrived have the hash ${hash}; send the file again`)

/** The bytes of an upload go on at another offset, which is in the detail. */
const toOffsetError = (row: FileRow): MasonError => {
  const offset = Number(row.received)
  const state = row.sha256 === null ? `has ${offset} bytes` : `is complete, with ${offset} bytes`
  return new MasonError('upload_offset', `the upload of "${row.file_id}" ${state}`, {
    remedy: 'continue at upload-offset of this response, which HEAD returns too',
    detail: { upload_offset: offset },
  })
}

/** Renews the age of a file, whose blob is locked first as in every deletion; one that is gone by now fails the request. */
export const holdUploadedFile = async (
  sql: Sql,
  businessId: string,
  hash: string,
  fileId: string,
): Promise<void> => {
  await sql.query('UPDATE blobs SET created_at = clock_timestamp() WHERE tenant = $1 AND sha256 = $2', [
    businessId,
    hash,
  ])
  const isThere = await hasRow(
    sql,
    `UPDATE files SET named = true, touched_at = clock_timestamp()
     WHERE tenant = $1 AND file_id = $2 AND sha256 = $3 RETURNING file_id`,
    [businessId, fileId, hash],
  )
  if (!isThere) throw invalidFile(0, `the uploaded file "${fileId}" was deleted just now; upload it again`)
}
