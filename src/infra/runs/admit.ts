import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports.ts'
import type { AdmittedRequest, RunRequest } from '../../state/run-request.ts'
import type { RunStatus } from '../../state/run-view.ts'
import type { OriginFile } from '../../state/runtime-state.ts'
import type { Database } from '../database/database.ts'
import { urlPlace } from '../files/origins/url.ts'
import { contentHash, newRunId, newSessionId, sha256 } from '../ids.ts'
import { holdBlobs, storeBlob } from '../sessions/blobs.ts'
import { maxSessionQueue, tooManyOfSession } from './queue-caps.ts'

export type Admitted = { id: string; session_id: string; turn: number; status: RunStatus }
export type Admission = { run: Admitted; replayed: boolean }

export type Key = { route: string; key: string }
type Upload = { hash: string; bytes: Buffer }

/** A run that asks to be let in. */
export type Entrant = {
  row: {
    run_id: string
    session_id: string
    user_id: string
    priority: number
    delay_ms: number
    request: string
    metadata: string
    route: string | null
    key: string | null
    hash: string
  }
  uploads: readonly Upload[]
}

/**
 * Runs in, all or nothing: each with its turn under its session's row lock, its request, its key, its bell. A key that
 * is known gives the run it made instead. In one order, so that two of these never wait for each other in a circle;
 * a session may come once only, since its row can change once in a statement. What waits in a session is counted where it
 * has had that many turns, and in the order of its turns: never over all that waits in the business.
 */
const admitStatement = `
  WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset($2::json) AS a(run_id text, session_id text, user_id text, priority int, delay_ms int,
      request text, metadata text, route text, key text, hash text)
  ), earlier AS MATERIALIZED (
    SELECT a.run_id, i.request_hash, i.response FROM asked a
    JOIN idempotency i ON i.tenant = $1 AND i.route = a.route AND i.key = a.key
  ), fresh AS MATERIALIZED (
    SELECT a.*, (SELECT count(*) FROM sessions s CROSS JOIN LATERAL (SELECT FROM runs r
      WHERE r.tenant = s.tenant AND r.session_id = s.session_id AND r.status = 'queued' ORDER BY r.turn LIMIT ${maxSessionQueue}) q
      WHERE s.tenant = $1 AND s.session_id = a.session_id AND s.turns >= ${maxSessionQueue}) AS waiting
    FROM asked a WHERE a.run_id NOT IN (SELECT run_id FROM earlier)
  ), session AS (
    INSERT INTO sessions AS s (tenant, session_id, user_id, turns)
    SELECT $1, session_id, user_id, 1 FROM fresh WHERE waiting < ${maxSessionQueue} ORDER BY session_id
    ON CONFLICT (tenant, session_id) DO UPDATE SET turns = s.turns + 1, updated_at = clock_timestamp()
      WHERE s.user_id = EXCLUDED.user_id
    RETURNING session_id, turns
  ), run AS (
    INSERT INTO runs (tenant, run_id, session_id, turn, status, priority, run_at, expires_at)
    SELECT $1, a.run_id, a.session_id, session.turns, 'queued', a.priority,
      clock_timestamp() + a.delay_ms * interval '1 millisecond',
      clock_timestamp() + a.delay_ms * interval '1 millisecond' + (SELECT queue_ttl FROM businesses WHERE tenant = $1)
    FROM session JOIN fresh a USING (session_id) RETURNING run_id, turn, run_at
  ), request AS (
    INSERT INTO run_requests (tenant, run_id, user_id, request, metadata)
    SELECT $1, a.run_id, a.user_id, a.request::json, a.metadata::json FROM run JOIN fresh a USING (run_id)
  ), bell AS (
    INSERT INTO outbox (tenant, run_id, ring_at) SELECT $1, run_id, run_at FROM run
  ), key AS (
    INSERT INTO idempotency (tenant, route, key, request_hash, response)
    SELECT $1, a.route, a.key, a.hash,
      json_build_object('id', a.run_id, 'session_id', a.session_id, 'turn', run.turn, 'status', 'queued')
    FROM run JOIN fresh a USING (run_id) WHERE a.key IS NOT NULL ORDER BY a.route, a.key
  )
  SELECT a.run_id, run.turn, e.request_hash, e.response, COALESCE(f.waiting >= ${maxSessionQueue}, false) AS full
  FROM asked a LEFT JOIN run USING (run_id) LEFT JOIN earlier e USING (run_id) LEFT JOIN fresh f USING (run_id)`

type Row = {
  run_id: string
  turn: number | null
  request_hash: string | null
  response: Admitted | null
  full: boolean
}

/** A request as it will be stored. */
export const entrantOf = (request: RunRequest, key?: Key): Entrant => {
  const { admitted, uploads } = splitUploads(request)
  return {
    row: {
      run_id: newRunId(),
      session_id: request.session_id ?? newSessionId(),
      user_id: request.user_id,
      priority: request.priority ?? 0,
      delay_ms: request.delay_ms ?? 0,
      request: JSON.stringify(admitted),
      metadata: JSON.stringify(request.metadata ?? {}),
      route: key?.route ?? null,
      key: key?.key ?? null,
      hash: contentHash(request),
    },
    uploads,
  }
}

