import type { PreparedDocument, PreparedTable } from '../../state/files/prepared-files.ts'
import type { LinePage, LineQuery } from '../../state/ports/files.ts'
import type { Json } from '../../state/runtime-state.ts'

/** Opens one file. All paths of this protocol are of this machine. */
export type PrepareJob = {
  kind: 'prepare'
  path: string
  name: string
  type: string
  /** A folder of this job alone, for texts and unpacked entries. */
  folder: string
}

/** What a reader of a feature does beside reading a file, by its name. */
export type ReaderJob = { kind: 'reader'; name: string; input: unknown }

/** Of a file process: bytes of memory, milliseconds of processor time for one job, and the files of the features that read more formats. */
export type ProcessOptions = { maxBytes: number; maxMs: number; readers: readonly string[] }

/** Reads lines of a text. */
export type LinesJob = { kind: 'lines'; path: string; query: LineQuery }

/** A job of the file process. */
export type FileJob = PrepareJob | ReaderJob | LinesJob

/** An entry of an archive, on disk. */
export type UnpackedFile = { name: string; path: string; bytes: number }

/** The text of a document and its structure. `line` numbers begin at 1; `page_lines`: the first line of each page. */
type DocumentContents = Omit<PreparedDocument, 'from' | 'format' | 'notes' | 'text'> & {
  /** Null: the file itself is the text. */
  text: { path: string } | null
}

/** One table of a file: its columns and statistics. */
export type TableContents = Pick<PreparedTable, 'part' | 'rows' | 'columns' | 'notes'>

/** What one file holds. */
export type FileContents = {
  format: string
  document?: DocumentContents
  tables?: TableContents[]
  facts?: Record<string, Json>
  unpacked?: UnpackedFile[]
  notes: string[]
}

/**
 * `unreadable`: about the file, in words for its sender. `refused`: about the statement or pattern, in words for the model. `failed`: an
 * error of the reader itself, for the log.
 */
export type FileReply =
  | { ok: true; contents: FileContents }
  | { ok: true; output: unknown }
  | { ok: true; page: LinePage | null }
  | { ok: false; kind: 'unreadable' | 'refused' | 'failed'; format: string; message: string }

/** Limits of one file: bytes, characters, counts, pixels, levels of elements. Limits of time are the parent's. */
export const fileBounds = {
  fileBytes: 256 * 1024 * 1024,
  wholeBytes: 48 * 1024 * 1024,
  textChars: 20_000_000,
  pages: 2000,
  sections: 100,
  columns: 256,
  replyChars: 4_000_000,
  zipEntries: 2000,
  zipFiles: 100,
  zipDepth: 2,
  zipBytes: 256 * 1024 * 1024,
  zipFileBytes: 32 * 1024 * 1024,
  zipKeptBytes: 96 * 1024 * 1024,
  zipRatio: 200,
  nesting: 1000,
  imageSide: 20_000,
  imagePixels: 100_000_000,
} as const

/** A file cannot be read: what is wrong, and what to do. */
export class UnreadableFileError extends Error {}

/** Bytes of a file are missing or wrong; `detail` is the parser's word on it, also that it ran out of stack. */
export class DamagedFileError extends UnreadableFileError {
  constructor(detail: string) {
    const reason = /call stack/.test(detail)
      ? 'it is nested too deep'
      : detail.split('\n', 1)[0]?.slice(0, 200)
    super(`it is damaged or incomplete (${reason}); save it again and upload it`)
  }
}

/** What to do with a file that is encrypted. */
export const encryptedMessage = 'it is encrypted with a password; save it without one and upload it again'

/** A statement or a pattern is invalid or not allowed. */
export class RefusedStatementError extends Error {}

/** A size as text, in KB or MB. */
export const formatBytes = (bytes: number): string =>
  bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} KB` : `${Math.round(bytes / 1024 / 1024)} MB`
