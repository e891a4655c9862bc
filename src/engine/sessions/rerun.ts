import { type Database, queryOne } from '../../infra/database/database.ts'
import { newRunId } from '../../infra/lib/ids.ts'
import { MasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createFieldsError } from '../../state/resource-schema.ts'
import type { AdmittedRequest, RerunRequest } from '../../state/run-request.ts'
import { openStatusesSql, toPublicStatusSql } from '../../state/run-status.ts'
import { contentHash } from '../../state/text/content-hash.ts'
import {
  type Admission,
  type AdmissionRequest,
  admitRow,
  admitTwice,
  findByKey,
  type IdempotencyKey,
} from '../runs/admission.ts'
import { toMetadataEntries } from '../runs/metadata-entries.ts'
import { copyActions, copySession, usageUpTo } from './fork-session.ts'
import { checkRepeatedEffects, type UnrepeatableWork } from './repeated-effects.ts'

type RepeatedRun = Pick<
  AdmissionRequest['row'],
  'session_id' | 'user_id' | 'priority' | 'metadata' | 'webhook_url'
> & {
  request: AdmittedRequest
  turn: number
  first_seq: number | null
  next_seq: number | null
  open: OpenRun | null
}
type OpenRun = { run_id: string; turn: number; status: string }

/** The session is locked, so that it is not deleted while it is copied. */
const runStatement = `
  SELECT r.session_id, r.turn, r.priority, r.first_seq, r.next_seq, q.user_id, q.request, q.metadata::text AS metadata, q.webhook_url,
    (SELECT json_build_object('run_id', e.run_id, 'turn', e.turn, 'status', ${toPublicStatusSql('e.status')}) FROM runs e
     WHERE e.tenant = r.tenant AND e.session_id = r.session_id AND e.turn <= r.turn AND e.status IN ${openStatusesSql}
     ORDER BY e.turn LIMIT 1) AS open
  FROM sessions s JOIN runs r USING (tenant, session_id) JOIN run_requests q USING (tenant, run_id)
  WHERE r.tenant = $1 AND r.run_id = $2 FOR SHARE OF s`

const lockKeyStatement = `SELECT pg_advisory_xact_lock(hashtextextended('mason.rerun ' || $1, 0))`

/**
 * Runs a request again in a new session: a fork right before the run, or right after an action of it, where the new run goes
 * on. Throws `not_found`, `in_use`, `invalid_request`, `has_effects`, what `unrepeatable` and `Admissions.admit` throw.
 * `check`: what refuses a new run of its user, outside of the transaction. `skipLearning`: marks a run that teaches nothing.
 */
export const admitRerun = async (
  database: Database,
  businessId: string,
  runId: string,
  options: RerunRequest,
  {
    key,
    tokenId,
    unrepeatable,
    skipLearning,
    check,
  }: {
    key?: IdempotencyKey
    tokenId: string | null
    unrepeatable: UnrepeatableWork | null
    skipLearning(sql: Sql, businessId: string, runId: string): Promise<unknown>
    check(): Promise<void>
  },
): Promise<Admission> => {
  const candidate = {
    run_id: newRunId(),
    has_own_id: false,
    route: key?.route ?? null,
    key: key?.key ?? null,
    hash: contentHash({ rerun_of: runId, ...options }),
  }
  const findEarlier = (sql: Sql) => (key ? findByKey(sql, businessId, candidate) : Promise.resolve(null))
  const earlier = await database.asBusiness(businessId, findEarlier)
  if (earlier) return earlier
  await check()
  return admitTwice(() =>
    database.asBusiness(businessId, async (sql) => {
      // of two requests with one key the second waits, and finds the run of the first
      if (key) await sql.query(lockKeyStatement, [JSON.stringify([businessId, key.route, key.key])])
      const known = await findEarlier(sql)
      if (known) return known
      const run = await queryOne<RepeatedRun>(sql, runStatement, [businessId, runId])
      if (!run) throw new MasonError('not_found', `there is no run "${runId}"`)
      if (run.open) throw createOpenError(run.open)
      const { from_action: from } = options
      if (from !== undefined) checkAction(run, runId, from)
      await checkRepeatedEffects(
        sql,
        businessId,
        { run_id: runId, ...run },
        from ?? 0,
        options.repeat_effects,
        unrepeatable,
      )
      const { session_id, turn, first_seq, next_seq, open: _, ...same } = run
      const last = await queryOne<{ seq: number }>(
        sql,
        'SELECT COALESCE(max(seq), 0) AS seq FROM actions WHERE tenant = $1 AND session_id = $2 AND turn < $3',
        [businessId, session_id, turn],
      )
      const fork = await copySession(sql, businessId, session_id, {
        turn: turn - 1,
        actionId: last?.seq ?? 0,
      })
      const { prompt = run.request.prompt, models = run.request.models } = options
      const admission = await admitRow(sql, businessId, {
        ...same,
        ...candidate,
        session_id: fork.id,
        request: JSON.stringify({ ...run.request, prompt, ...(models && { models }) }),
        delay_ms: 0,
        entries: toMetadataEntries(JSON.parse(run.metadata)),
        retry_of: runId,
        token_id: tokenId,
      })
      // thrown, so that the fork is rolled back
      if (admission instanceof MasonError) throw admission
      const newId = candidate.run_id
      await sql.query('UPDATE runs SET parent_run_id = $3 WHERE tenant = $1 AND run_id = $2', [
        businessId,
        newId,
        runId,
      ])
      if (from !== undefined && first_seq !== null) {
        const used = await usageUpTo(sql, businessId, session_id, first_seq, from)
        await sql.query(
          `UPDATE runs SET first_seq = $3, next_seq = $4, prompt_tokens = $5, completion_tokens = $6, total_tokens = $7
           WHERE tenant = $1 AND run_id = $2`,
          [
            businessId,
            newId,
            first_seq,
            from + 1,
            used.prompt_tokens,
            used.completion_tokens,
            used.total_tokens,
          ],
        )
        const sessions = { from: session_id, to: fork.id }
        // those of earlier turns are there
        await copyActions(sql, businessId, sessions, [{ old_id: runId, new_id: newId }], from)
      }
      if (!options.learn) await skipLearning(sql, businessId, newId)
      return admission
    }),
  )
}

const createOpenError = ({ run_id, turn, status }: OpenRun): MasonError =>
  new MasonError('in_use', `run "${run_id}" has not ended`, {
    remedy: `wait for it to end, or cancel it`,
    detail: { users: [{ kind: 'run', id: run_id, name: `turn ${turn}, ${status}` }] },
  })

/** The last action of a run that has ended is its end: nothing comes after it. */
const checkAction = ({ first_seq, next_seq }: RepeatedRun, runId: string, action: number): void => {
  const [first, last] = [first_seq ?? 0, (next_seq ?? 0) - 2]
  if (first_seq !== null && action >= first && action <= last) return
  const detail =
    last < first
      ? `run "${runId}" has no action to go on from; leave it out`
      : `is not an action that run "${runId}" goes on from; those are ${first} to ${last}`
  throw createFieldsError({ pointer: '/from_action', detail })
}
