import { maxSessionQueue } from './queue-caps.ts'

/** The parts of a statement that admits: `leads` is the condition under which it does, `behind` marks rows that must wait for others of their session. */
type AdmitParts = { leads?: string; fence?: string; behind?: string }

/**
 * Inserts runs, all or none: each with its turn under the row lock of its session, its request, key and wake-up; those of one
 * session in the order of the list. A known key returns the run of its first request instead. Rows are locked in one order, so
 * that two of these statements never deadlock. Queued runs of a session are counted only once it has had so many turns, and along
 * its turns: never over all queued runs of the business.
 */
export const toAdmitStatement = ({
  leads = 'true',
  fence = '',
  behind = 'false',
}: AdmitParts = {}): string => `
  WITH ${fence} candidate AS MATERIALIZED (
    SELECT * FROM json_to_recordset($2::json) AS a(place int, run_id text, session_id text, user_id text, priority int, delay_ms bigint,
      request text, metadata text, webhook_url text, entries json, retry_of text, token_id text, route text, key text, hash text)
  ), earlier AS MATERIALIZED (
    SELECT a.run_id, i.request_hash, i.response FROM candidate a
    JOIN idempotency i ON i.tenant = $1 AND i.route = a.route AND i.key = a.key
  ), fresh AS MATERIALIZED (
    SELECT a.*, first_value(COALESCE(s.user_id, a.user_id)) OVER turns AS owner, s.turns AS turns_before, count(*) OVER (PARTITION BY a.session_id) AS size
    FROM candidate a LEFT JOIN sessions s ON s.tenant = $1 AND s.session_id = a.session_id
    WHERE a.run_id NOT IN (SELECT run_id FROM earlier) WINDOW turns AS (PARTITION BY a.session_id ORDER BY a.place)
  ), crowd AS MATERIALIZED (
    SELECT session_id, ${behind} AS behind, (SELECT count(*) FROM (SELECT FROM runs r
      WHERE r.tenant = $1 AND r.session_id = f.session_id AND r.status = 'queued' AND f.turns_before + f.size > ${maxSessionQueue}
      ORDER BY r.turn LIMIT ${maxSessionQueue}) q) AS waiting
    FROM (SELECT DISTINCT session_id, turns_before, size FROM fresh) f
  ), ranked AS MATERIALIZED (
    SELECT f.*, c.behind OR c.waiting + rank() OVER (PARTITION BY f.session_id ORDER BY f.place) > ${maxSessionQueue} AS is_full,
      rank() OVER (PARTITION BY f.session_id ORDER BY f.place) AS rank
    FROM fresh f JOIN crowd c USING (session_id) WHERE f.user_id = f.owner
  ), session AS (
    INSERT INTO sessions AS s (tenant, session_id, user_id, turns)
    SELECT $1, session_id, owner, count(*) FROM ranked WHERE NOT is_full AND ${leads} GROUP BY session_id, owner ORDER BY session_id
    ON CONFLICT (tenant, session_id) DO UPDATE SET turns = s.turns + EXCLUDED.turns, updated_at = clock_timestamp()
      WHERE s.user_id = EXCLUDED.user_id
    RETURNING session_id, turns
  ), run AS (
    INSERT INTO runs (tenant, run_id, session_id, turn, status, priority, run_at, expires_at)
    SELECT $1, a.run_id, a.session_id, session.turns - max(a.rank) OVER (PARTITION BY a.session_id) + a.rank, 'queued', a.priority,
      clock_timestamp() + a.delay_ms * interval '1 millisecond',
      clock_timestamp() + a.delay_ms * interval '1 millisecond' + (SELECT queue_ttl FROM businesses WHERE tenant = $1)
    FROM session JOIN ranked a USING (session_id) WHERE NOT a.is_full ORDER BY a.place RETURNING run_id, turn, run_at, created_at
  ), request AS (
    INSERT INTO run_requests (tenant, run_id, user_id, request, metadata, idempotency_key, webhook_url, retry_of, token_id)
    SELECT $1, a.run_id, a.user_id, a.request::json, a.metadata::json, a.key, a.webhook_url, a.retry_of, a.token_id FROM run JOIN fresh a USING (run_id)
  ), entry AS (
    INSERT INTO run_metadata (tenant, run_id, entry, created_at)
    SELECT $1, a.run_id, e::uuid, run.created_at FROM run JOIN fresh a USING (run_id), json_array_elements_text(a.entries) AS e
  ), wake_up AS (
    INSERT INTO outbox (tenant, run_id, ring_at) SELECT $1, run_id, run_at FROM run
  ), key AS (
    INSERT INTO idempotency (tenant, route, key, request_hash, response)
    SELECT $1, a.route, a.key, a.hash,
      json_build_object('id', a.run_id, 'session_id', a.session_id, 'turn', run.turn, 'status', 'queued')
    FROM run JOIN fresh a USING (run_id) WHERE a.key IS NOT NULL ORDER BY a.route, a.key
  )
  SELECT a.run_id, run.turn, e.request_hash, e.response, COALESCE(f.is_full, false) AS full, ${leads} AS leads
  FROM candidate a LEFT JOIN run USING (run_id) LEFT JOIN earlier e USING (run_id) LEFT JOIN ranked f USING (run_id)`

/** `$1` business, `$2` candidates. */
export const admitStatement = toAdmitStatement()
