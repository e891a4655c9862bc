import type { Database } from '../../../infra/database/database.ts'
import type { Sql } from '../../../state/ports/sql.ts'

/** The user whose memories are meant. */
export type MemoryOwner = { business: string; user_id: string }

/** The `user_id` that means all users of a business, for work on a memory or a session by its id; no user has it. */
export const everyUser = '*'

/** A transaction for one user: row-level security hides the memories of every other. */
export const asUser = <T>(
  database: Database,
  { business, user_id }: MemoryOwner,
  work: (sql: Sql) => Promise<T>,
): Promise<T> => database.asBusiness(business, work, { user: user_id })

/** The same for work that sends all its statements before it first waits. */
export const sendAsUser = <T>(
  database: Database,
  { business, user_id }: MemoryOwner,
  work: (sql: Sql) => Promise<T>,
): Promise<T> => database.asBusiness(business, work, { user: user_id, pipelined: true })

type Waiting = {
  work(sql: Sql): Promise<unknown>
  resolve(result: never): void
  reject(error: unknown): void
}

/**
 * A database whose pipelined transactions for this user share one where they are begun in one turn of the event loop: for
 * statements that read. If one fails, all do.
 */
export const shareReads = (database: Database, { business, user_id }: MemoryOwner): Database => {
  let waiting: Waiting[] = []
  const readAll = (): void => {
    const reads = waiting
    waiting = []
    sendAsUser(database, { business, user_id }, (sql) =>
      Promise.all(reads.map(({ work }) => work(sql))),
    ).then(
      (results) => {
        for (const [at, { resolve }] of reads.entries()) resolve(results[at] as never)
      },
      (error: unknown) => {
        for (const { reject } of reads) reject(error)
      },
    )
  }
  return {
    ...database,
    asBusiness: (id, work, scope) =>
      scope?.pipelined && scope.user === user_id && id === business
        ? new Promise((resolve, reject) => {
            if (waiting.length === 0) setImmediate(readAll)
            waiting.push({ work, resolve: resolve as Waiting['resolve'], reject })
          })
        : database.asBusiness(id, work, scope),
  }
}

/** Inside a transaction of the business: from here on it sees the memories of all its users. */
export const showAllUsers = (sql: Sql): Promise<unknown> =>
  sql.query(`SELECT set_config('mason.user', $1, true)`, [everyUser])
