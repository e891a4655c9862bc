import type { Database } from '../../src/infra/database/database.ts'
import type { Sql } from '../../src/state/ports/sql.ts'

/** `before` it is sent, `after` its answer came, `committed`: once the transaction it belongs to is over too. */
export type Side = 'before' | 'after' | 'committed'

/** Tells of every statement whose text has this trait, on each side of it. */
export const watchWrites =
  (trait: RegExp, reached: (side: Side) => void) =>
  (database: Database): Database => {
    const guard = (sql: Sql, onMatch = (): void => {}): Sql => ({
      async query<Row>(text: string, values?: readonly unknown[]) {
        if (!trait.test(text)) return sql.query<Row>(text, values)
        reached('before')
        onMatch()
        const answer = await sql.query<Row>(text, values)
        reached('after')
        return answer
      },
    })
    /** A transaction whose end counts when such a statement was in it. */
    const within = async <T>(transact: (wrap: (sql: Sql) => Sql) => Promise<T>): Promise<T> => {
      let isIn = false
      const note = (): void => {
        isIn = true
      }
      const result = await transact((sql) => guard(sql, note))
      if (isIn) reached('committed')
      return result
    }
    return {
      ...database,
      query: (text, values, options) =>
        guard({ query: (again, given) => database.query(again, given, options) }).query(text, values),
      transaction: (work) => within((wrap) => database.transaction((sql) => work(wrap(sql)))),
      asBusiness: (id, work, ...options) =>
        within((wrap) => database.asBusiness(id, (sql) => work(wrap(sql)), ...options)),
    }
  }
