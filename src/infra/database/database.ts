import type { Sql, SqlValues } from '../../state/ports/sql.ts'

/**
 * The database, embedded or served. A transient error is `database_unavailable`, any other is the driver's own.
 * Plain statements run under the role `mason_worker` (of an API process with a login of its own: `mason_admin`); work on
 * behalf of a business runs under `mason_api` (of a worker with a login of its own: `mason_business`), which row-level
 * security restricts to that business. No role can bypass it.
 */
export type Database = {
  kind: 'embedded' | 'postgres'
  /** `timeoutMs`: a server that does not answer within it counts as unavailable, and its connection is closed. */
  query<Row = Record<string, unknown>>(
    text: string,
    values?: SqlValues,
    options?: { timeoutMs?: number },
  ): Promise<{ rows: Row[] }>
  /** Several statements as the worker, all or nothing. */
  transaction<T>(work: (sql: Sql) => Promise<T>, options?: ScopeOptions): Promise<T>
  /** Several statements on behalf of one business, all or nothing. */
  asBusiness<T>(businessId: string, work: (sql: Sql) => Promise<T>, options?: BusinessScope): Promise<T>
  close(): Promise<void>
}

/**
 * `pipelined`: `work` sends all its statements before it first waits, so they take one round trip with the commit and a
 * paused process holds no lock. Later statements are refused, and an error thrown by `work` rolls nothing back.
 */
export type ScopeOptions = { pipelined?: boolean }

/** `user`: of the memories, those of this user are visible; without it none are. */
type BusinessScope = ScopeOptions & { user?: string }

/** Starts `work` on the statements of an open transaction. Every driver refuses what a pipelined one sends too late. */
export const runStatements = <T>(
  sql: Sql,
  work: (sql: Sql) => Promise<T>,
  { pipelined = false }: ScopeOptions = {},
): Promise<T> => {
  let open = true
  const working = (async () =>
    work({ query: async (text, values) => (open ? sql.query(text, values) : throwLateStatement()) }))()
  if (pipelined) open = false
  return working
}

/** `work` behind a statement that it does not wait for, so that a pipelined transaction sends them together. */
export const sendFirst =
  <T>(text: string, values: SqlValues, work: (sql: Sql) => Promise<T>) =>
  async (sql: Sql): Promise<T> => {
    const first = sql.query(text, values)
    const [result] = await Promise.all([work(sql), first])
    return result
  }

const throwLateStatement = (): never => {
  throw new Error('a pipelined transaction sent a statement after its first wait')
}

/** What the parts of a process work on; the same database, unless API and workers have logins of their own. */
export type ProcessDatabases = {
  api: Database
  worker: Database
  /** That of the executor of payments; null in the other processes of a server. */
  payments: Database | null
  close(): Promise<void>
}

/** What a server is opened for: `check` refuses one that another version of Mason migrated; `migrate` migrates it before. */
export type ServerSchema = 'check' | 'migrate' | 'unchecked'

/** Ids are data, so they are escaped as literals; NUL would end the text. */
const quoteLiteral = (text: string): string =>
  `E'${text.replaceAll('\0', '\ufffd').replaceAll('\\', '\\\\').replaceAll("'", "''")}'`

/** The SQL that sets role, business and the user of the memories for the rest of the transaction. None of it is planned. */
export const toBusinessScopeSql = (businessId: string, role: string, { user }: BusinessScope = {}): string =>
  `SET LOCAL ROLE ${role}; SET LOCAL mason.business = ${quoteLiteral(businessId)}${user === undefined ? '' : `; SET LOCAL mason."user" = ${quoteLiteral(user)}`}`

/** A run, as its row names it. */
export type RunKey = { tenant: string; run_id: string }

/** Statements, also several in one transaction. */
export type TransactionalSql = Pick<Database, 'query' | 'transaction'>

/** The row of a statement that returns at most one, or null. */
export const queryOne = async <Row>(sql: Sql, text: string, values: SqlValues): Promise<Row | null> => {
  const { rows } = await sql.query<Row>(text, values)
  return rows[0] ?? null
}

/** What a statement counts as `count`. */
export const readCount = async (sql: Sql, text: string, values: SqlValues = []): Promise<number> =>
  (await queryOne<{ count: number }>(sql, text, values))?.count ?? 0

/** Whether a statement returns a row. */
export const hasRow = async (sql: Sql, text: string, values: SqlValues): Promise<boolean> =>
  (await queryOne(sql, text, values)) !== null
