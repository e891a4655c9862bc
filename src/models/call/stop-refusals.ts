import type { Log } from '../../state/ports/log.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { ModelEntry, Registry } from '../ports/model-ports.ts'

/** Notes in a model's row that its vendor refuses the field `stop`. Never throws and does not block. */
export type StopRefusals = { note(model: Pick<ModelEntry, 'id' | 'name'>): void }

/** All processes read the row; an admin can clear it. One that cannot be written is noted at the next refusal. */
export const createStopRefusals = (
  sql: Sql,
  registry: Pick<Registry, 'refresh'>,
  log: Log,
): StopRefusals => ({
  note({ id, name }) {
    log.info({ model: name }, 'the model server refuses stop; it is asked without from now on')
    sql
      .query('UPDATE models SET refuses_stop = true, updated_at = now() WHERE model_id = $1', [id])
      .then(() => registry.refresh())
      .catch((error: unknown) =>
        log.warn({ model: name, error: String(error) }, 'that a model refuses stop could not be stored'),
      )
  },
})
