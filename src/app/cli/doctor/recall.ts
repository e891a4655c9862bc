import { queryOne } from '../../../infra/database/database.ts'
import type { RegistryView } from '../../../models/ports/model-ports.ts'
import { findEmbeddingModel, toSpace } from '../../../models/routing/embedding-space.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { formatPlural } from '../terminal.ts'
import { type DoctorFinding, pass } from './check.ts'

/** How earlier turns are found, and how many of them wait to be embedded. By columns that every login may read. */
export const findRecall = async (sql: Sql, view: RegistryView): Promise<DoctorFinding> => {
  const model = findEmbeddingModel(view)
  if (!model)
    return pass(
      'earlier turns and memories are found by shared words only: no model has the role "embedding"',
      'route the role "embedding" to an embedding model, so that they are found by their meaning',
    )
  const row = await queryOne<{ waiting: number }>(
    sql,
    'SELECT count(*)::int AS waiting FROM mason.turns WHERE space <> $1',
    [toSpace(model)],
  )
  return row && row.waiting > 0
    ? pass(
        `${formatPlural(row.waiting, 'earlier turn')} not embedded yet, and found by words until then`,
        'start a worker or `mason memory-worker`; its log says why an embedding failed',
      )
    : pass('earlier turns are found by their meaning')
}
