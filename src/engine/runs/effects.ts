import { hasRow, queryOne } from '../../infra/database/database.ts'
import { sha256 } from '../../infra/lib/ids.ts'
import { sendEffect } from '../../state/effect-protocol.ts'
import { EffectRefusedError, isMasonError, MasonError, toErrorMessage } from '../../state/errors.ts'
import type { EffectStatus } from '../../state/operations.ts'
import type { EffectRequest, EffectResult, UnknownEffect } from '../../state/ports/effects.ts'
import type { CallRef, RunLog } from '../../state/ports/run-log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { type RunFence, toFenceValues } from './claim.ts'
import { createLeaseLostError } from './leases.ts'

type EffectRow = {
  status: EffectStatus
  request: Uint8Array
  sends: number
  age_ms: number | null
  response: string | null
  error: string | null
}

/** The row of the run is locked, not just read: a concurrent claim comes either before or after, never in between. */
const fencedRunSql = `mine AS (SELECT run_id FROM runs WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND status = 'running' FOR SHARE)`

/** Inserts the intent under the fence, or returns the effect that exists. */
const intentStatement = `
  WITH ${fencedRunSql}, inserted AS (
    INSERT INTO effects (tenant, effect_id, run_id, class, request, request_hash, status)
    SELECT $1, $4, $2, $5, $6, $7, 'intent' FROM mine ON CONFLICT (tenant, effect_id) DO NOTHING
    RETURNING status, request, sends, NULL::double precision AS age_ms, response, error
  )
  SELECT * FROM inserted UNION ALL
  SELECT e.status, e.request, e.sends, extract(epoch FROM clock_timestamp() - e.first_sent_at) * 1000, e.response, e.error
  FROM effects e, mine WHERE e.tenant = $1 AND e.effect_id = $4 AND NOT EXISTS (SELECT FROM inserted)`

const sentStatement = `
  WITH ${fencedRunSql}
  UPDATE effects e SET status = 'sent', sends = sends + 1, first_sent_at = COALESCE(first_sent_at, clock_timestamp())
  FROM mine WHERE e.tenant = $1 AND e.effect_id = $4 AND e.status IN ('intent', 'sent') RETURNING e.effect_id`

/** What was sent is unknown, or nothing happened. */
const outcomeStatement = `
  WITH ${fencedRunSql}
  UPDATE effects e SET status = $5, error = $6
  FROM mine WHERE e.tenant = $1 AND e.effect_id = $4 AND e.status = 'sent' RETURNING e.effect_id`

/** Safe to repeat. */
const responseStatement = `
  WITH ${fencedRunSql}
  UPDATE effects e SET status = 'succeeded', response = $5::json FROM mine
  WHERE e.tenant = $1 AND e.effect_id = $4 AND e.status IN ('sent', 'succeeded') RETURNING e.effect_id`

/**
 * Performs the side effect of a call as exactly once as its provider allows. The stored bytes are sent, never new ones,
 * under a key that names run, plan and call, by `sendEffect`. One that is unknown stays so until an operator has settled it:
 * see `createUnknownEffects`. Throws an `EffectRefusedError` where nothing happened.
 * The response becomes durable with the action that records it, or at once where the request says so.
 */
export const performEffect = async (
  sql: Sql,
  fence: RunFence,
  call: CallRef,
  request: EffectRequest,
  signal: AbortSignal,
  { checkLease = () => {}, error = null }: { checkLease?: () => void; error?: string | null } = {},
): Promise<EffectResult> => {
  const effectId = sha256(`${fence.run_id}|${call.plan_seq}|${call.index}`)
  const key = [...toFenceValues(fence), effectId]
  const intent = [...key, request.class, Buffer.from(request.request), sha256(request.request)]
  const effect = await queryOne<EffectRow>(sql, intentStatement, intent)
  if (!effect) throw createLeaseLostError()
  if (effect.status === 'succeeded') return { effect_id: effectId, response: String(effect.response) }
  if (effect.status === 'refused' || effect.status === 'failed')
    throw new EffectRefusedError(effect.error ?? 'the side effect did not take place')
  if (effect.status === 'unknown') throw createUnknownEffectError(effectId, effect)

  const write = async (statement: string, ...values: string[]): Promise<void> => {
    if (!(await hasRow(sql, statement, [...key, ...values]))) throw createLeaseLostError()
  }
  const stored = {
    key: effectId,
    request: effect.request,
    status: effect.status === 'sent' ? effect.status : ('intent' as const),
    age_ms: effect.age_ms,
  }
  const store = {
    markSent: () => write(sentStatement),
    markUnknown: () => markOutcome('unknown', error ?? lostWorkerText),
  }
  const markOutcome = (status: EffectStatus, text: string): Promise<void> =>
    write(outcomeStatement, status, cutText(text, maxErrorChars))
  try {
    const response = await sendEffect(stored, request, store, checkLease, signal)
    if (response !== null) {
      if (request.storesResponse) await write(responseStatement, JSON.stringify(response))
      return { effect_id: effectId, response }
    }
  } catch (thrown) {
    // known by its code: a package of tools may have a copy of Mason of its own
    if ((thrown as { code?: unknown } | null)?.code !== 'effect_refused') throw thrown
    const refusal = isMasonError(thrown) ? thrown : new EffectRefusedError(toErrorMessage(thrown))
    // stored before the call can have it: a take-over does not send what was refused
    await markOutcome('refused', refusal.message)
    throw refusal
  }
  throw createUnknownEffectError(effectId, { ...effect, error: error ?? lostWorkerText })
}

const maxErrorChars = 2000
const lostWorkerText = 'its worker was lost before the response came'

const createUnknownEffectError = (
  effect_id: string,
  { sends, error }: Pick<EffectRow, 'sends' | 'error'>,
): MasonError =>
  new MasonError(
    'effect_unknown',
    `it is unknown whether the side effect ${effect_id} took place${error === null ? '' : `: ${error}`}`,
    {
      remedy: 'look it up at the provider under that key; Mason does not send it again by itself',
      detail: { effect_id, sends } satisfies UnknownEffect,
    },
  )

/**
 * Wraps the log of a run. `whenRecorded` resolves while no side effect is between its first byte and the action that
 * records it: a run that is stopped there leaves a question to a person that a moment later has an answer.
 */
export const guardEffects = (log: RunLog): { log: RunLog; whenRecorded(): Promise<void> } => {
  const waiting: (() => void)[] = []
  let isPending = false
  const finish = (): void => {
    isPending = false
    for (const resolve of waiting.splice(0)) resolve()
  }
  return {
    log: {
      ...log,
      async effect(...request) {
        isPending = true
        try {
          const result = await log.effect(...request)
          if (request[1].storesResponse) finish()
          return result
        } catch (error) {
          finish()
          throw error
        }
      },
      async append(entry) {
        await log.append(entry)
        if (entry.effect) finish()
      },
    },
    whenRecorded: () => (isPending ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve()),
  }
}
