import type { Log, Sql } from '../../state/ports.ts'
import { isSharedRoot } from '../config/files-root.ts'
import { one } from '../database/database.ts'

/** How many businesses could name each other's files below one root; `default` counts once somebody works in it. */
export const countSharing = async (sql: Sql): Promise<number> => {
  const found = await one<{ many: number }>(
    sql,
    `SELECT count(*)::int AS many FROM mason.businesses b
     WHERE tenant <> 'default' OR EXISTS (SELECT FROM mason.sessions s WHERE s.tenant = b.tenant)`,
    [],
  )
  return found?.many ?? 0
}

export const sharedRootRemedy =
  'give each its own: put {business} into MASON_FILES_ROOT where its id is to stand, for example /srv/files/{business}'

/** Says once at start that businesses share a root, where more than one does. */
export const warnOfSharedRoot = async (sql: Sql, root: string | null, log: Log): Promise<void> => {
  if (!isSharedRoot(root)) return
  const businesses = await countSharing(sql)
  if (businesses > 1)
    log.warn(
      { businesses, remedy: sharedRootRemedy },
      'a local mapping of any business may point at the files of all others',
    )
}
