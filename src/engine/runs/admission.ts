import { holdSessionBlobs, storeBlobStatement } from '../../files/blobs/blobs.ts'
import { holdUploadedFile, invalidFile, type NamedFiles } from '../../files/uploads.ts'
import { type Database, queryOne, sendFirst } from '../../infra/database/database.ts'
import { isUniqueViolation } from '../../infra/database/database-errors.ts'
import { newRunId, newSessionId } from '../../infra/lib/ids.ts'
import { MasonError } from '../../state/errors.ts'
import { toUrlPath } from '../../state/files/url-path.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createFieldsError, toPointer } from '../../state/resource-schema.ts'
import {
  type AdmittedRequest,
  haveOwnNames,
  type JobData,
  metadataSchema,
  type RunRequest,
} from '../../state/run-request.ts'
import { toPublicStatusSql } from '../../state/run-status.ts'
import type { RunStatus } from '../../state/run-view.ts'
import type { OriginFile } from '../../state/runtime-state.ts'
import { contentHash, hashLarge, hashLargeContent } from '../../state/text/content-hash.ts'
import { admitStatement } from './admission-statement.ts'
import { toMetadataEntries } from './metadata-entries.ts'
import { createSessionFullError } from './queue-caps.ts'

/** A run that was admitted, as `POST /v1/runs` returns it. */
export type AdmittedRun = { id: string; session_id: string; turn: number; status: RunStatus }
/** `replayed`: its key named a run that was admitted before. */
export type Admission = { run: AdmittedRun; replayed: boolean }

/** The route of the keys of new runs, also of jobs of the queue: a job and a request with one key are one run. */
export const submitRoute = 'POST /v1/runs'

/** A key is unique within its business and route. */
export type IdempotencyKey = { route: string; key: string }
/** Bytes that came with the request; null: a file that was uploaded before. */
type Upload = { hash: string } & ({ bytes: Uint8Array } | { bytes: null; file_id: string })

/** Jobs of the queue have a statement of their own, with more values; where it says that it does not lead, nothing is admitted. */
export type Fence = {
  statement: string
  values: readonly (number | null)[]
  createError(): Error
}

/** A run to admit: its row, and the files that came with it. */
export type AdmissionRequest = Awaited<ReturnType<typeof toAdmissionRequest>>

type AdmissionRow = {
  run_id: string
  turn: number | null
  request_hash: string | null
  response: AdmittedRun | null
  full: boolean
  leads: boolean
}

/** Here once more for callers in this process, whose requests no schema has seen. */
const checkMetadata = (metadata: RunRequest['metadata'] = {}): void => {
  const [issue] = metadataSchema.safeParse(metadata).error?.issues ?? []
  if (!issue) return
  throw createFieldsError({ pointer: toPointer(['metadata', ...issue.path]), detail: issue.message })
}

/** Request to the rows that admission stores. Throws `invalid_request` for metadata over its limits. */
export const toAdmissionRequest = async (
  { run_id, ...request }: JobData,
  key?: IdempotencyKey,
  named: NamedFiles = new Map(),
  tokenId: string | null = null,
) => {
  checkMetadata(request.metadata)
  const { admitted, uploads } = await splitUploads(request, named)
  return {
    row: {
      run_id: run_id ?? newRunId(),
      /** Whether the producer chose the id; its key then belongs to a run of that id. */
      has_own_id: run_id !== undefined,
      session_id: request.session_id ?? newSessionId(),
      user_id: request.user_id,
      priority: request.priority ?? 0,
      delay_ms: request.delay_ms ?? 0,
      request: JSON.stringify(admitted),
      metadata: JSON.stringify(request.metadata ?? {}),
      webhook_url: request.webhook_url ?? null,
      entries: toMetadataEntries(request.metadata),
      retry_of: null as string | null,
      /** The token that submits it. */
      token_id: tokenId,
      route: key?.route ?? null,
      key: key?.key ?? null,
      hash: await hashLargeContent(request),
    },
    uploads,
  }
}

/** Admits runs in one commit, `fence`: those of the queue. Returns for each its run, or the error that refuses it alone; throws what fails all of them. */
export const admitRuns = async (
  database: Database,
  businessId: string,
  candidates: readonly AdmissionRequest[],
  fence?: Fence,
): Promise<(Admission | MasonError)[]> => {
  // in one order, or two requests with the same files could deadlock
  const uploads = candidates
    .flatMap(({ uploads, row }) => uploads.map((upload) => ({ ...upload, row })))
    .sort((a, b) => (a.hash < b.hash ? -1 : 1))
  const rows = toRows(candidates.map(({ row }) => row))
  const { statement = admitStatement, values = [] }: Partial<Fence> = fence ?? {}
  const admit = (sql: Sql) => sql.query<AdmissionRow>(statement, [businessId, rows, ...values])
  const work = async (sql: Sql) => {
    // a leader that is paused between two statements does not keep the next one waiting
    if (fence && uploads.length > 0) await sql.query("SET LOCAL idle_in_transaction_session_timeout = '3s'")
    for (const { hash, ...upload } of uploads)
      if (upload.bytes) await sql.query(storeBlobStatement, [businessId, hash, upload.bytes])
      else await holdUploadedFile(sql, businessId, hash, upload.file_id)
    const admitted = await admit(sql)
    const admittedIds = new Set(admitted.rows.filter(({ turn }) => turn !== null).map(({ run_id }) => run_id))
    const uses = uploads.filter(({ row }) => admittedIds.has(row.run_id))
    await holdSessionBlobs(
      sql,
      businessId,
      uses.map(({ hash, row }) => ({ sha256: hash, session_id: row.session_id })),
    )
    return admitted
  }
  const result = await database.asBusiness(
    businessId,
    fence ? sendFirst(limitWaitStatement, [], work) : work,
    { pipelined: uploads.length === 0 },
  )
  if (fence && result.rows[0]?.leads === false) throw fence.createError()
  const byId = new Map(result.rows.map((row) => [row.run_id, row]))
  return candidates.map(({ row }) => toAdmission(row, byId.get(row.run_id)))
}

