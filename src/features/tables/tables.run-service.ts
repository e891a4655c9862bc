import { defineRunService } from '../definitions.ts'
import { runTablesRef } from './tables.ref.ts'

export default defineRunService({
  name: 'tables',
  needs: { openRun: runTablesRef },
  open: ({ openRun }, run, sql) => openRun(sql, run),
})
