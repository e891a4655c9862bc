import type { Outcome } from '../../state/outcome.ts'
import type { LogEntry, RunResult } from '../../state/ports/run-log.ts'
import type { RunFence } from './claim.ts'

/** The last action of a run, with the end it brings. */
export type FinalEntry = LogEntry & { outcome: Outcome; result: RunResult }

const common = {
  tenant: 'text',
  run_id: 'text',
  epoch: 'int',
  seq: 'int',
  attempt_id: 'text',
  body: 'text',
  patch: 'text',
  worked_ms: 'bigint',
  prompt_tokens: 'bigint',
  completion_tokens: 'bigint',
  total_tokens: 'bigint',
  visit_id: 'text',
  ms: 'int',
  worker: 'text',
  prompt_sha256: 'text',
}
const ending = { ...common, status: 'text', finish_reason: 'text', result: 'text' }

/** The columns of a row to append. Naming one more table costs each statement a tenth of a millisecond, so few of them do. */
const columns = {
  append: common,
  effect: { ...common, effect_id: 'text', response: 'text' },
  finish: ending,
  failure: { ...ending, error: 'text', node: 'text' },
} satisfies Record<string, Record<string, string>>

/** What is appended: an action alone, one that settles a side effect, the last one of a run, or of one that failed. */
export type AppendKind = keyof typeof columns

/** An action as the statements take it; texts are JSON. */
export type AppendRow = Record<string, string | number | null> & { attempt_id: string }

/** An action to append. */
export type Append = { kind: AppendKind; row: AppendRow }

/** The row of an action under the fence of its run. */
export const toAppendRow = (fence: RunFence, entry: LogEntry | FinalEntry): Append => {
  const { tenant, run_id, epoch, worker_id } = fence
  const { seq, attempt_id, body, patch, usage, visit, worked_ms, effect } = entry
  const row = {
    tenant,
    run_id,
    epoch,
    seq,
    attempt_id,
    body,
    patch,
    worked_ms: Math.round(worked_ms),
    ...usage,
    visit_id: visit.id,
    ms: Math.round(visit.ms),
    worker: worker_id ?? null,
    prompt_sha256: visit.prompt_sha256,
  }
  if (!('outcome' in entry)) {
    if (!effect) return { kind: 'append', row }
    const { effect_id, response } = effect
    return { kind: 'effect', row: { ...row, effect_id, response: JSON.stringify(response) } }
  }
  const { outcome, result } = entry
  const end = {
    ...row,
    status: outcome.status,
    finish_reason: outcome.status === 'completed' ? outcome.reason : null,
    result: JSON.stringify(result),
  }
  if (outcome.status !== 'failed') return { kind: 'finish', row: end }
  return { kind: 'failure', row: { ...end, error: outcome.error.code, node: outcome.error.node ?? null } }
}

/** Beside the action: the row of the result, and the wake-up of the next run of the session. */
const besideEnd = `, result AS (
    INSERT INTO run_results (tenant, run_id, result) SELECT tenant, run_id, result::json FROM mine
  ), wake_up AS (
    INSERT INTO outbox (tenant, run_id) SELECT tenant, next_run.run_id FROM mine CROSS JOIN LATERAL (
      SELECT r.run_id FROM runs r WHERE r.tenant = mine.tenant AND r.session_id = mine.session_id
        AND r.turn > mine.turn AND r.status = 'queued' ORDER BY r.turn LIMIT 1) next_run
  )`
const beside: Record<AppendKind, string> = {
  append: '',
  effect: `, effect AS (
    UPDATE effects e SET status = 'succeeded', response = mine.response::json FROM mine
    WHERE e.tenant = mine.tenant AND e.effect_id = mine.effect_id AND e.status = 'sent'
  )`,
  finish: besideEnd,
  failure: `${besideEnd}, failure AS (
    INSERT INTO run_failures (tenant, run_id, error, node, created_at)
    SELECT tenant, run_id, error, node, created_at FROM mine WHERE error IS NOT NULL
  )`,
}

/** An append that ends its run also frees the lease. */
const alsoSet = (kind: AppendKind): string =>
  kind === 'finish' || kind === 'failure'
    ? ', status = item.status, finish_reason = item.finish_reason, ended_at = clock_timestamp(), lease_owner = NULL, lease_until = NULL'
    : ''

/** Always true: the planner then expects few rows, and finds the run of each by its key, however small the table was. */
const fewRows = 'item.seq % 1 = 0'

/**
 * Advances each run that this worker still has, and appends its action, in one statement that returns the attempts it
 * committed. `alone` waits for the row of its run. The other forms leave out a run whose row is locked: `one` a row, `many`
 * rows in the order of their runs, so that two of them never wait for each other.
 */
const buildAppendStatement = (kind: AppendKind, form: 'alone' | 'one' | 'many'): string => {
  const fields = Object.entries(columns[kind])
  const given =
    form === 'many'
      ? `SELECT item.* FROM json_to_recordset($1::json) AS item(${fields.map(([name, type]) => `${name} ${type}`).join(', ')}) WHERE ${fewRows} ORDER BY tenant, run_id`
      : `SELECT ${fields.map(([name, type], at) => `$${at + 1}::${type} AS ${name}`).join(', ')}`
  const items =
    form === 'alone'
      ? given
      : `SELECT item.* FROM (${given}) item CROSS JOIN LATERAL (
      SELECT FROM runs r WHERE r.tenant = item.tenant AND r.run_id = item.run_id FOR NO KEY UPDATE SKIP LOCKED) locked`
  return `
  WITH item AS (
    ${items}
  ), mine AS (
    UPDATE runs r SET next_seq = next_seq + 1, stalls = 0, worked_ms = item.worked_ms,
      prompt_tokens = r.prompt_tokens + item.prompt_tokens, completion_tokens = r.completion_tokens + item.completion_tokens,
      total_tokens = r.total_tokens + item.total_tokens${alsoSet(kind)}
    FROM item WHERE r.tenant = item.tenant AND r.run_id = item.run_id AND r.epoch = item.epoch AND r.next_seq = item.seq
      AND r.status = 'running'
    RETURNING item.*, r.session_id, r.turn, r.created_at
  )${beside[kind]}
  INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, body, patch, visit_id, ms, worker, prompt_sha256)
  SELECT tenant, session_id, seq, run_id, turn, epoch, attempt_id, body::json, patch::json, visit_id, ms, worker,
    decode(prompt_sha256, 'hex') FROM mine
  RETURNING attempt_id`
}

const kinds = Object.keys(columns) as AppendKind[]
const buildStatements = (form: 'alone' | 'one' | 'many') =>
  Object.fromEntries(kinds.map((kind) => [kind, buildAppendStatement(kind, form)])) as Record<
    AppendKind,
    string
  >
const statements = {
  alone: buildStatements('alone'),
  one: buildStatements('one'),
  many: buildStatements('many'),
}

/** The statement for one row: it waits for the row of the run where `waits`, else it may commit nothing. */
export const toAppendStatement = (
  { kind, row }: Append,
  { waits }: { waits: boolean },
): [text: string, values: unknown[]] => [
  statements[waits ? 'alone' : 'one'][kind],
  Object.keys(columns[kind]).map((name) => row[name]),
]

const widestKind = (appends: readonly Append[]): AppendKind =>
  (appends.find(({ kind }) => kind === 'failure') ?? (appends[0] as Append)).kind

/** The statement for rows of several runs. */
export const toBatchStatement = (appends: readonly Append[]): [text: string, values: unknown[]] => {
  return [statements.many[widestKind(appends)], [JSON.stringify(appends.map(({ row }) => row))]]
}