/** A leader waits no longer for a locked session: all businesses wait for it, and for its lease. */
const limitWaitStatement = "SET LOCAL lock_timeout = '1s'"

const toRows = (rows: readonly AdmissionRequest['row'][]): string =>
  JSON.stringify(rows.map((row, place) => ({ place, ...row })))

/** Admits one candidate in a commit of its own. Same contract as `Admissions.admit`; `fence`: it is of the queue. */
export const admitCandidate = (
  database: Database,
  businessId: string,
  candidate: AdmissionRequest,
  fence?: Fence,
): Promise<Admission> =>
  admitTwice(
    async () => (await admitRuns(database, businessId, [candidate], fence))[0],
    () => findRedelivered(database, businessId, candidate.row),
  )

/** Where another request with this key committed first, the second try finds its run. */
export const admitTwice = async (
  admit: () => Promise<Admission | MasonError | undefined>,
  onTakenId?: () => Promise<Admission>,
): Promise<Admission> => {
  const tryOnce = async (): Promise<Admission> => {
    const admission = await admit()
    if (!admission || admission instanceof MasonError) throw admission
    return admission
  }
  return tryOnce().catch((error: unknown) => {
    if (!isUniqueViolation(error)) throw error
    const { constraint } = error as { constraint?: string }
    return onTakenId && constraint?.startsWith('runs_') ? onTakenId() : tryOnce()
  })
}

/**
 * Admits a failed run again, as the next turn of its session: with the same request, whose files the session holds. The lock on
 * the session keeps a deletion from coming between. Throws `not_found`, `run_not_failed`, and what `Admissions.admit` throws.
 */
export const admitRetry = (
  database: Database,
  businessId: string,
  runId: string,
  key?: IdempotencyKey,
  tokenId: string | null = null,
): Promise<Admission> =>
  admitTwice(() =>
    database.asBusiness(businessId, async (sql) => {
      const run = await queryOne<
        Pick<
          AdmissionRequest['row'],
          'session_id' | 'user_id' | 'priority' | 'request' | 'metadata' | 'webhook_url'
        > & {
          status: RunStatus
        }
      >(
        sql,
        `SELECT r.session_id, ${toPublicStatusSql('r.status')} AS status, r.priority, q.user_id, q.request::text AS request, q.metadata::text AS metadata, q.webhook_url
         FROM sessions s JOIN runs r USING (tenant, session_id) JOIN run_requests q USING (tenant, run_id)
         WHERE r.tenant = $1 AND r.run_id = $2 FOR UPDATE OF s`,
        [businessId, runId],
      )
      if (!run) throw new MasonError('not_found', `there is no run "${runId}"`)
      const { status, ...same } = run
      if (status !== 'failed')
        throw new MasonError(
          'run_not_failed',
          `run "${runId}" is ${status}; only failed runs can be retried`,
          {
            remedy: 'submit a new run to its session with POST /v1/runs',
          },
        )
      const row: AdmissionRequest['row'] = {
        ...same,
        run_id: newRunId(),
        has_own_id: false,
        delay_ms: 0,
        entries: toMetadataEntries(JSON.parse(same.metadata)),
        retry_of: runId,
        token_id: tokenId,
        route: key?.route ?? null,
        key: key?.key ?? null,
        hash: contentHash({ retry_of: runId }),
      }
      return admitRow(sql, businessId, row)
    }),
  )

/** Admits one run inside the caller's transaction. Resolves with the error that refuses it. */
export const admitRow = async (
  sql: Sql,
  businessId: string,
  row: AdmissionRequest['row'],
): Promise<Admission | MasonError> => {
  const { rows } = await sql.query<AdmissionRow>(admitStatement, [businessId, toRows([row])])
  return toAdmission(row, rows[0])
}

