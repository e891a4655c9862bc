import { type FileContents, type PrepareJob, UnreadableFileError } from '../protocol/child-protocol.ts'
import { type FileFormat, toFormatTitle, unreadReasons } from './sniff.ts'
import type { RowSource } from './tables/row-source.ts'

/** `*.reader.ts`: reads files of more formats than text, JSON and CSV, in the file process. */
export type ReaderDefinition = {
  kind: 'reader'
  /** By format. */
  documents: Partial<Record<FileFormat, (job: PrepareJob, bytes: number) => Promise<FileContents>>>
  /** By format: uses the tables of a file, which are open for that long. The same bytes give the same tables every time. */
  tables: Partial<
    Record<
      FileFormat,
      <Result>(path: string, use: (sources: RowSource[]) => Promise<Result>) => Promise<Result>
    >
  >
}

/** Those of all features. */
export type FileReaders = readonly ReaderDefinition[]

/** See `ReaderDefinition`. */
export const defineReader = (reader: Omit<ReaderDefinition, 'kind'>): ReaderDefinition => ({
  kind: 'reader',
  ...reader,
})

/** The error for a file of a format without a reader. */
export const unreadFormat = (format: FileFormat): Error =>
  new UnreadableFileError(
    format in unreadReasons
      ? unreadReasons[format as keyof typeof unreadReasons]
      : `${toFormatTitle(format)} is not opened here; save it as text, CSV or JSON and upload that`,
  )
