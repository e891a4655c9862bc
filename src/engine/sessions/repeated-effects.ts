import { sha256 } from '../../infra/lib/ids.ts'
import { readAnsweredCall, readPlannedCalls } from '../../state/calls.ts'
import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { ActionBody } from '../../state/runtime-state.ts'

type Run = { run_id: string; session_id: string; first_seq: number | null; next_seq: number | null }

/** Rows `line` of a run ($1, $2) and those whose actions it may have copies of: the run that it was forked from, and so on. */
export const runLineSql = `line AS (
  SELECT run_id, parent_run_id FROM runs WHERE tenant = $1 AND run_id = $2
  UNION SELECT l.parent_run_id, r.parent_run_id FROM line l LEFT JOIN runs r ON r.tenant = $1 AND r.run_id = l.parent_run_id
  WHERE l.parent_run_id IS NOT NULL)`

/** Those that were sent; one that an operator said did not take place is `failed`. */
const effectsStatement = `WITH RECURSIVE ${runLineSql}
  SELECT e.run_id, e.effect_id, e.class AS kind, e.status FROM line JOIN effects e ON e.tenant = $1 AND e.run_id = line.run_id
  WHERE e.class <> 'pure' AND e.status IN ('sent', 'succeeded', 'unknown') ORDER BY e.created_at, e.effect_id`

type EffectRow = { run_id: string; effect_id: string; kind: string; status: string }
/** The action that answers a call. `copied`: from another run, whose call it was. */
type Answer = { action: number; node: string; copied: boolean }

/** A call of a run; null: it is not known which. */
export type UnrepeatableCall = { run_id: string; plan_seq: number | null; call_index: number | null }

/** What was done for runs and is never done again, not even where effects may be repeated. A feature provides it. */
export type UnrepeatableWork = {
  /** The calls that did it, of a run and the others of its `runLineSql`. */
  listCalls(sql: Sql, businessId: string, runId: string): Promise<UnrepeatableCall[]>
  /** Why a run that would repeat such a call is refused. */
  toError(runId: string): MasonError
}

/** Throws the error of unrepeatable work, and `has_effects` unless they may be repeated, for what a run did after an action of it. */
export const checkRepeatedEffects = async (
  sql: Sql,
  businessId: string,
  run: Run,
  after: number,
  mayRepeat: boolean,
  unrepeatable: UnrepeatableWork | null,
): Promise<void> => {
  const effects = (await sql.query<EffectRow>(effectsStatement, [businessId, run.run_id])).rows
  const calls = (await unrepeatable?.listCalls(sql, businessId, run.run_id)) ?? []
  if (effects.length === 0 && calls.length === 0) return
  const answers = await readAnswers(sql, businessId, run)
  const isRepeated = (of: string, answer: Answer | undefined): boolean =>
    of === run.run_id
      ? answer === undefined || answer.action > after
      : answer?.copied === true && answer.action > after
  if (
    unrepeatable &&
    calls.some((row) => isRepeated(row.run_id, answers.get(`${row.plan_seq}|${row.call_index}`)))
  )
    throw unrepeatable.toError(run.run_id)
  if (mayRepeat) return
  const byEffect = new Map(
    [...new Set(effects.map(({ run_id }) => run_id))].flatMap((of) =>
      [...answers].map(([call, answer]) => [sha256(`${of}|${call}`), answer] as const),
    ),
  )
  const repeated = effects.filter(({ run_id, effect_id }) => isRepeated(run_id, byEffect.get(effect_id)))
  if (repeated.length === 0) return
  const detail = repeated.map(({ effect_id, kind, status }) => {
    const { action = null, node = null } = byEffect.get(effect_id) ?? {}
    return { action, node, kind, status }
  })
  throw new MasonError('has_effects', `run "${run.run_id}" has side effects, which would happen again`, {
    remedy: 'send "repeat_effects": true where they may, or a from_action after them',
    detail: { effects: detail },
  })
}

/** The actions of a run that answer calls, by the call: the id of its plan and its index. */
const readAnswers = async (
  sql: Sql,
  businessId: string,
  { session_id, first_seq, next_seq }: Run,
): Promise<Map<string, Answer>> => {
  const { rows } = await sql.query<{ seq: number; copied: boolean; body: ActionBody }>(
    `SELECT seq, epoch = 0 AS copied, body FROM actions
     WHERE tenant = $1 AND session_id = $2 AND seq >= $3 AND seq < $4 ORDER BY seq`,
    [businessId, session_id, first_seq ?? 0, next_seq ?? 0],
  )
  const answers = new Map<string, Answer>()
  let plan = 0
  for (const { seq, copied, body } of rows) {
    const action = { id: seq, ...body }
    if (readPlannedCalls(action).length > 0) plan = seq
    const answered = readAnsweredCall(action)
    if (answered) answers.set(`${plan}|${answered.index}`, { action: seq, node: body.node, copied })
  }
  return answers
}
