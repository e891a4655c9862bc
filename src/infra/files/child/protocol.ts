import type { PreparedColumn, Section } from '../../../state/files/prepared.ts'
import type { Json } from '../../../state/runtime-state.ts'

/** What the process that opens files is asked, and what it answers. Paths are of this machine. */

export type PrepareJob = {
  kind: 'prepare'
  path: string
  name: string
  type: string
  /** A folder of its own: texts and unpacked entries are written there. */
  folder: string
}

export type LoadedTable = {
  table: string
  path: string
  name: string
  type: string
  part: string | null
  columns: readonly Pick<PreparedColumn, 'name' | 'type'>[]
}

export type QueryJob = {
  kind: 'query'
  sql: string
  tables: readonly LoadedTable[]
  /** Where the loaded tables are kept for the next statement, and where they are written first; null: they are small. */
  kept: { path: string; beside: string } | null
}

export type Job = PrepareJob | QueryJob

export type Unpacked = { name: string; path: string; bytes: number }

export type FoundDocument = {
  title: string | null
  pages: number | null
  lines: number
  chars: number
  /** Null: the file itself is the text. */
  text: { path: string } | null
  head: string
  sections: Section[]
  page_lines: number[]
}

export type FoundTable = { part: string | null; rows: number; columns: PreparedColumn[]; notes: string[] }

export type Found = {
  format: string
  document?: FoundDocument
  tables?: FoundTable[]
  facts?: Record<string, Json>
  unpacked?: Unpacked[]
  notes: string[]
}

export type Cell = string | number | null
export type Rows = { columns: string[]; rows: Cell[][]; more: boolean }

/** `unreadable`: the file's fault, in words for whoever gave it. `refused`: the statement's, in words for the model. */
export type Reply =
  | { ok: true; found: Found }
  | { ok: true; rows: Rows }
  | { ok: false; kind: 'unreadable' | 'refused'; format: string; message: string }

/** Bounds on what one file may take. Bytes, counts; the clocks are the parent's. */
export const bounds = {
  fileBytes: 256 * 1024 * 1024,
  wholeBytes: 48 * 1024 * 1024,
  textChars: 20_000_000,
  pages: 2000,
  sections: 100,
  columns: 256,
  recordChars: 1_000_000,
  zipEntries: 2000,
  zipFiles: 100,
  zipDepth: 2,
  zipBytes: 256 * 1024 * 1024,
  zipFileBytes: 32 * 1024 * 1024,
  zipKeptBytes: 96 * 1024 * 1024,
  zipRatio: 200,
  imageSide: 20_000,
  imagePixels: 100_000_000,
  rows: 200,
  answerChars: 60_000,
} as const

/** Thrown where a file cannot be read: what happened, and what to do. */
export class Unreadable extends Error {}

/** Thrown where a statement is not run. */
export class Refused extends Error {}

export const megabytes = (bytes: number): string =>
  bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} KB` : `${Math.round(bytes / 1024 / 1024)} MB`
