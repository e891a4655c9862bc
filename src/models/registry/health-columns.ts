import type { Sql } from '../../state/ports/sql.ts'
import type { HealthView } from '../schemas/catalog.ts'

type LastError = NonNullable<HealthView['last_error']>

/** The health of a key, endpoint or model, as joined columns. */
export type HealthColumns = {
  health_state: HealthView['state'] | null
  health_since: string | null
  health_until: string | null
  health_error: LastError | null
  health_for_all: boolean | null
}
/** The SQL of these columns; model_health is `h`. */
export const healthColumns =
  'h.state AS health_state, h.since AS health_since, h.until AS health_until, h.last_error AS health_error, h.for_all AS health_for_all'

/** Without a row in model_health it is healthy. */
export const toHealthView = (row: HealthColumns): HealthView => ({
  state: row.health_state ?? 'healthy',
  since: row.health_since,
  until: row.health_until,
  last_error: row.health_error,
  closed_for: (row.health_state ?? 'healthy') === 'healthy' ? null : row.health_for_all ? 'all' : 'some',
})

/** Makes it healthy from now on, a key or model also with each other: an admin enabled it, or what it is made of changed. */
export const resetHealth = async (
  sql: Sql,
  subject: 'key' | 'endpoint' | 'model',
  id: string,
): Promise<void> =>
  void (await sql.query(
    `DELETE FROM model_health WHERE (subject = $1 AND subject_id = $2)
       OR (subject = 'key_model' AND $2 IN (split_part(subject_id, ' ', 1), split_part(subject_id, ' ', 2)))`,
    [subject, id],
  ))
