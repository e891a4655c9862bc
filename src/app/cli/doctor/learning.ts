import { queryOne } from '../../../infra/database/database.ts'
import { type DoctorCheck, pass } from './check.ts'
import { hasDatabase, withUnmigratedDatabase } from './database.ts'

/** Runs that have waited for more than a minute, as nothing learns or as it is too slow. By columns that every login may read. */
const lateStatement = `
  SELECT count(*)::int AS late, COALESCE(extract(epoch FROM now() - min(created_at)), 0)::int AS seconds
  FROM mason.distillations WHERE failed_at IS NULL AND created_at < now() - interval '1 minute'`

/** Whether ended runs are learned from in time. */
export const checkLearning: DoctorCheck = async (config) => {
  if (!hasDatabase(config)) return []
  const row = await withUnmigratedDatabase(config, (database) =>
    queryOne<{ late: number; seconds: number }>(database, lateStatement, []),
  )
  if (!row || row.late === 0) return [pass('ended runs are learned from in time')]
  const remedy = config.learning
    ? 'start a worker, or `mason memory-worker` for the ones that are late'
    : 'start `mason memory-worker`: MASON_LEARNING=off keeps workers from learning'
  return [pass(`ended runs are not learned from: ${row.late}, the oldest ended ${row.seconds} s ago`, remedy)]
}
