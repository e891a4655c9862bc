import type { Database, ScopeOptions } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'

/** The user whose memories are meant. */
export type MemoryOwner = { business: string; user_id: string }

/** Means all users of a business; no user has this id. */
const everyUser = '*'

const inScope = <T>(
  database: Database,
  business: string,
  user: string,
  work: (sql: Sql) => Promise<T>,
  options?: ScopeOptions,
): Promise<T> =>
  database.asBusiness(
    business,
    async (sql) => {
      // sent first, so it applies to every statement of `work`
      const setting = setUser(sql, user)
      const [result] = await Promise.all([work(sql), setting])
      return result
    },
    options,
  )

const setUser = (sql: Sql, user: string): Promise<unknown> =>
  sql.query(`SELECT set_config('mason.user', $1, true)`, [user])

/** A transaction for one user: row-level security hides the memories of every other. */
export const asUser = <T>(
  database: Database,
  owner: MemoryOwner,
  work: (sql: Sql) => Promise<T>,
  options?: ScopeOptions,
): Promise<T> => inScope(database, owner.business, owner.user_id, work, options)

/** A transaction for all users of a business, for work on a memory or a session by its id. */
export const asAllUsers = <T>(
  database: Database,
  business: string,
  work: (sql: Sql) => Promise<T>,
  options?: ScopeOptions,
): Promise<T> => inScope(database, business, everyUser, work, options)

/** Inside a transaction of the business: from here on it sees the memories of all its users. */
export const showAllUsers = (sql: Sql): Promise<unknown> => setUser(sql, everyUser)
