import type { Sql } from '../../src/state/ports/sql.ts'

/** What the protocol has written, without times and texts: what the database shows, and what the model expects. */
export type ProtocolState = {
  runs: Record<string, ProtocolRun>
  /** In the order of session and seq. */
  actions: ProtocolAction[]
  effects: Record<string, { status: string; sends: number; request: string; response: string | null }>
  /** By run, plan and call: `late` has expired, unnoticed so far. */
  questions: Record<string, { status: 'open' | 'late' | 'answered' | 'expired'; request_id: string }>
  /** By run, plan, call and part: `late` has expired, unnoticed so far; else its outcome. `seen`: its end queued the run, or a claim read it. */
  waits: Record<string, { status: string; seen: boolean }>
  /** By idempotency key: the run, and the hash of the body it was given for. */
  keys: Record<string, { run: string; hash: string }>
  /** The outbox. */
  wakeUps: ProtocolWakeUp[]
}

export type ProtocolRun = {
  session: string
  turn: number
  status: string
  epoch: number
  next_seq: number | null
  stalls: number
  /** `late`: it has ended and no worker has taken the run over yet. */
  lease: 'none' | 'held' | 'late'
  cancelled: boolean
  due: boolean
  results: number
}

export type ProtocolAction = { session: string; seq: number; run: string; epoch: number; attempt: string }
export type ProtocolWakeUp = { id: number; run: string; due: boolean }

export const emptyProtocol: ProtocolState = {
  runs: {},
  actions: [],
  effects: {},
  questions: {},
  waits: {},
  keys: {},
  wakeUps: [],
}

const objectOf = (name: string, columns: string, from: string): string =>
  `(SELECT COALESCE(json_object_agg(${name}, json_build_object(${columns})), '{}') FROM ${from})`
const listOf = (columns: string, from: string, order: string): string =>
  `(SELECT COALESCE(json_agg(json_build_object(${columns}) ORDER BY ${order}), '[]') FROM ${from})`

const now = 'clock_timestamp()'
const statement = `SELECT ${objectOf(
  'run_id',
  `'session', session_id, 'turn', turn, 'status', status, 'epoch', epoch, 'next_seq', next_seq, 'stalls', stalls,
   'lease', CASE WHEN lease_until IS NULL THEN 'none' WHEN lease_until > ${now} THEN 'held' ELSE 'late' END,
   'cancelled', cancel_requested_at IS NOT NULL, 'due', run_at <= ${now},
   'results', (SELECT count(*) FROM run_results o WHERE o.tenant = runs.tenant AND o.run_id = runs.run_id)`,
  'runs',
)} AS runs, ${listOf(
  `'session', session_id, 'seq', seq, 'run', run_id, 'epoch', epoch, 'attempt', attempt_id`,
  'actions',
  'session_id, seq, attempt_id',
)} AS actions, ${objectOf(
  'effect_id',
  `'status', status, 'sends', sends, 'request', convert_from(request, 'UTF8'), 'response', response`,
  'effects',
)} AS effects, ${objectOf(
  `run_id || '|' || plan_seq || '|' || call_index`,
  `'request_id', request_id, 'status', CASE WHEN answer->>'kind' = 'expired' THEN 'expired'
     WHEN answered_at IS NOT NULL THEN 'answered' WHEN expires_at <= ${now} THEN 'late' ELSE 'open' END`,
  'input_requests',
)} AS questions, ${objectOf(
  `run_id || '|' || plan_seq || '|' || call_index || '|' || part`,
  `'status', COALESCE(outcome->>'status', CASE WHEN due_at <= ${now} THEN 'late' ELSE 'open' END), 'seen', seen_at IS NOT NULL`,
  'waits',
)} AS waits, ${objectOf(
  'key',
  `'run', response->>'id', 'hash', request_hash`,
  'idempotency',
)} AS keys, ${listOf(`'id', outbox_id, 'run', run_id, 'due', ring_at <= ${now}`, 'outbox', 'outbox_id')} AS "wakeUps"`

/** All that stands in the database, as the protocol sees it. */
export const readProtocol = async (sql: Sql): Promise<ProtocolState> => {
  const { rows } = await sql.query<ProtocolState>(statement)
  return rows[0] ?? emptyProtocol
}
