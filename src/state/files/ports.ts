import type { Json, OriginFile } from '../runtime-state.ts'
import type { OtherFile, PreparedDocument, PreparedTable } from './prepared.ts'

/** What preparing brought: entries by file name, and origin files that came of it (fetched ones, parts of archives). */
export type PreparedFiles = {
  origin_files: OriginFile[]
  documents: Record<string, PreparedDocument>
  tables: Record<string, PreparedTable>
  other_files: Record<string, OtherFile>
}

/** Of the run's earlier turns: names its tables have, and names of files that were tried and are tried again. */
export type PreparedBefore = { tables: readonly string[]; tried: ReadonlySet<string> }

export type TableQuery = {
  sql: string
  /** The tables the statement names, each with its origin file. */
  tables: readonly { table: PreparedTable; file: Readonly<OriginFile> }[]
}

/** Rows in order, at most 200; `more` says that there are others. Or why the statement gave none, for the model. */
export type TableAnswer =
  | { ok: true; columns: string[]; rows: Json[][]; more: boolean }
  | { ok: false; reason: string }
