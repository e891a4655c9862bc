import type { Sql } from '../../state/ports.ts'
import type { HealthView } from '../../state/registry/catalog.ts'

type LastError = NonNullable<HealthView['last_error']>

/** What a row of keys or endpoints is read with, to show its health. */
export type HealthColumns = {
  health_state: HealthView['state'] | null
  health_since: Date | null
  health_until: Date | null
  health_error: LastError | null
}
export const healthColumns =
  'h.state AS health_state, h.since AS health_since, h.until AS health_until, h.last_error AS health_error'

export const healthOf = (row: HealthColumns): HealthView => ({
  state: row.health_state ?? 'healthy',
  since: row.health_since?.toISOString() ?? null,
  until: row.health_until?.toISOString() ?? null,
  last_error: row.health_error && {
    code: row.health_error.code,
    message: row.health_error.message,
    at: row.health_error.at,
  },
})

/** It counts as healthy from now on: it was given another chance by hand, or is another one now. */
export const forgetHealth = async (sql: Sql, subject: 'key' | 'endpoint', id: string): Promise<void> =>
  void (await sql.query('DELETE FROM model_health WHERE subject = $1 AND subject_id = $2', [subject, id]))
