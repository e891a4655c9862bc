import { fileServiceRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { createTableCache, queryTables } from './query-tables.ts'
import { runTablesRef } from './tables.ref.ts'

/** Loaded tables on disk. */
const maxBytes = 1024 * 1024 * 1024

export default defineService({
  provides: runTablesRef,
  needs: { files: fileServiceRef },
  start({ files }) {
    const cache = createTableCache(files.temporaryFolder, maxBytes)
    return (sql, run) => ({
      query: (query, signal) => queryTables({ files, cache, sql, run }, query, signal),
    })
  },
})
