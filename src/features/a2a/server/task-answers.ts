import type { Database } from '../../../infra/database/database.ts'
import type { InputRequestView } from '../../../state/run-view.ts'
import type { Json } from '../../../state/runtime-state.ts'

/** What the agent asks. */
export type TaskQuestion = Pick<InputRequestView, 'id' | 'question' | 'schema' | 'options' | 'expires_at'>
/** A question of a run that was answered, and the message with the answer; that of a secret question is empty. */
export type TaskAnswer = TaskQuestion & { run_id: string; message_id: string; stored: { answer: Json } }

/** The idempotency key of an answer: that of its message, and its id, which `listAnswers` reads. */
export const toAnswerKey = (messageKey: string, messageId: string): string => `${messageKey} ${messageId}`

/** What was asked and answered in these runs, in this order. */
export const listAnswers = (
  database: Database,
  businessId: string,
  runIds: string[],
): Promise<TaskAnswer[]> =>
  database.asBusiness(businessId, async (sql) => {
    const { rows } = await sql.query<TaskAnswer>(
      `SELECT run_id, request_id AS id, question, schema, options, answer AS stored,
         to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS expires_at,
         COALESCE(substring(answer_key FROM '^a2a \\S+ (.+)$'), request_id || '-answer') AS message_id
       FROM input_requests WHERE tenant = $1 AND run_id = ANY($2) AND answer::text LIKE '{"kind":"answered"%' ORDER BY answered_at`,
      [businessId, runIds],
    )
    return rows
  })
