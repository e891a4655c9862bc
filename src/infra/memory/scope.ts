import type { Sql } from '../../state/ports.ts'
import type { Database, ScopeOptions } from '../database/database.ts'

/** Whose memory it is. */
export type Who = { tenant: string; user_id: string }

/** Stands for all users of a business; no id is that. */
const everyUser = '*'

const inScope = <T>(
  database: Database,
  tenant: string,
  user: string,
  work: (sql: Sql) => Promise<T>,
  options?: ScopeOptions,
): Promise<T> =>
  database.asBusiness(
    tenant,
    async (sql) => {
      const naming = named(sql, user)
      const [result] = await Promise.all([work(sql), naming])
      return result
    },
    options,
  )

/** Asked first, and so answered before anything that `work` asks. */
const named = (sql: Sql, user: string): Promise<unknown> =>
  sql.query(`SELECT set_config('mason.user', $1, true)`, [user])

/** Several statements on behalf of one user, all or nothing: row-level security shows no memory of anybody else. */
export const asUser = <T>(
  database: Database,
  who: Who,
  work: (sql: Sql) => Promise<T>,
  options?: ScopeOptions,
): Promise<T> => inScope(database, who.tenant, who.user_id, work, options)

/** The same for what is done with a memory or a session by its id. */
export const asAllUsers = <T>(
  database: Database,
  tenant: string,
  work: (sql: Sql) => Promise<T>,
  options?: ScopeOptions,
): Promise<T> => inScope(database, tenant, everyUser, work, options)

/** Inside a transaction of the business: from here on it sees the memories of all its users. */
export const seeAllUsers = (sql: Sql): Promise<unknown> => named(sql, everyUser)
