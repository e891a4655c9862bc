import { z } from 'zod'
import type { OriginFile, RuntimeState } from '../runtime-state.ts'

/** What `preprocessed_files` holds by file name: what was found in each file, and where its text and rows are. */

/** Where the bytes came from; another origin under the same name is another file. */
const from = z.string()
const notes = z.array(z.string())

/** Lines count from 1 in the document's text; pages (or slides) from 1, null where the format has none. */
const sectionSchema = z.strictObject({
  title: z.string(),
  level: z.int(),
  page: z.int().nullable(),
  line: z.int().positive(),
})

const documentSchema = z.strictObject({
  from,
  format: z.string(),
  title: z.string().nullable(),
  /** Null where the format has none. */
  pages: z.int().nullable(),
  lines: z.int().nonnegative(),
  chars: z.int().nonnegative(),
  /** Null: the file itself is the text. */
  text: z.strictObject({ blob: z.string(), bytes: z.int().nonnegative() }).nullable(),
  head: z.string(),
  /** The first hundred; the first line of every page is among `page_lines`. */
  sections: z.array(sectionSchema),
  /** The line each page begins with. */
  page_lines: z.array(z.int().positive()),
  notes,
})

const columnTypes = ['integer', 'number', 'boolean', 'date', 'time', 'duration', 'text', 'empty'] as const
const columnReadings = ['comma', 'dmy', 'mdy', 'ymd', 'utc', 'doubtful'] as const

const columnSchema = z.strictObject({
  name: z.string(),
  type: z.enum(columnTypes),
  /** How its cells are read where that is not plain: the decimal sign, the order of dates. `doubtful`: a text that may be numbers. */
  reading: z.enum(columnReadings).exactOptional(),
  /** Words that are empty cells in it. */
  null_words: z.array(z.string()).exactOptional(),
  nulls: z.int().nonnegative(),
  /** Different values; null when there are more than the cap. */
  distinct: z.int().nonnegative().nullable(),
  /** Of numbers, dates and times. */
  min: z.union([z.number(), z.string()]).nullable(),
  max: z.union([z.number(), z.string()]).nullable(),
  mean: z.number().nullable(),
  samples: z.array(z.string()),
})

const tableSchema = z.strictObject({
  from,
  format: z.string(),
  /** Its name in SQL. */
  table: z.string(),
  /** Name of the origin file, and the part of it that this table is, such as a sheet. */
  file: z.string(),
  part: z.string().nullable(),
  rows: z.int().nonnegative(),
  columns: z.array(columnSchema),
  notes,
})

const otherFileSchema = z.strictObject({
  from,
  format: z.string(),
  /** False: nothing can be read of it, and `notes` say why and what to do. */
  readable: z.boolean(),
  /** How often it was tried, where the reason may pass; else it is not tried again. */
  tries: z.int().positive().exactOptional(),
  /** An image without a description: it is tried again once a model with vision is set up. */
  unseen: z.literal(true).exactOptional(),
  facts: z.record(z.string(), z.json()),
  notes,
})

/** The entries of `preprocessed_files`. */
export const preparedSchemas = { table: tableSchema, document: documentSchema, other: otherFileSchema }

/** A section of a document: title, level and lines. */
export type DocumentSection = z.infer<typeof sectionSchema>
/** What a document contains: its outline, and the blob of its text. */
export type PreparedDocument = z.infer<typeof documentSchema>
/** The type that all values of a column have. */
export type ColumnType = (typeof columnTypes)[number]
/** A column of a table, with its type and statistics. */
export type PreparedColumn = z.infer<typeof columnSchema>
/** A table that query_table can read. */
export type PreparedTable = z.infer<typeof tableSchema>
/** A file that is no document or table, with facts or a note. */
export type OtherFile = z.infer<typeof otherFileSchema>

type FilesState = Pick<RuntimeState, 'preprocessed_files'>
type File = Readonly<Pick<OriginFile, 'local_path'>> & { readonly mapping: Readonly<OriginFile['mapping']> }
type NamedFile = File & { readonly name: string }

/** Where a file comes from: `provider:path` of a mapped file, else its local path. */
export const toFileOrigin = ({ local_path, mapping }: File): string =>
  mapping ? `${mapping.provider}:${mapping.path}` : local_path

/** Null also where the entry is of another file that had the name before. */
export const findDocument = ({ preprocessed_files }: FilesState, file: NamedFile): PreparedDocument | null =>
  current(documentSchema.safeParse(readOwn(preprocessed_files.documents, file.name)).data, file)

/** Null also where the entry is of another file that had the name before. */
export const findOtherFile = ({ preprocessed_files }: FilesState, file: NamedFile): OtherFile | null =>
  current(otherFileSchema.safeParse(readOwn(preprocessed_files.other_files, file.name)).data, file)

const current = <Entry extends { from: string }>(entry: Entry | undefined, file: File): Entry | null =>
  entry?.from === toFileOrigin(file) ? entry : null

/** Whether a table was made of this file, and not of another that had the name before. */
export const isTableFromFile = ({ file, from }: PreparedTable, origin: NamedFile): boolean =>
  file === origin.name && from === toFileOrigin(origin)

/** The tables of all files, in the order they came; also of files whose name another has by now. */
export const listTables = ({ preprocessed_files }: FilesState): PreparedTable[] =>
  Object.values(preprocessed_files.tables).flatMap((value) => tableSchema.safeParse(value).data ?? [])

/** The entry of a name that may be one of `Object.prototype`. */
export const readOwn = <Entry>(record: Readonly<Record<string, Entry>>, name: string): Entry | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined

/** Whether what a file holds is known already; another one of its name may have been there before. */
export const isFilePrepared = (state: FilesState, file: NamedFile): boolean => {
  const { documents, tables, other_files } = state.preprocessed_files
  const entries = [documents, tables, other_files].map((one) => readOwn(one, file.name))
  return entries.some((entry) => (entry as { from?: unknown } | undefined)?.from === toFileOrigin(file))
}
