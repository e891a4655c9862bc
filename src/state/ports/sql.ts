/** The values of a statement: a list for `$1` and on, or one for each `$name` of its text, null without one. */
export type SqlValues = readonly unknown[] | Readonly<Record<string, NonNullable<unknown> | null>>

/** The smallest database: one statement, or several inside a transaction that the caller holds. */
export type Sql = {
  query<Row = Record<string, unknown>>(text: string, values?: SqlValues): Promise<{ rows: Row[] }>
}
