import type { ImageDescription } from '../files/image-description.ts'
import type { OtherFile, PreparedDocument, PreparedTable } from '../files/prepared-files.ts'
import type { OriginFile } from '../runtime-state.ts'

/** Prepared files: entries by file name, and origin files that preparing added (downloads, parts of archives). */
export type PreparedFiles = {
  origin_files: OriginFile[]
  documents: Record<string, PreparedDocument>
  tables: Record<string, PreparedTable>
  other_files: Record<string, OtherFile>
}

/** Of the run's earlier turns: the names of its tables, and the names of files that are tried again. */
export type PreparedBefore = { tables: readonly string[]; triedFiles: ReadonlySet<string> }

/** Which lines of a text are read: from `first` to `last`, counted from 1; with a pattern (RE2) those that match. */
export type LineQuery = {
  first: number
  last: number
  pattern: string | null
  /** Of what is shown: lines, bytes in all, characters of a line. */
  maxLines: number
  maxBytes: number
  maxLineChars: number
  /** `page`: ends where it is full; lines from their start. `search`: counts all that match; lines around the match. */
  mode: 'page' | 'search'
}

/** A line, or the part of it that is shown; `chars`: of the whole line. */
export type TextLine = { number: number; text: string; chars: number }

/**
 * What a text has of the lines: all `total`, `last` looked at, `found` that match. `hasLongLines`: only the first 500,000
 * characters of some were searched.
 */
export type LinePage = {
  total: number
  last: number
  found: number
  shown: TextLine[]
  hasLongLines: boolean
}

/** `page` is null where the text is binary. Or why it was not read, for the model. */
export type LineQueryResult = { ok: true; page: LinePage | null } | { ok: false; reason: string }

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
  /**
   * The lines of a file, or of this text. A pattern runs outside this process and may take 1.5 s of processor time. Throws
   * like `read`.
   */
  readLines(
    source: Readonly<OriginFile> | string,
    query: LineQuery,
    signal: AbortSignal,
  ): Promise<LineQueryResult>
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
