/** The smallest database: one statement, or several inside a transaction that the caller holds. */
export type Sql = {
  query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<{ rows: Row[] }>
}
