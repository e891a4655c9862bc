import type { Sql } from '../../state/ports.ts'

/**
 * The database, embedded or served. A fault that passes is `database_unavailable`, any other the driver's own.
 * Plain statements run under `mason_worker`; what is done on behalf of a business runs under `mason_api`, which
 * row-level security binds to that business. Neither role can bypass it.
 */
export type Database = Sql & {
  kind: 'embedded' | 'postgres'
  /** Several statements as the worker, all or nothing. */
  transaction<T>(work: (sql: Sql) => Promise<T>, options?: ScopeOptions): Promise<T>
  /** Several statements on behalf of one business, all or nothing. */
  asBusiness<T>(businessId: string, work: (sql: Sql) => Promise<T>, options?: ScopeOptions): Promise<T>
  close(): Promise<void>
}

/**
 * `atOnce`: `work` asks everything before it first waits, so that it all takes one round trip, the commit with it: a
 * process that stands still meanwhile holds no lock. What it asks later is refused, and what it throws takes nothing back.
 */
export type ScopeOptions = { atOnce?: boolean }

/** Sets role and business for the rest of the transaction. The id is data, so it is escaped as a literal. */
export const businessScope = (businessId: string): string =>
  `SET LOCAL ROLE mason_api; SELECT set_config('mason.business', '${businessId.replaceAll("'", "''")}', true)`

/** The first row of a statement that gives at most one. */
export const one = async <Row>(sql: Sql, text: string, values: readonly unknown[]): Promise<Row | null> => {
  const { rows } = await sql.query<Row>(text, values)
  return rows[0] ?? null
}
