import { isSharedRoot } from '../infra/config/storage.ts'
import { readCount } from '../infra/database/database.ts'
import type { Log } from '../state/ports/log.ts'
import type { Sql } from '../state/ports/sql.ts'

/** The number of businesses that could name each other's files below one root. `default` counts once it has a session. */
export const countBusinessesSharingRoot = (sql: Sql): Promise<number> =>
  readCount(
    sql,
    `SELECT count(*)::int AS count FROM mason.businesses b
     WHERE tenant <> 'default' OR EXISTS (SELECT FROM mason.sessions s WHERE s.tenant = b.tenant)`,
  )

/** The remedy for a root that businesses share. */
export const sharedRootRemedy =
  'give each business its own folder: put {business} into MASON_FILES_ROOT in place of its id, for example /srv/files/{business}'

/** Logs a warning at start when more than one business uses the same root. */
export const warnAboutSharedRoot = async (sql: Sql, root: string | null, log: Log): Promise<void> => {
  if (!isSharedRoot(root)) return
  const businesses = await countBusinessesSharingRoot(sql)
  if (businesses > 1)
    log.warn(
      { businesses, remedy: sharedRootRemedy },
      'a local mapping of one business may point at the files of the others',
    )
}
