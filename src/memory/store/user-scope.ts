import { type Database, type ScopeOptions, sendFirst } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'

/** The user whose memories are meant. */
export type MemoryOwner = { business: string; user_id: string }

/** The `user_id` that means all users of a business, for work on a memory or a session by its id; no user has it. */
export const everyUser = '*'

const setUserStatement = `SELECT set_config('mason.user', $1, true)`

/** A transaction for one user: row-level security hides the memories of every other. */
export const asUser = <T>(
  database: Database,
  { business, user_id }: MemoryOwner,
  work: (sql: Sql) => Promise<T>,
  options?: ScopeOptions,
): Promise<T> => database.asBusiness(business, sendFirst(setUserStatement, [user_id], work), options)

/** Inside a transaction of the business: from here on it sees the memories of all its users. */
export const showAllUsers = (sql: Sql): Promise<unknown> => sql.query(setUserStatement, [everyUser])
