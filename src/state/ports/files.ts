import type { ImageDescription } from '../files/image-description.ts'
import type { OtherFile, PreparedDocument, PreparedTable } from '../files/prepared-files.ts'
import type { Json, OriginFile } from '../runtime-state.ts'

/** Prepared files: entries by file name, and origin files that preparing added (downloads, parts of archives). */
export type PreparedFiles = {
  origin_files: OriginFile[]
  documents: Record<string, PreparedDocument>
  tables: Record<string, PreparedTable>
  other_files: Record<string, OtherFile>
}

/** Of the run's earlier turns: the names of its tables, and the names of files that are tried again. */
export type PreparedBefore = { tables: readonly string[]; triedFiles: ReadonlySet<string> }

/** One SELECT over tables of the run. */
export type TableQuery = {
  sql: string
  /** The tables the statement names, each with its origin file. */
  tables: readonly { table: PreparedTable; file: Readonly<OriginFile> }[]
}

/** Rows in order, at most 200; `hasMore`: there are others. Or why the statement failed, for the model. */
export type TableQueryResult =
  | { ok: true; columns: string[]; rows: Json[][]; hasMore: boolean }
  | { ok: false; reason: string }

/** The files of one run, and no others. */
export type Files = {
  /** The bytes of one of the run's own files. Throws `not_found` when they are gone; detail `{passing: true}`: a retry may succeed. */
  read(file: Readonly<OriginFile>, signal: AbortSignal): Promise<Uint8Array>
  /** The content of files; the entry of one that cannot be read, or that there was no time for, has the reason. */
  prepare(
    files: readonly Readonly<OriginFile>[],
    before: PreparedBefore,
    signal: AbortSignal,
  ): Promise<PreparedFiles>
  /** The rows of one SELECT over tables of the run. */
  query(query: TableQuery, signal: AbortSignal): Promise<TableQueryResult>
  /** Models' descriptions of images, by the hash of their bytes, within the run's business. */
  descriptions: {
    find(sha256: string): Promise<ImageDescription | null>
    keep(sha256: string, description: ImageDescription): Promise<void>
  }
}

declare module './services.ts' {
  interface Services {
    files: Files
  }
}
