import type { RunKey } from '../../infra/database/database.ts'
import type { PreparedTable } from '../../state/files/prepared-files.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { OriginFile } from '../../state/runtime-state.ts'
import { defineRef } from '../definitions.ts'
import type { TableRows } from './child/query-job.ts'

/** One SELECT over tables of the run. */
export type TableQuery = {
  sql: string
  /** The tables the statement names, each with its origin file. */
  tables: readonly { table: PreparedTable; file: Readonly<OriginFile> }[]
}

/** Rows in order, at most 200; `hasMore`: there are others. Or why the statement failed, for the model. */
export type TableQueryResult = ({ ok: true } & TableRows) | { ok: false; reason: string }

/** The tables of one run, and no others. */
export type Tables = {
  /** The rows of one SELECT over tables of the run. */
  query(query: TableQuery, signal: AbortSignal): Promise<TableQueryResult>
}

/** Those of the runs of this process. */
export const runTablesRef = defineRef<(sql: Sql, run: RunKey) => Tables>('tables.run-tables')

declare module '../../state/ports/services.ts' {
  interface FeatureServices {
    tables: Tables
  }
}
