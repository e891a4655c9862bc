import type { Database } from '../../src/infra/database/database.ts'
import type { Sql, SqlValues } from '../../src/state/ports/sql.ts'

/** `before` it is sent, `after` its answer came, `committed`: once the transaction it belongs to is over too. */
export type Side = 'before' | 'after' | 'committed'

/**
 * Tells of every statement whose text has this trait, on each side of it, and goes on once `reached` has. A pipelined
 * transaction is sent at once: it waits only when it is committed.
 */
export const watchWrites =
  (trait: RegExp, reached: (side: Side, mayWait: boolean) => Promise<void> | void) =>
  (database: Database): Database => {
    const guard = (sql: Sql, mayWait = true, onMatch = (): void => {}): Sql => ({
      async query<Row>(text: string, values?: SqlValues) {
        if (!trait.test(text)) return sql.query<Row>(text, values)
        const before = reached('before', mayWait)
        // after any wait a pipelined statement would be too late
        if (before && mayWait) await before
        onMatch()
        const answer = await sql.query<Row>(text, values)
        const after = reached('after', mayWait)
        if (mayWait) await after
        return answer
      },
    })
    /** A transaction whose end counts when such a statement was in it. */
    const within = async <T>(
      isPipelined: boolean | undefined,
      transact: (wrap: (sql: Sql) => Sql) => Promise<T>,
    ): Promise<T> => {
      let isIn = false
      const note = (): void => {
        isIn = true
      }
      const result = await transact((sql) => guard(sql, !isPipelined, note))
      if (isIn) await reached('committed', true)
      return result
    }
    return {
      ...database,
      query: (text, values, options) =>
        guard({ query: (again, given) => database.query(again, given, options) }).query(text, values),
      transaction: (work, options) =>
        within(options?.pipelined, (wrap) => database.transaction((sql) => work(wrap(sql)), options)),
      asBusiness: (id, work, options) =>
        within(options?.pipelined, (wrap) => database.asBusiness(id, (sql) => work(wrap(sql)), options)),
    }
  }