/** The run of a job that comes again after its key has expired. Throws `invalid_request` where the id is another run's. */
const findRedelivered = async (
  database: Database,
  businessId: string,
  row: AdmissionRequest['row'],
): Promise<Admission> => {
  const run = await database.asBusiness(
    businessId,
    (sql) =>
      queryOne<Omit<AdmittedRun, 'status'>>(
        sql,
        `SELECT r.run_id AS id, r.session_id, r.turn FROM runs r JOIN run_requests q USING (tenant, run_id)
         WHERE r.tenant = $1 AND r.run_id = $2 AND q.idempotency_key = $3 AND q.request::text = $4 AND q.metadata::text = $5`,
        [businessId, row.run_id, row.key, row.request, row.metadata],
      ),
    { pipelined: true },
  )
  if (run) return { run: { ...run, status: 'queued' }, replayed: true }
  throw createFieldsError({
    pointer: '/run_id',
    detail: 'is taken; make a new UUID v7, or leave it out and Mason chooses one',
  })
}

const toAdmission = (
  candidate: AdmissionRequest['row'],
  row: AdmissionRow | undefined,
): Admission | MasonError => {
  const { run_id: id, session_id } = candidate
  if (row?.response)
    return isSameRequest(candidate, { request_hash: row.request_hash, response: row.response })
      ? { run: row.response, replayed: true }
      : createConflictError(candidate)
  if (row?.full) return createSessionFullError(session_id)
  if (typeof row?.turn === 'number')
    return { run: { id, session_id, turn: row.turn, status: 'queued' }, replayed: false }
  return new MasonError('session_of_another_user', `session "${session_id}" belongs to another user`, {
    remedy: "use that user's user_id, or leave session_id out to start a new session",
  })
}

/** `response`: that of the request which used the key before. */
const isSameRequest = (
  { hash, has_own_id, run_id }: Pick<AdmissionRequest['row'], 'hash' | 'has_own_id' | 'run_id'>,
  earlier: { request_hash: string | null; response: AdmittedRun },
): boolean => earlier.request_hash === hash && (!has_own_id || earlier.response.id === run_id)

const createConflictError = ({ key }: { key: string | null }): MasonError =>
  new MasonError('idempotency_conflict', `the key "${key}" was used for another body`, {
    remedy: 'use a new Idempotency-Key, of a queue job a new job id, for a new request',
  })

/** The run that was admitted under this key before, or null. Throws `idempotency_conflict`. */
export const findEarlierAdmission = async (
  database: Database,
  businessId: string,
  { run_id = '', ...request }: JobData,
  key: IdempotencyKey | undefined,
): Promise<Admission | null> => {
  if (key === undefined) return null
  const candidate = { hash: await hashLargeContent(request), has_own_id: run_id !== '', run_id, ...key }
  return database.asBusiness(businessId, (sql) => findByKey(sql, businessId, candidate), { pipelined: true })
}

/** The same for a request of this hash, inside the caller's transaction. */
export const findByKey = async (
  sql: Sql,
  businessId: string,
  candidate: Pick<AdmissionRequest['row'], 'hash' | 'has_own_id' | 'run_id' | 'route' | 'key'>,
): Promise<Admission | null> => {
  const earlier = await queryOne<{ request_hash: string; response: AdmittedRun }>(
    sql,
    'SELECT request_hash, response FROM idempotency WHERE tenant = $1 AND route = $2 AND key = $3',
    [businessId, candidate.route, candidate.key],
  )
  if (earlier && !isSameRequest(candidate, earlier)) throw createConflictError(candidate)
  return earlier ? { run: earlier.response, replayed: true } : null
}

/** Uploaded bytes become blobs under their hash; the stored request refers to them by path. */
const splitUploads = async (
  request: RunRequest,
  named: NamedFiles,
): Promise<{ admitted: AdmittedRequest; uploads: Upload[] }> => {
  const uploads: Upload[] = []
  const addresses: Record<string, string> = {}
  const read = (request.files ?? []).map(async (file, at): Promise<OriginFile> => {
    const { file_id, mapping, content_base64, url } = file
    const upload = file_id === undefined ? undefined : named.get(file_id)
    const { name = upload?.name ?? '', type = upload?.type ?? '' } = file
    if (file_id !== undefined) {
      if (!upload) throw invalidFile(at, `the uploaded file "${file_id}" was not looked up`)
      uploads.push({ hash: upload.sha256, bytes: null, file_id })
      return { name, type, local_path: `blob:${upload.sha256}`, mapping: null }
    }
    if (url !== undefined) {
      const { local_path, hidden } = toUrlPath(url)
      if (hidden) addresses[local_path] = url
      return { name, type, local_path, mapping: null }
    }
    if (content_base64 === undefined) return { name, type, local_path: '', mapping: mapping ?? null }
    const bytes = Buffer.from(content_base64, 'base64')
    const hash = await hashLarge(bytes)
    uploads.push({ hash, bytes })
    return { name, type, local_path: `blob:${hash}`, mapping: null }
  })
  const files = await Promise.all(read)
  if (!haveOwnNames(files)) throw invalidFile(0, 'names must differ; give the uploaded files other names')
  const { session_id: _session, business_id: _business, ...rest } = request
  const hides = Object.keys(addresses).length > 0
  return { admitted: { ...rest, files, ...(hides && { addresses }) }, uploads }
}
