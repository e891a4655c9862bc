import { MasonError } from '../../state/errors.ts'
import type { AdmittedRequest, RunRequest } from '../../state/run-request.ts'
import type { RunStatus } from '../../state/run-view.ts'
import type { OriginFile } from '../../state/runtime-state.ts'
import { type Database, one } from '../database/database.ts'
import { contentHash, newRunId, newSessionId, sha256 } from '../ids.ts'

export type Admitted = { id: string; session_id: string; turn: number; status: RunStatus }
export type Admission = { run: Admitted; replayed: boolean }

/** One run in, all or nothing: its turn under the session's row lock, its request, its key, its bell. */
const admitStatement = `
  WITH session AS (
    INSERT INTO sessions AS s (tenant, session_id, user_id, turns) VALUES ($1, $2, $3, 1)
    ON CONFLICT (tenant, session_id) DO UPDATE SET turns = s.turns + 1, updated_at = clock_timestamp()
      WHERE s.user_id = EXCLUDED.user_id
    RETURNING turns
  ), run AS (
    INSERT INTO runs (tenant, run_id, session_id, turn, status, priority, run_at, expires_at)
    SELECT $1, $4, $2, session.turns, 'queued', $5,
      clock_timestamp() + $6::int * interval '1 millisecond',
      clock_timestamp() + $6::int * interval '1 millisecond' + (SELECT queue_ttl FROM businesses WHERE tenant = $1)
    FROM session RETURNING turn, run_at
  ), request AS (
    INSERT INTO run_requests (tenant, run_id, user_id, request, metadata) SELECT $1, $4, $3, $7::json, $11::json FROM run
  ), bell AS (
    INSERT INTO outbox (tenant, run_id, ring_at) SELECT $1, $4, run_at FROM run
  ), key AS (
    INSERT INTO idempotency (tenant, route, key, request_hash, response)
    SELECT $1, $8, $9, $10, json_build_object('id', $4::text, 'session_id', $2::text, 'turn', turn, 'status', 'queued')
    FROM run WHERE $9::text IS NOT NULL
  )
  SELECT turn FROM run`

type Key = { route: string; key: string }

/**
 * Admits a run for a business: once it resolves the run is durable, whatever happens to the queue.
 * The same key and body give the same run, also when `beforeNew` would refuse a new one. Throws what that throws,
 * `idempotency_conflict` and `session_of_another_user`.
 */
export const admit = async (
  database: Database,
  businessId: string,
  request: RunRequest,
  key?: Key,
  beforeNew: () => Promise<void> = async () => {},
): Promise<Admission> => {
  const hash = contentHash(request)
  const earlier = key && (await findEarlier(database, businessId, key, hash))
  if (earlier) return { run: earlier, replayed: true }
  await beforeNew()
  try {
    return { run: await insert(database, businessId, request, hash, key), replayed: false }
  } catch (error) {
    // two requests with one key at the same moment: the other one was first
    if (!key || (error as { code?: unknown }).code !== '23505') throw error
    const winner = await findEarlier(database, businessId, key, hash)
    if (!winner) throw error
    return { run: winner, replayed: true }
  }
}

const findEarlier = async (
  database: Database,
  businessId: string,
  { route, key }: Key,
  hash: string,
): Promise<Admitted | null> => {
  const row = await database.asBusiness(businessId, (sql) =>
    one<{ request_hash: string; response: Admitted }>(
      sql,
      'SELECT request_hash, response FROM idempotency WHERE tenant = $1 AND route = $2 AND key = $3',
      [businessId, route, key],
    ),
  )
  if (row && row.request_hash !== hash)
    throw new MasonError('idempotency_conflict', `the key "${key}" was used for another body`, {
      remedy: 'use a new Idempotency-Key for a new request',
    })
  return row?.response ?? null
}

const insert = (
  database: Database,
  businessId: string,
  request: RunRequest,
  hash: string,
  key: Key | undefined,
): Promise<Admitted> => {
  const id = newRunId()
  const sessionId = request.session_id ?? newSessionId()
  const { admitted, uploads } = splitUploads(request)
  return database.asBusiness(businessId, async (sql) => {
    for (const { hash, bytes } of uploads)
      await sql.query(
        'INSERT INTO blobs (tenant, sha256, bytes) VALUES ($1, $2, $3) ON CONFLICT (tenant, sha256) DO NOTHING',
        [businessId, hash, bytes],
      )
    const row = await one<{ turn: number }>(sql, admitStatement, [
      businessId,
      sessionId,
      request.user_id,
      id,
      request.priority ?? 0,
      request.delay_ms ?? 0,
      JSON.stringify(admitted),
      key?.route ?? null,
      key?.key ?? null,
      hash,
      JSON.stringify(request.metadata ?? {}),
    ])
    if (!row)
      throw new MasonError('session_of_another_user', `session "${sessionId}" belongs to another user`, {
        remedy: "use that user's user_id, or leave session_id out to start a new session",
      })
    return { id, session_id: sessionId, turn: row.turn, status: 'queued' }
  })
}

/** Uploaded bytes go to blobs under their hash; the request keeps where they are. */
const splitUploads = (request: RunRequest) => {
  const uploads: { hash: string; bytes: Buffer }[] = []
  const files = (request.files ?? []).map(({ name, type, mapping, content_base64 }): OriginFile => {
    if (content_base64 === undefined) return { name, type, local_path: '', mapping: mapping ?? null }
    const bytes = Buffer.from(content_base64, 'base64')
    const hash = sha256(bytes)
    uploads.push({ hash, bytes })
    return { name, type, local_path: `blob:${hash}`, mapping: null }
  })
  // in one order, or two requests with the same files could wait for each other in a circle
  uploads.sort((a, b) => (a.hash < b.hash ? -1 : 1))
  const { session_id: _session, business_id: _business, ...rest } = request
  const admitted: AdmittedRequest = { ...rest, files }
  return { admitted, uploads }
}

/** Makes the business known; a token or a trusted producer named it. */
export const ensureBusiness = async (database: Database, businessId: string): Promise<void> => {
  await database.query('INSERT INTO businesses (tenant) VALUES ($1) ON CONFLICT (tenant) DO NOTHING', [
    businessId,
  ])
}
