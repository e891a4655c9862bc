import { defineReader, type ReadFile } from '../../files/child/reader-definition.ts'
import type { QueryJob } from './child/query-job.ts'

const readTables: ReadFile = async (...file) =>
  (await import('./child/prepare-tables.ts')).prepareTables(...file)

/** All is loaded with the first table, and SQLite with the first statement. */
export default defineReader({
  files: { csv: readTables, json: readTables, ndjson: readTables, xlsx: readTables },
  jobs: {
    query: async (job: QueryJob, readers) =>
      (await import('./child/query-statement.ts')).runStatement(job, readers),
  },
})
