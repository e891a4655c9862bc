import type { Log } from '../../state/ports/log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { ModelEntry } from '../ports/model-ports.ts'

/** Stores answers that a format could not read, redacted, for the admin. Never throws and does not block. */
export type UnreadAnswers = { keep(model: ModelEntry, place: string, raw: string): void }

const maxPerModel = 100

/** PostgreSQL's text cannot hold NUL. */
const toStorableText = (text: string): string => text.replaceAll('\0', '\\u0000').toWellFormed()

/** The newest 100 of each model stay in the table `unread_answers`. `redact` removes secrets. */
export const createUnreadAnswers = (sql: Sql, redact: (text: string) => string, log: Log): UnreadAnswers => ({
  keep(model, place, raw) {
    const values = [model.id, model.format?.id ?? null, toStorableText(place), toStorableText(redact(raw))]
    const sweep = `DELETE FROM unread_answers WHERE model_id = $1 AND answer_id <= (SELECT answer_id FROM unread_answers
      WHERE model_id = $1 ORDER BY answer_id DESC OFFSET ${maxPerModel} LIMIT 1)`
    sql
      .query('INSERT INTO unread_answers (model_id, format_id, place, raw) VALUES ($1, $2, $3, $4)', values)
      .then(() => sql.query(sweep, [model.id]))
      .catch((error: unknown) =>
        log.warn({ model: model.name, error: String(error) }, 'an unreadable answer could not be stored'),
      )
  },
})

/** Deletes those of before so many days. They may quote a user, but name no user or run. */
export const sweepUnreadAnswers = (sql: Sql, days: number): Promise<unknown> =>
  sql.query(`DELETE FROM unread_answers WHERE at < clock_timestamp() - $1::int * interval '1 day'`, [days])
