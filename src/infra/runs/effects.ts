import { MasonError } from '../../state/errors.ts'
import type { CallRef, Effect, EffectRequest, Sql } from '../../state/ports.ts'
import { one } from '../database/database.ts'
import { sha256 } from '../ids.ts'
import type { Fence } from './append.ts'
import { leaseLost } from './steady.ts'

type Row = {
  status: 'intent' | 'sent' | 'succeeded' | 'failed' | 'unknown'
  request: Uint8Array
  sends: number
  age_ms: number | null
  response: string | null
}

/** The run's row is locked, not just read: a claim at this very moment comes either before or after, never beside it. */
const mine = `mine AS (SELECT run_id FROM runs WHERE tenant = $1 AND run_id = $2 AND epoch = $3 AND status = 'running' FOR SHARE)`

/** Writes the intent under the fence, or finds the one that stands. */
const intentStatement = `
  WITH ${mine}, made AS (
    INSERT INTO effects (tenant, effect_id, run_id, class, request, request_hash, status)
    SELECT $1, $4, $2, $5, $6, $7, 'intent' FROM mine ON CONFLICT (tenant, effect_id) DO NOTHING
    RETURNING status, request, sends, NULL::double precision AS age_ms, response
  )
  SELECT * FROM made UNION ALL
  SELECT e.status, e.request, e.sends, extract(epoch FROM clock_timestamp() - e.first_sent_at) * 1000, e.response
  FROM effects e, mine WHERE e.tenant = $1 AND e.effect_id = $4 AND NOT EXISTS (SELECT FROM made)`

const sentStatement = `
  WITH ${mine}
  UPDATE effects e SET status = 'sent', sends = sends + 1, first_sent_at = COALESCE(first_sent_at, clock_timestamp())
  FROM mine WHERE e.tenant = $1 AND e.effect_id = $4 AND e.status IN ('intent', 'sent') RETURNING e.effect_id`

/** A call asks a person once: what was sent on their word and is unknown again stays so, or one word would send twice. */
const unknownStatement = `
  WITH ${mine}
  UPDATE effects e SET status = CASE WHEN EXISTS (
    SELECT FROM input_requests i WHERE i.tenant = $1 AND i.run_id = $2 AND i.plan_seq = $5 AND i.call_index = $6
      AND i.answered_at <= e.first_sent_at) THEN 'failed' ELSE 'unknown' END
  FROM mine WHERE e.tenant = $1 AND e.effect_id = $4 AND e.status = 'sent'`

const resendStatement = `
  WITH ${mine}
  UPDATE effects e SET status = 'intent', first_sent_at = NULL FROM mine WHERE e.tenant = $1 AND e.effect_id = $4 AND e.status = 'unknown' RETURNING e.effect_id`

/** Share of a provider's idempotency window within which the same key is used again. */
const safeWindow = 0.8

/**
 * Does a call's side effect as exactly once as its provider allows. The stored bytes are sent, never new ones, under a
 * key that names run, plan and call. A take-over that finds it `sent`: keyed within the window sends the same again,
 * queryable looks it up first, anything else is `unknown` and for a person to settle; `resend` is his word that it did
 * not take place. `checkLease` throws when the process stood still too long: after a look-up, and before the first byte.
 * The response becomes durable with the action that records it.
 */
export const doEffect = async (
  sql: Sql,
  fence: Fence,
  call: CallRef,
  request: EffectRequest,
  signal: AbortSignal,
  { resend, checkLease = () => {} }: { resend: boolean; checkLease?: () => void } = { resend: false },
): Promise<Effect> => {
  const effectId = sha256(`${fence.run_id}|${call.plan_seq}|${call.index}`)
  const found = await one<Row>(sql, intentStatement, [
    fence.tenant,
    fence.run_id,
    fence.epoch,
    effectId,
    request.class,
    Buffer.from(request.request),
    sha256(request.request),
  ])
  if (!found) throw leaseLost()
  if (found.status === 'succeeded') return { effect_id: effectId, response: String(found.response) }
  if (found.status === 'unknown' && resend) {
    if (!(await one(sql, resendStatement, [fence.tenant, fence.run_id, fence.epoch, effectId])))
      throw leaseLost()
  } else if (found.status === 'unknown' || found.status === 'failed') throw unknownEffect(effectId)

  const again = found.status === 'sent' ? againOf(found, request) : 'send'
  if (again === 'unknown') {
    const values = [fence.tenant, fence.run_id, fence.epoch, effectId, call.plan_seq, call.index]
    await sql.query(unknownStatement, values)
    throw unknownEffect(effectId)
  }
  signal.throwIfAborted()
  if (!(await one(sql, sentStatement, [fence.tenant, fence.run_id, fence.epoch, effectId]))) throw leaseLost()
  if (again !== 'send') {
    // the last thing before the send: what another one sent while the database took its time is still seen
    const response = await again.lookup(effectId, signal)
    if (response !== null) return { effect_id: effectId, response }
    signal.throwIfAborted()
    checkLease()
  }
  const stored = Buffer.from(found.request).toString('utf8')
  return { effect_id: effectId, response: await request.send(stored, effectId, checkLease, signal) }
}

type Again = 'send' | 'unknown' | { lookup: NonNullable<EffectRequest['lookup']> }

/** What may be done by whom takes over one that is marked as sent. */
const againOf = (found: Row, request: EffectRequest): Again => {
  if (request.class === 'keyed')
    return (found.age_ms ?? 0) < safeWindow * (request.windowMs ?? 0) ? 'send' : 'unknown'
  if (request.class !== 'queryable' || !request.lookup) return 'unknown'
  return { lookup: request.lookup.bind(request) }
}

const unknownEffect = (effectId: string): MasonError =>
  new MasonError('effect_unknown', `it is not known whether the side effect ${effectId} took place`, {
    remedy: 'look it up at the provider under that key; it is not sent again by itself',
    detail: { effect_id: effectId },
  })
