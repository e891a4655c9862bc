import type { Database } from '../../src/infra/database/database.ts'
import type { Sql, SqlValues } from '../../src/state/ports/sql.ts'

/** A name for a statement: that of the first of these whose text is in it. Null: background work, which is not counted. */
export type StatementNames = readonly (readonly [name: string | null, text: string])[]

/**
 * A database that counts by name what it has answered: statements, and transactions, of which a statement by itself is one. What has no
 * name is counted by its text, so that a new statement is seen.
 */
export const countStatements = (names: StatementNames) => {
  const counts = new Map<string, number>()
  let transactions = 0
  let underWay = 0
  const readName = (text: string): string | null => {
    const named = names.find(([, part]) => text.includes(part))
    return named ? named[0] : text.replaceAll(/\s+/g, ' ').trim()
  }
  /** `scope`: the transaction, which is counted with the first statement in it that is. */
  const counted = async <T>(
    text: string,
    scope: { isCounted: boolean },
    send: () => Promise<T>,
  ): Promise<T> => {
    underWay++
    try {
      return await send()
    } finally {
      underWay--
      const name = readName(text)
      if (name !== null) {
        counts.set(name, (counts.get(name) ?? 0) + 1)
        if (!scope.isCounted) transactions++
        scope.isCounted = true
      }
    }
  }
  const within =
    <T>(work: (sql: Sql) => Promise<T>) =>
    (sql: Sql): Promise<T> => {
      const scope = { isCounted: false }
      return work({
        query: <Row>(text: string, values?: SqlValues) =>
          counted(text, scope, () => sql.query<Row>(text, values)),
      })
    }
  return {
    wrap: (database: Database): Database => ({
      ...database,
      query: <Row>(text: string, values?: SqlValues, options?: { timeoutMs?: number }) =>
        counted(text, { isCounted: false }, () => database.query<Row>(text, values, options)),
      transaction: (work, options) => database.transaction(within(work), options),
      asBusiness: (business, work, options) => database.asBusiness(business, within(work), options),
    }),
    counted: (name: string): number => counts.get(name) ?? 0,
    /** Whether nothing is being asked now. */
    isQuiet: (): boolean => underWay === 0,
    /** What was counted since the last call. */
    take() {
      const taken = { transactions, statements: Object.fromEntries(counts) }
      counts.clear()
      transactions = 0
      return taken
    },
  }
}
