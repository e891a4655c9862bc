import { hasRow } from '../../../infra/database/database.ts'
import { isUniqueViolation } from '../../../infra/database/database-errors.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { toDelayMs } from '../ledger/delays.ts'
import type { PaymentProvider } from '../providers/provider.ts'
import type { PaymentExecutor } from './payment-executor.ts'

/** A webhook as it came. */
export type InboxMessage = {
  message_id: number
  provider_id: string
  headers: Record<string, string>
  body: Uint8Array
  received_at: Date
  tries: number
}

/** Takes messages that are due; they are due again when the lease is over. */
export const takeMessages = async (sql: Sql, limit: number, leaseMs: number): Promise<InboxMessage[]> =>
  (
    await sql.query<InboxMessage>(
      `UPDATE payment_inbox SET tries = tries + 1, next_at = clock_timestamp() + $2::int * interval '1 millisecond'
       WHERE message_id IN (SELECT message_id FROM payment_inbox WHERE done_at IS NULL AND next_at <= clock_timestamp()
         ORDER BY next_at LIMIT $1 FOR UPDATE SKIP LOCKED)
       RETURNING message_id, provider_id, headers, body, received_at, tries`,
      [limit, leaseMs],
    )
  ).rows

/** What anyone may have sent is not kept: it would fill the disk. */
const finish = async (
  sql: Sql,
  { message_id }: InboxMessage,
  result: 'applied' | 'duplicate' | 'not_genuine',
  eventId: string | null = null,
): Promise<void> =>
  void (await sql.query(
    `UPDATE payment_inbox SET done_at = clock_timestamp(), result = $2, event_id = $3,
       headers = CASE WHEN $2 = 'not_genuine' THEN '{}' ELSE headers END, body = CASE WHEN $2 = 'not_genuine' THEN '' ELSE body END
     WHERE message_id = $1 AND done_at IS NULL`,
    [message_id, result, eventId],
  ))

/** Verifies a webhook and applies its event once, in whatever order events come: a payment that is settled never changes. */
export const handleMessage = async (
  sql: Sql,
  message: InboxMessage,
  openProvider: (providerId: string) => Promise<PaymentProvider>,
  executor: Pick<PaymentExecutor, 'applyEvent'>,
): Promise<void> => {
  const provider = await openProvider(message.provider_id)
  // by the time at which it came: the executor may have been down meanwhile
  const event = provider.readWebhook(message.headers, message.body, message.received_at)
  if (!event) return finish(sql, message, 'not_genuine')
  const known = [message.provider_id, event.event_id]
  if (await hasRow(sql, 'SELECT FROM payment_inbox WHERE provider_id = $1 AND event_id = $2', known))
    return finish(sql, message, 'duplicate')
  const isApplied = await executor.applyEvent(
    event.key,
    message.provider_id,
    event.provider_ref,
    event.answer,
  )
  if (!isApplied) {
    const delay = [message.message_id, toDelayMs(message.tries)]
    await sql.query(
      `UPDATE payment_inbox SET next_at = clock_timestamp() + $2::int * interval '1 millisecond' WHERE message_id = $1`,
      delay,
    )
    return
  }
  // two copies at one moment: applying twice changes nothing, and one of them keeps the id
  await finish(sql, message, 'applied', event.event_id).catch((error: unknown) => {
    if (!isUniqueViolation(error)) throw error
    return finish(sql, message, 'duplicate')
  })
}
