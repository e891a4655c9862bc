import type { Sql } from '../../state/ports.ts'

/**
 * The database, embedded or served. Plain statements run under `mason_worker`; what is done on behalf of a business
 * runs under `mason_api`, which row-level security binds to that business. Neither role can bypass it.
 */
export type Database = Sql & {
  kind: 'embedded' | 'postgres'
  /** Several statements as the worker, all or nothing. */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>
  /** Several statements on behalf of one business, all or nothing. */
  asBusiness<T>(businessId: string, work: (sql: Sql) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Sets role and business for the rest of the transaction. The id is data, so it is escaped as a literal. */
export const businessScope = (businessId: string): string =>
  `SET LOCAL ROLE mason_api; SELECT set_config('mason.business', '${businessId.replaceAll("'", "''")}', true)`

/** The first row of a statement that gives at most one. */
export const one = async <Row>(sql: Sql, text: string, values: readonly unknown[]): Promise<Row | null> => {
  const { rows } = await sql.query<Row>(text, values)
  return rows[0] ?? null
}

const connectionLost = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  '57P01',
  '57P02',
  '57P03',
  '08000',
  '08003',
  '08006',
  '53300',
])

/** Whether a statement failed because the server could not be reached: it may or may not have been done. */
export const isConnectionError = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false
  const { code } = error as { code?: unknown }
  if (typeof code === 'string') return connectionLost.has(code)
  // pg gives these no code of their own
  return /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/.test(
    error.message,
  )
}