/** Admits them in one commit. Of each its run, or why it alone is refused; what is thrown concerns all of them. */
export const admitAll = async (
  database: Database,
  businessId: string,
  entrants: readonly Entrant[],
): Promise<(Admission | MasonError)[]> => {
  // in one order, or two that bring the same files could wait for each other in a circle
  const uploads = entrants
    .flatMap(({ uploads, row }) => uploads.map((upload) => ({ ...upload, row })))
    .sort((a, b) => (a.hash < b.hash ? -1 : 1))
  const rows = JSON.stringify(entrants.map(({ row }) => row))
  const answer = await database.asBusiness(
    businessId,
    async (sql) => {
      for (const { hash, bytes } of uploads) await sql.query(storeBlob, [businessId, hash, bytes])
      const admitted = await sql.query<Row>(admitStatement, [businessId, rows])
      const isIn = new Set(admitted.rows.filter(({ turn }) => turn !== null).map(({ run_id }) => run_id))
      const uses = uploads.filter(({ row }) => isIn.has(row.run_id))
      await holdBlobs(
        sql,
        businessId,
        uses.map(({ hash, row }) => ({ sha256: hash, session_id: row.session_id })),
      )
      return admitted
    },
    { atOnce: uploads.length === 0 },
  )
  const byId = new Map(answer.rows.map((row) => [row.run_id, row]))
  return entrants.map(({ row }) => admissionOf(row, byId.get(row.run_id)))
}

/** Admits one run on its own. Same promises as `Admissions.admit`. */
export const admit = async (
  database: Database,
  businessId: string,
  request: RunRequest,
  key?: Key,
): Promise<Admission> => {
  const entrant = entrantOf(request, key)
  const tryOnce = async (): Promise<Admission> => {
    const [admission] = await admitAll(database, businessId, [entrant])
    if (!admission || admission instanceof MasonError) throw admission
    return admission
  }
  return tryOnce().catch((error: unknown) => {
    // two requests with one key at the same moment: the other one was first, and is seen now
    if ((error as { code?: unknown }).code !== uniqueViolation) throw error
    return tryOnce()
  })
}

const uniqueViolation = '23505'

const admissionOf = (asked: Entrant['row'], row: Row | undefined): Admission | MasonError => {
  const { run_id: id, session_id } = asked
  if (row?.response)
    return row.request_hash === asked.hash ? { run: row.response, replayed: true } : conflict(asked)
  if (row?.full) return tooManyOfSession(session_id)
  if (typeof row?.turn === 'number')
    return { run: { id, session_id, turn: row.turn, status: 'queued' }, replayed: false }
  return new MasonError('session_of_another_user', `session "${session_id}" belongs to another user`, {
    remedy: "use that user's user_id, or leave session_id out to start a new session",
  })
}

const conflict = ({ key }: Entrant['row']): MasonError =>
  new MasonError('idempotency_conflict', `the key "${key}" was used for another body`, {
    remedy: 'use a new Idempotency-Key for a new request',
  })

/** The run that this entrant's key made before, or null. Throws `idempotency_conflict`. */
export const findEarlier = async (
  database: Database,
  businessId: string,
  { row }: Entrant,
): Promise<Admission | null> => {
  if (row.key === null) return null
  const { rows } = await database.asBusiness(
    businessId,
    (sql) =>
      sql.query<{ request_hash: string; response: Admitted }>(
        'SELECT request_hash, response FROM idempotency WHERE tenant = $1 AND route = $2 AND key = $3',
        [businessId, row.route, row.key],
      ),
    { atOnce: true },
  )
  const [earlier] = rows
  if (earlier && earlier.request_hash !== row.hash) throw conflict(row)
  return earlier ? { run: earlier.response, replayed: true } : null
}

/** Uploaded bytes go to blobs under their hash; the request keeps where they are. */
const splitUploads = (request: RunRequest): { admitted: AdmittedRequest; uploads: Upload[] } => {
  const uploads: Upload[] = []
  const addresses: Record<string, string> = {}
  const files = (request.files ?? []).map(({ name, type, mapping, content_base64, url }): OriginFile => {
    if (url !== undefined) {
      const { local_path, hidden } = urlPlace(url)
      if (hidden) addresses[local_path] = url
      return { name, type, local_path, mapping: null }
    }
    if (content_base64 === undefined) return { name, type, local_path: '', mapping: mapping ?? null }
    const bytes = Buffer.from(content_base64, 'base64')
    const hash = sha256(bytes)
    uploads.push({ hash, bytes })
    return { name, type, local_path: `blob:${hash}`, mapping: null }
  })
  const { session_id: _session, business_id: _business, ...rest } = request
  const hides = Object.keys(addresses).length > 0
  return { admitted: { ...rest, files, ...(hides && { addresses }) }, uploads }
}

/** Makes the business known; a token or a trusted producer named it. */
export const ensureBusiness = async (sql: Sql, businessId: string): Promise<void> => {
  await sql.query('INSERT INTO businesses (tenant) VALUES ($1) ON CONFLICT (tenant) DO NOTHING', [businessId])
}
