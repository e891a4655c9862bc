import type { FileReaders } from '../../files/child/reader-definition.ts'
import { defineReader } from '../../files/child/reader-definition.ts'
import type { FileFormat } from '../../files/child/sniff.ts'
import type { FileContents, PrepareJob } from '../../files/protocol/child-protocol.ts'
import type { QueryJob } from './child/query-job.ts'

const readTables =
  (format: FileFormat) =>
  async (job: PrepareJob, bytes: number, readers: FileReaders): Promise<FileContents> =>
    (await import('./child/prepare-tables.ts')).prepareTables(job, format, bytes, readers)

/** All is loaded with the first table, and SQLite with the first statement. */
export default defineReader({
  files: {
    csv: readTables('csv'),
    json: readTables('json'),
    ndjson: readTables('ndjson'),
    xlsx: readTables('xlsx'),
  },
  jobs: {
    query: async (job: QueryJob, readers) =>
      (await import('./child/query-statement.ts')).runStatement(job, readers),
  },
})
