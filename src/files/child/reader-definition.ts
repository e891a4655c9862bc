import { type FileContents, type PrepareJob, UnreadableFileError } from '../protocol/child-protocol.ts'
import { type FileFormat, toFormatTitle, unreadReasons } from './sniff.ts'

/** A cell of a table: its text as the file has it, or a number where the format has numbers. */
export type Cell = string | number

/** A sheet of a workbook. */
export type Sheet = {
  name: string
  /** May be called again. */
  openRows(): AsyncIterable<Cell[][]>
  /** What could not be read, complete once all rows were. */
  notes(): string[]
}

/** Reads one file. */
export type ReadFile = (
  job: PrepareJob,
  bytes: number,
  readers: FileReaders,
  format: FileFormat,
) => Promise<FileContents>

/** `*.reader.ts`: reads files of more formats than text, in the file process. */
export type ReaderDefinition = {
  kind: 'reader'
  /** By format. */
  files?: Partial<Record<FileFormat, ReadFile>>
  /** By format: uses the sheets of a workbook, which is open for that long. For the feature that reads tables. */
  sheets?: Partial<
    Record<FileFormat, <Result>(path: string, use: (sheets: Sheet[]) => Promise<Result>) => Promise<Result>>
  >
  /** By name: what else the feature does with files in this process (`ReaderJob`). Throws `RefusedStatementError`. */
  jobs?: Record<string, (input: never, readers: FileReaders) => Promise<unknown>>
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
