import type { Database } from '../../../infra/database/database.ts'
import type { InputRequestView } from '../../../state/run-view.ts'
import type { Json } from '../../../state/runtime-state.ts'

/** What the agent asks. */
export type TaskQuestion = Pick<InputRequestView, 'id' | 'question' | 'schema' | 'options' | 'expires_at'>
/** A question of a run that was answered, and the message with the answer; that of a secret question is empty. */
export type TaskAnswer = TaskQuestion & { run_id: string; message_id: string; stored: { answer: Json } }

/** The key of an answer holds the id of its message, behind the key of the message. */
const idAt = 'a2a '.length + 64 + ' '.length + 1

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
         COALESCE(NULLIF(substr(answer_key, ${idAt}), ''), request_id || '-answer') AS message_id
       FROM input_requests WHERE tenant = $1 AND run_id = ANY($2) AND answer::text LIKE '{"kind":"answered"%' ORDER BY answered_at`,
      [businessId, runIds],
    )
    return rows
  })
